/**
 * Delivers audit events to a sink, each at least once, in order, over crashes of either side.
 *
 * Owns: retries, the search for the event that a sink refuses, dead letters, and when the
 * checkpoint moves: after the sink has the events, or the dead letters have them. Never: skips an
 * event because the sink cannot be reached; then it waits. Used by: commands/audit.ts.
 */
import type { Json } from '../../wire/event-json.js';
import { addLetter } from './dead-letters.js';
import type { Delivered, Sink } from './sinks.js';

export interface DeliveryOptions {
  readonly sink: Sink;
  /** File for events that the sink refused. */
  readonly deadLetters: string;
  /** Times that an event is offered before it is a dead letter. */
  readonly attemptsMax: number;
  readonly signal: AbortSignal;
  /** Waits so many ms, less when the signal aborts. */
  readonly pause: (ms: number) => Promise<void>;
  readonly note: (text: string) => void;
  /** Called when counts have changed, or whether the sink can be reached. */
  readonly onChange?: () => void;
}

const PAUSE_MS = 100;
const PAUSE_MS_MAX = 10_000;

export class Delivery {
  delivered = 0;
  dead = 0;
  /** Setbacks in a row: the pause grows with them. */
  private setbacks = 0;

  constructor(private readonly options: DeliveryOptions) {}

  /** The sink could not be reached when it was asked last. */
  get isSinkAway(): boolean {
    return this.setbacks > 0;
  }

  /** True when the sink or the dead letters have all of them; false when it was told to stop. */
  async deliver(events: readonly Json[]): Promise<boolean> {
    if (events.length === 0) return true;
    const result = await this.offer(events);
    if (result === null) return false;
    if (result === 'taken') {
      this.delivered += events.length;
      return true;
    }
    const [event] = events;
    if (event !== undefined && events.length === 1) return this.insist(event, result);
    // One of them is refused: halves, until it is alone.
    const middle = events.length >> 1;
    return (
      (await this.deliver(events.slice(0, middle))) && (await this.deliver(events.slice(middle)))
    );
  }

  /** Offers a single event until it is taken, or has been refused often enough. */
  private async insist(event: Json, first: { refused: string }): Promise<boolean> {
    let { refused } = first;
    for (let attempt = 1; attempt < this.options.attemptsMax; attempt += 1) {
      await this.options.pause(pauseAfter(attempt));
      const result = await this.offer([event]);
      if (result === null) return false;
      if (result === 'taken') {
        this.delivered += 1;
        return true;
      }
      refused = result.refused;
    }
    addLetter(this.options.deadLetters, { reason: refused, event });
    this.dead += 1;
    this.options.onChange?.();
    this.options.note(`revision ${event['revision']} was refused: ${refused}; a dead letter`);
    return true;
  }

  /** What the sink says in the end, reached at once or not; null: told to stop. */
  private async offer(events: readonly Json[]): Promise<'taken' | { refused: string } | null> {
    const { sink, signal, pause, note } = this.options;
    while (!signal.aborted) {
      const result: Delivered = await sink.deliver(events, signal);
      if (result === 'taken' || 'refused' in result) {
        this.setbacks = 0;
        return result;
      }
      if (signal.aborted) return null;
      this.setbacks += 1;
      this.options.onChange?.();
      if (this.setbacks === 1) note(`the sink cannot be reached: ${result.unreachable}; trying on`);
      await pause(pauseAfter(this.setbacks));
    }
    return null;
  }
}

function pauseAfter(setbacks: number): number {
  return Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** Math.min(setbacks - 1, 10));
}

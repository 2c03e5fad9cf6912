/**
 * The invariants that a log of events must keep by itself, without a second machine.
 *
 * Owns: who holds and who waits, as a watcher would know it from events alone. Never: the rules of
 * commands. Used by: the property test, on what the production machine gave.
 */

import { EventKind } from '../../src/core/locks/event.js';
import type { ModelEvent, ModelStep } from './model-types.js';

function demand(holds: boolean, rule: string, event: ModelEvent): void {
  if (!holds) throw new Error(`${rule}: ${JSON.stringify(event)}`);
}

/** Follows one log; `check` throws at the first entry that breaks an invariant. */
export class InvariantChecker {
  private revision = 0;
  private token = 0;
  /** Token of the holder of each held lock. */
  private readonly holders = new Map<string, number>();
  /** Places in each queue, first first. */
  private readonly queues = new Map<string, number[]>();

  /** Checks the events of the next entry against all before. */
  check(step: ModelStep): void {
    for (const event of step.events) {
      demand(event.revision === this.revision + 1, 'revisions are consecutive', event);
      this.revision = event.revision;
      this.checkEvent(event);
    }
  }

  private checkEvent(event: ModelEvent): void {
    const { name } = event;
    const queue = this.queues.get(name) ?? [];
    this.queues.set(name, queue);
    switch (event.kind) {
      case EventKind.Granted:
        demand(!this.holders.has(name), 'I1: one lease at a time', event);
        demand(event.token > this.token, 'I2: tokens rise', event);
        demand(event.token === event.revision, 'a token is the revision of its grant', event);
        // Place 0: granted at once, which nobody may be while somebody waits.
        demand((queue.shift() ?? 0) === event.place, 'I7: first come, first served', event);
        this.token = event.token;
        this.holders.set(name, event.token);
        break;
      case EventKind.Ended:
        demand(this.holders.get(name) === event.token, 'a lease ends that was held', event);
        this.holders.delete(name);
        break;
      case EventKind.Queued:
        demand(this.holders.has(name) || queue.length > 0, 'nobody queues for a free lock', event);
        demand(event.place === event.revision, 'a place is the revision of its Queued', event);
        queue.push(event.place);
        break;
      default:
        demand(queue.includes(event.place), 'a waiter leaves that stood there', event);
        queue.splice(queue.indexOf(event.place), 1);
    }
  }
}

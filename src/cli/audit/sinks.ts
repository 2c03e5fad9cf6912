/**
 * Where audit events are delivered to: a file of JSON lines, or an HTTP address.
 *
 * Owns: what counts as taken: in a file, when it is on disk; over HTTP, a status 200 to 299. A full
 * disk is a sink that cannot be reached now. Never: retries (delivery.ts), a checkpoint.
 * Used by: delivery.ts, dead-letters.ts.
 */
import type { Json } from '../../wire/event-json.js';
import { appendLines, cutTornLine } from './checkpoint.js';

/** Taken; refused as they are, with the reason; or the sink cannot be asked now. */
export type Delivered = 'taken' | { readonly refused: string } | { readonly unreachable: string };

export interface Sink {
  /** Events in the order of their revisions. */
  deliver(events: readonly Json[], signal: AbortSignal): Promise<Delivered>;
}

const HTTP_MS_MAX = 10_000;
/** Statuses by which a server says that it cannot now, not that it will not. */
const LATER = new Set([408, 425, 429, 502, 503, 504]);

/**
 * One event a line. After a crash the file goes on where it ended: nothing twice, nothing torn.
 * `isRetry`: takes old events too, which the file has not seen in their turn.
 */
export class FileSink implements Sink {
  private last: number;

  constructor(
    private readonly file: string,
    private readonly isRetry = false,
  ) {
    this.last = Math.max(0, ...cutTornLine(file).map(revisionIn));
  }

  async deliver(events: readonly Json[]): Promise<Delivered> {
    const fresh = this.isRetry ? events : events.filter((event) => revisionOf(event) > this.last);
    if (fresh.length === 0) return 'taken';
    const lines = fresh.map((event) => JSON.stringify(event));
    try {
      appendLines(this.file, lines);
    } catch (error) {
      if (!isFull(error)) throw error;
      cutTornLine(this.file);
      return { unreachable: `no space is left for ${this.file}` };
    }
    this.last = Math.max(this.last, ...fresh.map(revisionOf));
    return 'taken';
  }
}

function isFull(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return code === 'ENOSPC' || code === 'EDQUOT';
}

function revisionOf(event: Json): number {
  return Number(event['revision']);
}

function revisionIn(line: string): number {
  return revisionOf(JSON.parse(line) as Json);
}

/** POST of `{"events":[…]}`; a single event has its id as Idempotency-Key. */
export class HttpSink implements Sink {
  constructor(private readonly url: string) {}

  async deliver(events: readonly Json[], signal: AbortSignal): Promise<Delivered> {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (events.length === 1) headers['idempotency-key'] = String(events[0]?.['id']);
    try {
      const answer = await fetch(this.url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ events }),
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(HTTP_MS_MAX)]),
      });
      const text = (await answer.text()).slice(0, 200);
      if (answer.ok) return 'taken';
      const said = `${answer.status} ${text}`.trim();
      return LATER.has(answer.status) ? { unreachable: said } : { refused: said };
    } catch (error) {
      return { unreachable: reasonOf(error) };
    }
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? cause.message : error.message;
}

/** The sink that a word names: an http or https address, else a file. */
export function sinkOf(target: string, isRetry = false): Sink {
  return /^https?:\/\//.test(target) ? new HttpSink(target) : new FileSink(target, isRetry);
}

/**
 * Where audit events are delivered to: a file of JSON lines, or an HTTP address.
 *
 * Owns: what counts as taken: in a file, when it is on disk; over HTTP, a status 200 to 299. Never:
 * retries (delivery.ts), a checkpoint. Used by: delivery.ts.
 */
import fs from 'node:fs';
import type { Json } from '../../wire/event-json.js';
import { appendLines } from './checkpoint.js';

/** Taken; refused as they are, with the reason; or the sink cannot be asked now. */
export type Delivered = 'taken' | { readonly refused: string } | { readonly unreachable: string };

export interface Sink {
  /** Events in the order of their revisions. */
  deliver(events: readonly Json[], signal: AbortSignal): Promise<Delivered>;
}

const HTTP_MS_MAX = 10_000;
/** Statuses by which a server says that it cannot now, not that it will not. */
const LATER = new Set([408, 425, 429, 502, 503, 504]);
/** The last line of a file is looked for in so many bytes of its end. */
const TAIL_BYTES = 64 * 1_024;
const NEWLINE = 10;

/** One event a line. After a crash the file goes on where it ended: nothing twice, nothing torn. */
export class FileSink implements Sink {
  private last: number;

  constructor(private readonly file: string) {
    this.last = cutTornLine(file);
  }

  async deliver(events: readonly Json[]): Promise<Delivered> {
    const fresh = events.filter((event) => Number(event['revision']) > this.last);
    if (fresh.length === 0) return 'taken';
    appendLines(
      this.file,
      fresh.map((event) => JSON.stringify(event)),
    );
    this.last = Number(fresh.at(-1)?.['revision']);
    return 'taken';
  }
}

/** Cuts a line that a crash left half written. Returns the revision of the last whole one, or 0. */
function cutTornLine(file: string): number {
  if (!fs.existsSync(file)) return 0;
  const { size } = fs.statSync(file);
  const handle = fs.openSync(file, 'r+');
  try {
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    fs.readSync(handle, tail, 0, tail.length, size - tail.length);
    const end = tail.lastIndexOf(NEWLINE) + 1;
    if (end < tail.length) {
      fs.ftruncateSync(handle, size - tail.length + end);
      fs.fsyncSync(handle);
    }
    if (end === 0) return 0;
    const start = tail.lastIndexOf(NEWLINE, end - 2) + 1;
    const event = JSON.parse(tail.toString('utf8', start, end)) as Json;
    return Number(event['revision']);
  } finally {
    fs.closeSync(handle);
  }
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
export function sinkOf(target: string): Sink {
  return /^https?:\/\//.test(target) ? new HttpSink(target) : new FileSink(target);
}

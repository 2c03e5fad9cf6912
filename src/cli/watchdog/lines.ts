/**
 * What the CLI and its watchdog say to each other: one JSON object a line, a pipe each way.
 *
 * Owns: the shapes and the splitting into lines. Both ends are the same build on one machine, so
 * there is no version. Never: trust in half a line; what is not whole when the other end is gone is
 * dropped. Used by: watchdog-process.ts (CLI side), watchdog/main.ts.
 */
import type { SafeDeadline } from './deadline.js';

/** From the CLI. Orders are carried out in the order in which they were sent. */
export type Order =
  | {
      readonly kind: 'start';
      readonly command: string;
      readonly words: readonly string[];
      readonly environment: Readonly<Record<string, string>>;
      readonly deadline: SafeDeadline;
    }
  | { readonly kind: 'deadline'; readonly deadline: SafeDeadline }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'lost' };

/** Why the watchdog ends the command. */
export type EndReason = 'lost' | 'deadline' | 'caller gone';

/** From the watchdog. */
export type Report =
  | { readonly kind: 'started'; readonly pid: number }
  /** Not started: too close to the deadline, or a signal came first. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Not started: the operating system said no, for example ENOENT. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | { readonly kind: 'terminating'; readonly reason: EndReason }
  | {
      readonly kind: 'ended';
      readonly status: number | null;
      readonly signal: NodeJS.Signals | null;
    };

export function encodeLine(message: Order | Report): string {
  return `${JSON.stringify(message)}\n`;
}

/** Cuts a stream of text into lines; keeps the unfinished rest for the next call. */
export class LineSplitter {
  private rest = '';

  /** Calls `onLine` with each line that is whole now, without its end. */
  push(text: string, onLine: (line: string) => void): void {
    const parts = (this.rest + text).split('\n');
    this.rest = parts.pop() ?? '';
    for (const part of parts) onLine(part);
  }
}

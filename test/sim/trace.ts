/**
 * The story of a run in lines, in the order of true time.
 *
 * Owns: the words. Never: decides. Used by: chaos.ts, for seeds that failed.
 */
import { describeOperation, type History } from './history.js';
import type { LedgerEntry, SeenEvent } from './ledger.js';

export interface TraceNote {
  readonly atUs: number;
  readonly text: string;
}

const EVENT_NAMES: readonly string[] = [
  '',
  'granted',
  'ended',
  'queued',
  'left',
  'disabled',
  'enabled',
  'refused',
  'fenced',
  'expelled',
];

function eventLine(event: SeenEvent): string {
  const { kind, lock, token, place, cause, revision } = event;
  const name = EVENT_NAMES[kind] ?? String(kind);
  const details = [`${lock} ${name}`];
  if (token > 0) details.push(`token ${token}`);
  if (place > 0) details.push(`place ${place}`);
  if (cause > 0) details.push(`cause ${cause}`);
  return `${details.join(', ')} (revision ${revision})`;
}

function entryNotes(entry: LedgerEntry, before: LedgerEntry | undefined): TraceNote[] {
  const { index, term, stampMs, appliedUs, madeUs, makerId } = entry;
  const notes: TraceNote[] = [];
  if (before?.term !== term) {
    notes.push({ atUs: madeUs, text: `node ${makerId} leads term ${term} from entry ${index} on` });
  }
  for (const event of entry.events) {
    const text = `  entry ${index} at ${stampMs}: ${eventLine(event)}`;
    notes.push({ atUs: appliedUs, text });
  }
  return notes;
}

/** One line for each fault, change of leader, committed event and operation. */
export function traceOf(
  notes: readonly TraceNote[],
  entries: readonly LedgerEntry[],
  history: History,
): string[] {
  const all: TraceNote[] = notes.map(({ atUs, text }) => ({ atUs, text: `! ${text}` }));
  for (const [at, entry] of entries.entries()) all.push(...entryNotes(entry, entries[at - 1]));
  for (const operation of history.operations) {
    all.push({ atUs: operation.sentUs, text: `    ${describeOperation(operation)}` });
  }
  all.sort((a, b) => a.atUs - b.atUs);
  return all.map(({ atUs, text }) => `${(atUs / 1000).toFixed(1).padStart(9)} ${text}`);
}

/**
 * I9 as far as there are no watches: the committed events are one stream without a gap.
 *
 * Judges events in the order of their entries: revisions are consecutive from 1, each once, and
 * stamps never fall. That every node has the same stream is the ledger's check.
 * Used by: check-run.ts.
 */
import type { SeenEvent } from '../ledger.js';
import { Verdict } from './verdict.js';

export function checkEventStream(events: readonly SeenEvent[]): Verdict {
  const verdict = new Verdict('event stream');
  let stampMs = 0;
  for (const [position, event] of events.entries()) {
    const { revision } = event;
    verdict.demand(revision === position + 1, () => `revision ${revision} at ${position + 1}`);
    verdict.demand(event.stampMs >= stampMs, () => `the stamp falls at revision ${revision}`);
    ({ stampMs } = event);
  }
  return verdict;
}

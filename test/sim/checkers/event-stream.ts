/**
 * I9 as far as there are no watches: the committed events are one stream without a gap.
 *
 * Judges events in the order of their entries: revisions are consecutive from 1, each once, stamps
 * never fall, and each is of a kind that is known, with what that kind has. That every node has
 * the same stream is the ledger's check.
 * Used by: check-run.ts.
 */
import type { SeenEvent } from '../ledger.js';
import { Verdict } from './verdict.js';

/** granted, ended, queued, left; disabled, enabled, refused, fenced, expelled. */
const KIND_MAX = 9;
const LEFT = 4;
const FENCED = 8;

/** Places, tokens and causes where the kind has them, and none where it has not. */
function isWellFormed({ kind, token, place, cause, lock }: SeenEvent): boolean {
  if (kind <= 2) return token > 0 && lock !== '' && (kind === 2) === cause > 0;
  if (kind <= LEFT) return token === 0 && place > 0 && (kind === LEFT) === cause > 0;
  if (kind === FENCED) return lock !== '' && cause > 0;
  if (token !== 0 || kind > KIND_MAX) return false;
  const isRule = kind <= 6;
  return isRule ? place <= 1 && cause === 0 && (place === 1 || lock !== '') : cause > 0;
}

export function checkEventStream(events: readonly SeenEvent[]): Verdict {
  const verdict = new Verdict('event stream');
  let stampMs = 0;
  for (const [position, event] of events.entries()) {
    const { revision } = event;
    verdict.demand(revision === position + 1, () => `revision ${revision} at ${position + 1}`);
    verdict.demand(event.stampMs >= stampMs, () => `the stamp falls at revision ${revision}`);
    verdict.demand(isWellFormed(event), () => `revision ${revision} is of no known form`);
    ({ stampMs } = event);
  }
  return verdict;
}

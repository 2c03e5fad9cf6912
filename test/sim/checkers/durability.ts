/**
 * I5, I10: what was acknowledged is in the committed log, at its revision.
 *
 * Judges what clients were told against committed events: a grant, a release, a place in a queue,
 * an end that a stale lease names. Used by: check-run.ts.
 */
import type { Answer, History, Operation } from '../history.js';
import type { SeenEvent } from '../ledger.js';
import { Verdict } from './verdict.js';

const KIND = { granted: 1, ended: 2, queued: 3, left: 4, disabled: 5, enabled: 6 } as const;
const REPORTED = 8;
const EXPELLED = 9;
const OK = 0;
const QUEUED = 1;
const STALE_LEASE = 17;
const RELEASED = 1;

/** What the log must have for this answer: revision, kind and token. Null: nothing. */
function wanted(operation: Operation, answer: Answer): [number, number, number] | null {
  const { code, token, revision, place, cause } = answer;
  const { kind, aboutToken } = operation;
  if (code === QUEUED) return [place, KIND.queued, 0];
  if (code === STALE_LEASE && cause > 0) return [revision, KIND.ended, aboutToken];
  if (code !== OK) return null;
  if (kind === 'acquire') return [token, KIND.granted, token];
  if (kind === 'release') return [revision, KIND.ended, aboutToken];
  if (kind === 'force-release') return [revision, KIND.ended, token];
  if (kind === 'disable') return [revision, KIND.disabled, 0];
  if (kind === 'enable' && revision > 0) return [revision, KIND.enabled, 0];
  if (kind === 'report') return [revision, REPORTED, aboutToken];
  if (kind === 'expire-session') return [revision, EXPELLED, 0];
  if (kind === 'cancel' && token > 0) return [token, KIND.granted, token];
  return null;
}

/** The lock, or the name or prefix that was disabled or enabled. */
function nameOf({ kind, lock, target }: Operation): string {
  const isRule = kind === 'disable' || kind === 'enable';
  return isRule ? target.slice(target.indexOf(' ') + 1) : lock;
}

export function checkDurability(events: readonly SeenEvent[], history: History): Verdict {
  const verdict = new Verdict('durability');
  const byRevision = new Map(events.map((event) => [event.revision, event]));
  for (const operation of history.operations) {
    for (const answer of operation.answers) {
      const want = wanted(operation, answer);
      if (want === null) continue;
      const [revision, kind, token] = want;
      const event = byRevision.get(revision);
      const isThere =
        event !== undefined &&
        event.kind === kind &&
        event.token === token &&
        event.lock === nameOf(operation);
      const { id, kind: name, lock } = operation;
      verdict.demand(isThere, () => `${name} ${id} of ${lock} was told ${revision}: not so`);
      if (operation.kind !== 'release' || answer.code !== OK || event === undefined) continue;
      const isOwn = event.cause === RELEASED;
      verdict.demand(isOwn, () => `I4: ${id} released ${token}, which ended by ${event.cause}`);
    }
  }
  return verdict;
}

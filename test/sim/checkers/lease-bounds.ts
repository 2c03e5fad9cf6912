/**
 * I8: no lease ends before its time, and none lasts longer than its bound.
 *
 * Early: no two clients take themselves for the holder of one lock at one moment of true time, but
 * for one whose lease an operator ended, which learns so when it asks or its safe deadline passes;
 * and no lease expires at a stamp below a deadline that its client was told. Late: cluster time
 * follows true time within the bound of clock rates, but for what the rules take off: leaderless
 * gaps, and a leader's stalls. What cluster time does to a lease is then the model's check.
 * Used by: check-run.ts, the chaos command (beliefs).
 */
import { BATCH_OPERATIONS_MAX } from '../../../src/limits.js';
import type { Belief, History } from '../history.js';
import type { LedgerEntry, SeenEvent } from '../ledger.js';
import type { ForcedEnd } from './operators.js';
import { Verdict } from './verdict.js';

const RHO = 0.01;
const ENDED = 2;
const EXPIRED = 2;
const PULSE_MS = 200;
const TICK_MS = 10;
/** Stamps are whole, and rounded down. */
const ROUNDING_MS = 1.1;
/** From so long a gap on, requests may have been taken out of a batch that was full. */
const OVERDUE_MS = 1_500;
/** What was closed in one turn is handed to the log within this time. */
const LATE_US = 1_000;
const OK = 0;
const STALE_LEASE = 17;
const NOTHING_FORCED: ReadonlyMap<number, ForcedEnd> = new Map();

/**
 * Who held by `forced` leases may believe so beside the next holder: no longer than it was promised
 * before the end, and not after it was told.
 */
export function checkBeliefs(history: History, forced = NOTHING_FORCED): Verdict {
  const verdict = new Verdict('beliefs');
  if (forced.size > 0) checkForced(verdict, history, forced);
  const byLock = new Map<string, Belief[]>();
  for (const belief of history.beliefs) {
    const list = byLock.get(belief.lock) ?? [];
    list.push(belief);
    byLock.set(belief.lock, list);
  }
  for (const [lock, beliefs] of byLock) {
    // The longest belief in any smaller token must have ended when a larger one begins.
    beliefs.sort((a, b) => a.token - b.token);
    let until = { token: 0, untilUs: 0 };
    let latest = until;
    for (const belief of beliefs) {
      const isNext = belief.token !== latest.token && !forced.has(latest.token);
      if (isNext && latest.untilUs > until.untilUs) until = latest;
      const { token, untilUs } = until;
      const isApart = token === belief.token || untilUs <= belief.fromUs;
      verdict.demand(isApart, () => {
        const overlapMs = (untilUs - belief.fromUs) / 1000;
        return `${lock}: ${token} was believed ${overlapMs.toFixed(1)} ms into ${belief.token}`;
      });
      const isLonger = belief.token !== latest.token || belief.untilUs > latest.untilUs;
      if (isLonger) latest = { token: belief.token, untilUs: belief.untilUs };
    }
  }
  return verdict;
}

/** Nothing was promised for a lease after its end; whoever was told of the end believes no more. */
function checkForced(
  verdict: Verdict,
  { operations, beliefs }: History,
  forced: ReadonlyMap<number, ForcedEnd>,
): void {
  for (const { client, kind, aboutToken, answers } of operations) {
    for (const { code, token, clusterTime, atUs } of answers) {
      const end = forced.get(kind === 'acquire' ? token : kind === 'renew' ? aboutToken : 0);
      if (end === undefined) continue;
      const isBefore = code !== OK || clusterTime <= end.stampMs;
      verdict.demand(isBefore, () => `${end.token} was promised after ${end.stampMs}, its end`);
      if (code !== STALE_LEASE) continue;
      for (const { client: owner, token: held, untilUs } of beliefs) {
        if (owner !== client || held !== end.token) continue;
        verdict.demand(
          untilUs <= atUs,
          () => `${client} was told of the end of ${held}, and goes on`,
        );
      }
    }
  }
}

/** No lease expires by itself before the deadline that a grant or a renewal promised. */
export function checkDeadlines(events: readonly SeenEvent[], history: History): Verdict {
  const verdict = new Verdict('deadlines');
  const promised = new Map<number, number>();
  for (const { kind, aboutToken, answers } of history.operations) {
    for (const { code, token, deadline } of answers) {
      if (code !== OK || deadline === 0) continue;
      const lease = kind === 'acquire' ? token : kind === 'renew' ? aboutToken : 0;
      if (lease > 0) promised.set(lease, Math.max(deadline, promised.get(lease) ?? 0));
    }
  }
  for (const { kind, cause, token, stampMs } of events) {
    if (kind !== ENDED || cause !== EXPIRED) continue;
    const deadline = promised.get(token) ?? 0;
    verdict.demand(stampMs >= deadline, () => `${token} expired at ${stampMs}, told ${deadline}`);
  }
  return verdict;
}

/** True time in which a node's process stood still. */
export interface Stall {
  readonly nodeId: number;
  readonly fromUs: number;
  /** Infinite while it lasts. */
  untilUs: number;
}

/** Cluster time along the log, against the true moments at which its leaders made the entries. */
export function checkClusterTime(
  entries: readonly LedgerEntry[],
  stalls: readonly Stall[],
): Verdict {
  const verdict = new Verdict('cluster time');
  let leastMs = 0;
  for (const [at, entry] of entries.entries()) {
    const madeMs = entry.madeUs / 1000;
    const aheadMs = entry.stampMs - madeMs * (1 + RHO);
    const isBehind = aheadMs <= leastMs + ROUNDING_MS;
    verdict.demand(isBehind, () => {
      const ahead = (aheadMs - leastMs).toFixed(1);
      return `entry ${entry.index} is ${ahead} ms ahead of true time`;
    });
    // Stamped just before its leader stood still, it was made earlier than it looks.
    const isLate = stalls.some(({ nodeId, untilUs }) => {
      return nodeId === entry.makerId && Math.abs(untilUs - entry.madeUs) < LATE_US;
    });
    const before = entries[at - 1];
    const isEarly = mayBeEarly(entry, before);
    if (!isLate && !isEarly) leastMs = Math.min(leastMs, aheadMs);
    if (before === undefined || before.term !== entry.term) continue;
    const gapMs = madeMs - before.madeUs / 1000;
    if (isStalled(stalls, entry.makerId, before.madeUs, entry.madeUs)) continue;
    const passedMs = entry.stampMs - before.stampMs;
    const slackMs = ROUNDING_MS + (isEarly ? TICK_MS * (1 + RHO) : 0);
    const isKept = passedMs >= gapMs * (1 - RHO) - slackMs;
    verdict.demand(isKept, () => {
      const gap = gapMs.toFixed(1);
      return `${gap} ms before entry ${entry.index} count as ${passedMs} ms of cluster time`;
    });
  }
  return verdict;
}

/** A batch that is full between two turns is closed at once, with the stamp of the turn before. */
function mayBeEarly(entry: LedgerEntry, before: LedgerEntry | undefined): boolean {
  const gapMs = (entry.madeUs - (before?.madeUs ?? 0)) / 1000;
  if (entry.outcomes.length * 2 >= BATCH_OPERATIONS_MAX) return true;
  return gapMs >= OVERDUE_MS && entry.outcomes.length > 0;
}

function isStalled(
  stalls: readonly Stall[],
  nodeId: number,
  fromUs: number,
  untilUs: number,
): boolean {
  return stalls.some(
    (stall) => stall.nodeId === nodeId && stall.fromUs < untilUs && stall.untilUs > fromUs,
  );
}

/** While something has a deadline, an unhindered leader lets no more than a pulse pass. */
export function checkPulses(
  entries: readonly LedgerEntry[],
  stalls: readonly Stall[],
  fromUs: number,
): Verdict {
  const verdict = new Verdict('pulses');
  for (const [at, entry] of entries.entries()) {
    const before = entries[at - 1];
    if (before === undefined || before.term !== entry.term || before.madeUs < fromUs) continue;
    if (!before.hasDeadlines) continue;
    if (isStalled(stalls, entry.makerId, before.madeUs, entry.madeUs)) continue;
    const gapMs = (entry.madeUs - before.madeUs) / 1000;
    const mostMs = (PULSE_MS + 2 * TICK_MS) * (1 + 2 * RHO);
    verdict.demand(gapMs <= mostMs, () => `${gapMs.toFixed(1)} ms before entry ${entry.index}`);
  }
  return verdict;
}

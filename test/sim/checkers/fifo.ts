/**
 * I7: waiters are granted in the order of their places, nobody overtakes, nobody is granted twice.
 *
 * Judges committed events, and histories: of two waits on one lock that were told their places and
 * were granted, the earlier place has the smaller token; a wait ends once, by a grant or without.
 * Used by: check-run.ts, the chaos command.
 */
import type { History, Operation } from '../history.js';
import type { SeenEvent } from '../ledger.js';
import { Verdict } from './verdict.js';

const KIND = { granted: 1, ended: 2, queued: 3, left: 4 } as const;
const OK = 0;
const QUEUED = 1;

export function checkQueues(events: readonly SeenEvent[]): Verdict {
  const verdict = new Verdict('fifo');
  const queues = new Map<string, number[]>();
  for (const { kind, lock, place, token } of events) {
    const queue = queues.get(lock) ?? [];
    queues.set(lock, queue);
    const [first] = queue;
    if (kind === KIND.queued) {
      verdict.demand(place > (queue.at(-1) ?? 0), () => `place ${place} of ${lock} does not rise`);
      queue.push(place);
    } else if (kind === KIND.left) {
      const at = queue.indexOf(place);
      verdict.demand(at >= 0, () => `place ${place} leaves ${lock} and is not there`);
      if (at >= 0) queue.splice(at, 1);
    } else if (kind === KIND.granted) {
      if (place === 0) {
        verdict.demand(first === undefined, () => `${token} barges past ${first} on ${lock}`);
        continue;
      }
      verdict.demand(first === place, () => `${place} of ${lock} is granted before ${first}`);
      const at = queue.indexOf(place);
      if (at >= 0) queue.splice(at, 1);
    }
  }
  return verdict;
}

/**
 * A free-form id whose retention may be over by then is a new request by its last answer; not so
 * with a not_after, which keeps it until it can have no effect any more.
 */
function mayBeTwo({ session, notAfter, answers }: Operation, retentionMs: number): boolean {
  if (notAfter !== undefined) return false;
  const times = answers.map(({ clusterTime }) => clusterTime);
  return session === '' && Math.max(...times) - Math.min(...times) >= retentionMs;
}

export function checkPlaces(history: History, retentionMs: number): Verdict {
  const verdict = new Verdict('places');
  const granted = new Map<string, { place: number; token: number; id: string }[]>();
  for (const operation of history.operations) {
    const { kind, lock, id, answers } = operation;
    if (kind !== 'acquire' || mayBeTwo(operation, retentionMs)) continue;
    const places = new Set(answers.filter(({ code }) => code === QUEUED).map((a) => a.place));
    verdict.demand(places.size <= 1, () => `${id} has places ${[...places].join(' and ')}`);
    const [place] = places;
    const grant = answers.find(({ code }) => code === OK);
    if (place === undefined || grant === undefined) continue;
    const list = granted.get(lock) ?? [];
    granted.set(lock, list);
    list.push({ place, token: grant.token, id });
  }
  for (const [lock, list] of granted) {
    list.sort((a, b) => a.place - b.place);
    for (let at = 1; at < list.length; at += 1) {
      const [before, after] = [list[at - 1], list[at]];
      if (before === undefined || after === undefined) continue;
      const isInOrder = before.token < after.token;
      verdict.demand(isInOrder, () => `${lock}: ${after.id} was granted before ${before.id}`);
    }
  }
  return verdict;
}

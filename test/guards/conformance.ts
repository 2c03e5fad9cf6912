/**
 * What every guard has to do, whatever its store is: one suite, run over each.
 *
 * Owns: the cases. Each takes a cell and a lock of its own. Never: a store or a lock service;
 * tokens are made up here. Used by: guards.test.ts.
 */
import type { Test } from 'tap';
import { isHoldfastError } from '../../src/client/errors.js';
import { Prng } from '../../src/collections/prng.js';
import { type Fence, type FenceKind, judge } from '../../src/guards/fence.js';
import { isStaleToken, type StaleTokenError } from '../../src/guards/stale-token.js';
import type { Door, Resource } from './resource.js';
import { openDoor } from './resources/open.js';

const GREATEST = Number.MAX_SAFE_INTEGER;

/** The refusal of a write, or null when it was let through. */
export async function refusalOf(writing: Promise<unknown>): Promise<StaleTokenError | null> {
  try {
    await writing;
    return null;
  } catch (error) {
    if (isStaleToken(error)) return error;
    throw error;
  }
}

/** What a case works on. */
interface Stage {
  readonly door: Door;
  readonly lock: string;
  readonly resource: Resource;
}

type Case = (t: Test, stage: Stage) => Promise<void>;

async function keepsTheRule(t: Test, { door, lock }: Stage): Promise<void> {
  await door.write({ lock, token: 41 }, 'first');
  await door.write({ lock, token: 41 }, 'again');
  t.equal(await door.read(), 'again', '41 passes again');
  const early = await refusalOf(door.write({ lock, token: 40 }, 'early'));
  t.match(early, { code: 'STALE_TOKEN', lock, seen: 41, offered: 40, outcome: 'none' });
  await door.write({ lock, token: 42 }, 'newer');
  const stale = await refusalOf(door.write({ lock, token: 41 }, 'stale'));
  t.match(stale, { seen: 42, offered: 41 });
  t.equal(await door.read(), 'newer', 'a refused write leaves no trace');
  t.equal((await door.guard.mark(lock)).token, 42);
}

async function takesSharedTokens(t: Test, { door, lock }: Stage): Promise<void> {
  await door.write({ lock, token: 10 }, 'writer');
  await door.claim({ lock, token: 12, kind: 'shared' });
  await door.claim({ lock, token: 11, kind: 'shared' });
  await door.claim({ lock, token: 10, kind: 'shared' });
  t.equal((await door.guard.mark(lock)).token, 10, 'a shared token does not raise the mark');
  const stale = await refusalOf(door.claim({ lock, token: 9, kind: 'shared' }));
  t.match(stale, { seen: 10, offered: 9 });
  await door.write({ lock, token: 11 }, 'next writer');
  t.ok(await refusalOf(door.claim({ lock, token: 10, kind: 'shared' })), 'the mark was raised');
}

async function refusesWhatIsNoFence(t: Test, { door, lock }: Stage): Promise<void> {
  await door.write({ lock, token: 5 }, 'kept');
  const bad: Fence[] = [0, -1, 1.5, Number.NaN, GREATEST + 1].map((token) => ({ lock, token }));
  bad.push({ lock, token: 6, kind: 'semaphore' as FenceKind });
  bad.push({ lock, token: 6, kind: 'other' as FenceKind });
  bad.push({ lock: '', token: 6 }, { lock: 'x'.repeat(513), token: 6 }, { lock: 'a\nb', token: 6 });
  for (const fence of bad) {
    const isRefused = (error: unknown): boolean => isHoldfastError(error, 'BAD_REQUEST');
    const label = `${fence.kind ?? ''} ${fence.lock.slice(0, 20)} ${fence.token}`;
    await t.rejects(door.write(fence, 'bad').catch(rethrow(isRefused)), /bad request/, label);
  }
  t.equal(await door.read(), 'kept');
  t.equal((await door.guard.mark(lock)).token, 5);
}

/** Turns an error that is as wanted into one that names it. */
function rethrow(isWanted: (error: unknown) => boolean): (error: unknown) => never {
  return (error) => {
    throw isWanted(error) ? new Error('bad request') : error;
  };
}

async function keepsLocksApart(t: Test, { door, lock, resource }: Stage): Promise<void> {
  await door.write({ lock, token: 100 }, 'by the first lock');
  if (!resource.hasMarkForEachLock) {
    const other = door.write({ lock: `${lock}/b`, token: 200 }, 'by another lock');
    await t.rejects(other, { code: 'CONFLICT' }, 'the object belongs to one lock');
    return;
  }
  const names = [`${lock}/`, `${lock}/b`, `${lock}'";--\\`, `${lock} é ∀`, 'é'.repeat(256)];
  for (const [at, other] of names.entries()) {
    await door.write({ lock: other, token: at + 1 }, 'by another lock');
    t.equal((await door.guard.mark(other)).token, at + 1, other.slice(0, 40));
  }
  t.equal((await door.guard.mark(lock)).token, 100);
}

async function takesBarriers(t: Test, { door, lock }: Stage): Promise<void> {
  t.equal((await door.guard.mark(lock)).token, 0, 'nothing was seen yet');
  await door.guard.raise(lock, 50);
  const stale = await refusalOf(door.write({ lock, token: 49 }, 'below the barrier'));
  t.match(stale, { seen: 50, offered: 49 }, 'refused before any newer holder has written');
  t.equal((await door.guard.raise(lock, 20)).token, 50, 'a barrier never lowers the mark');
  await door.write({ lock, token: 51 }, 'the next holder');
  t.equal(await door.read(), 'the next holder');
  t.equal((await door.guard.raise(lock, 60)).token, 60);
  t.equal(await door.read(), 'the next holder', 'a barrier leaves the value');
  await t.rejects(door.guard.raise(lock, 0), { code: 'BAD_REQUEST' });
}

async function tellsLargeTokensApart(t: Test, { door, lock }: Stage): Promise<void> {
  await door.write({ lock, token: GREATEST - 1 }, 'next to last');
  await door.write({ lock, token: GREATEST }, 'last');
  const stale = await refusalOf(door.write({ lock, token: GREATEST - 1 }, 'stale'));
  t.match(stale, { seen: GREATEST, offered: GREATEST - 1 });
  t.equal((await door.guard.mark(lock)).token, GREATEST);
}

async function agreesWithTheRule(t: Test, { door, lock }: Stage): Promise<void> {
  t.same(await differencesFromTheRule(door, lock), [], 'seed 7');
}

/** Where a guard and the rule part, over forty random tokens; a line each. */
export async function differencesFromTheRule(door: Door, lock: string): Promise<string[]> {
  const prng = new Prng(7);
  let mark = 0;
  let value = '';
  const differences: string[] = [];
  for (let step = 1; step <= 40; step += 1) {
    const token = 1 + prng.below(12);
    const kind: FenceKind = prng.below(3) === 0 ? 'shared' : 'exclusive';
    const wanted = judge(mark, token, kind);
    const refusal = await refusalOf(door.write({ lock, token, kind }, `step ${step}`));
    mark = wanted.mark;
    if (wanted.isAccepted) value = `step ${step}`;
    const found = [refusal === null, await door.read(), (await door.guard.mark(lock)).token];
    const should = [wanted.isAccepted, value, mark];
    if (String(found) !== String(should)) differences.push(`${step}: ${found}, not ${should}`);
  }
  return differences;
}

async function ordersConcurrentWriters(t: Test, { lock, resource }: Stage): Promise<void> {
  const cell = `concurrent ${lock}`;
  const doors = await Promise.all(Array.from({ length: 6 }, () => openDoor(resource.place, cell)));
  const tokens = Array.from({ length: 12 }, (_, at) => 1 + ((at * 5) % 12));
  const writing = tokens.map((token, at) => {
    const mine = doors[at % doors.length] as Door;
    return refusalOf(mine.write({ lock, token }, String(token)));
  });
  const refusals = await Promise.all(writing);
  t.equal(refusals[tokens.indexOf(12)], null, 'the newest token is never refused');
  t.equal(await (doors[0] as Door).read(), '12', 'and its write is the last');
  const isOlder = refusals.every((each) => each === null || each.seen > each.offered);
  t.ok(isOlder, 'whoever was refused was older');
  await Promise.all(doors.map((each) => each.close()));
}

async function countsRefusals(t: Test, { door, lock, resource }: Stage): Promise<void> {
  const { tally } = door.guard;
  const before = { accepted: tally.accepted, refused: tally.refused };
  await door.write({ lock, token: 8 }, 'new');
  for (let each = 0; each < 3; each += 1) {
    t.ok(await refusalOf(door.write({ lock, token: 7 }, 'old')));
  }
  t.equal(tally.accepted - before.accepted, 1);
  t.equal(tally.refused - before.refused, 3);
  const { refused } = await door.guard.mark(lock);
  t.equal(refused, resource.counts ? 3 : null, 'counted in the resource where it can count');
}

const CASES: readonly (readonly [string, Case])[] = [
  ['N passes, again too, and everything below N is refused', keepsTheRule],
  ['a shared token passes from the mark on and does not raise it', takesSharedTokens],
  ['no semaphore, no bad token, no bad name', refusesWhatIsNoFence],
  ['the name of the lock is part of the key', keepsLocksApart],
  ['a barrier refuses older tokens before anybody has written', takesBarriers],
  ['tokens up to 2^53 - 1 are told apart', tellsLargeTokensApart],
  ['forty random tokens are judged as the rule says', agreesWithTheRule],
  ['writers at the same time end with the newest', ordersConcurrentWriters],
  ['refusals are counted and can be seen', countsRefusals],
];

/** Runs every case as a subtest. */
export async function conform(t: Test, resource: Resource): Promise<void> {
  for (const [at, [name, run]] of CASES.entries()) {
    await t.test(name, async (t) => {
      const door = await openDoor(resource.place, `case ${at}`);
      t.teardown(() => door.close());
      await run(t, { door, lock: `conformance/${at}`, resource });
    });
  }
}

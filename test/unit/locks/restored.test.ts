/** The state that a new cluster begins with after a restore: what is left, and its grace. */

import t from 'tap';
import { CommandKind, PRINCIPAL_CLUSTER } from '../../../src/core/locks/command.js';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import {
  leapOf,
  RESTORE_LEAP,
  REVISIONS_PER_SECOND,
  type RestoreTerms,
} from '../../../src/core/locks/restored-state.js';
import type { Settings } from '../../../src/core/locks/settings.js';
import { RowKind } from '../../../src/core/locks/snapshot-rows.js';
import {
  acquire,
  cancel,
  changeSettings,
  completionOf,
  disable,
  free,
  grantsIn,
  LockDriver,
  open,
  release,
  renew,
} from './lock-driver.js';

const GRACE_MS = 5_000;
const TERMS: RestoreTerms = {
  unixSeconds: 1_800_000_000,
  ageSeconds: 60,
  revisionFloor: 0,
  graceMs: GRACE_MS,
};

/** A log with a record of every kind, and the tokens of its leases. */
function oldLog(settings: Partial<Settings> = {}) {
  const log = new LockDriver(settings);
  log.after(1_000, open('session', { ttlMs: 70_000 }));
  const held = log.answer(0, acquire('held', 'held', { ttlMs: 20_000 })).token;
  const inSession = log.answer(0, acquire('s', 's', { session: 1, ttlMs: 90_000 })).token;
  log.after(0, acquire('held', 'waits', { waitMs: 60_000 }));
  const gone = log.answer(0, acquire('gone', 'gone')).token;
  log.after(10, release(gone));
  return { log, held, inSession, gone };
}

function restore(log: LockDriver, terms: Partial<RestoreTerms> = {}): void {
  log.machine.restore({ ...TERMS, ...terms });
}

t.test('the counter leaps past all that may have been granted since', async (t) => {
  const { unixSeconds } = TERMS;
  const clock = unixSeconds * REVISIONS_PER_SECOND;
  t.equal(leapOf(7, TERMS), clock, 'a young state: the clock');
  t.equal(leapOf(clock, TERMS), clock + RESTORE_LEAP + 60 * REVISIONS_PER_SECOND, 'an old one');
  t.equal(leapOf(7, { ...TERMS, revisionFloor: clock + 5 }), clock + 5, 'the operator');
  t.equal(leapOf(7, { ...TERMS, unixSeconds: 0, ageSeconds: 0 }), 7 + RESTORE_LEAP, 'no clock');
  for (const revision of [7, clock, 2 * clock]) {
    const [first, second] = [0, 1].map((seconds) => {
      const terms = { ...TERMS, unixSeconds: unixSeconds + seconds, ageSeconds: 60 + seconds };
      return leapOf(revision, terms);
    });
    t.ok(second! - first! >= REVISIONS_PER_SECOND, 'a second restore begins above the first');
  }
});

t.test('sessions, leases, waits, results and lock records are gone; settings stay', async (t) => {
  const { log } = oldLog();
  log.after(0, changeSettings(7, 50_000), disable('shut/', 'd', { isPrefix: true }));
  restore(log);
  const nothing = { locks: 0, leases: 0, waits: 0, sessions: 0, results: 0 };
  t.strictSame(log.machine.counts, { ...nothing, disabled: 1 }, 'what is disabled stays so');
  t.match(log.answer(0, acquire('shut/7', 'z')), { code: OutcomeCode.Disabled });
  log.after(GRACE_MS);
  t.match(log.answer(0, acquire('a', 'x', { waitMs: 50_001 })), { code: OutcomeCode.BadRequest });
  const repeated = log.answer(0, acquire('held', 'held', { ttlMs: 20_000 }));
  t.match(repeated, { code: OutcomeCode.Ok, replay: false }, 'an old request id is a new request');
  t.ok(repeated.token > TERMS.unixSeconds * REVISIONS_PER_SECOND);
  t.equal(log.answer(0, acquire('b', 'y', { session: 1 })).code, OutcomeCode.SessionExpired);
});

t.test('old lease ids are stale: those that were held by the restore', async (t) => {
  const { log, held, inSession, gone } = oldLog();
  restore(log);
  for (const token of [held, inSession]) {
    const answer = log.answer(0, renew(token));
    t.match(answer, { code: OutcomeCode.StaleLease, cause: LeaseEnd.Restored });
    t.equal(log.answer(0, release(token)).code, OutcomeCode.StaleLease);
  }
  t.match(log.answer(0, release(gone)), { code: OutcomeCode.Ok, replay: true }, 'released again');
});

t.test('of more leases than are remembered, the newest are', async (t) => {
  const log = new LockDriver({ endedLeasesMax: 16 });
  const tokens = Array.from({ length: 20 }, (_, at) => {
    return log.answer(0, acquire(`n${at}`, `n${at}`)).token;
  });
  restore(log);
  const causes = tokens.map((token) => log.answer(0, renew(token)).cause);
  const [unknown, restored] = [LeaseEnd.Unknown, LeaseEnd.Restored];
  t.strictSame(causes, [...new Array(4).fill(unknown), ...new Array(16).fill(restored)]);
});

t.test(
  'no expected_revision of before passes, also where the lock was only waited for',
  async (t) => {
    const { log } = oldLog();
    restore(log);
    const floor = TERMS.unixSeconds * REVISIONS_PER_SECOND;
    log.after(0, acquire('w', 'w', { waitMs: 1_000 }));
    log.after(1_000);
    log.after(GRACE_MS);
    for (const name of ['held', 'new', 'w']) {
      const expectedRevision = floor - 1;
      const answer = log.answer(0, acquire(name, `old ${name}`, { expectedRevision }));
      t.match(answer, { code: OutcomeCode.Conflict, revision: floor }, name);
    }
    t.equal(log.answer(0, acquire('held', 'f', { expectedRevision: floor })).code, OutcomeCode.Ok);
  },
);

t.test('in the grace a try is busy, without a holder, and says until when', async (t) => {
  const { log } = oldLog();
  restore(log);
  const until = log.now + GRACE_MS;
  for (const name of ['held', 'never']) {
    const answer = log.answer(1, acquire(name, `try ${name}`));
    t.match(answer, { code: OutcomeCode.LockBusy, token: 0, deadline: until });
  }
  t.equal(log.machine.counts.locks, 0, 'a refusal makes no record');
  log.now = until - 1;
  t.equal(log.answer(0, acquire('never', 'late')).code, OutcomeCode.LockBusy);
  t.equal(log.answer(1, acquire('never', 'on time')).code, OutcomeCode.Ok);
});

t.test(
  'waiters of the grace are granted when it is over, in the order of their places',
  async (t) => {
    const { log } = oldLog();
    restore(log);
    const names = ['c', 'a', 'a', 'b'];
    const places = names.map((name, at) => {
      const answer = log.answer(1, acquire(name, `w${at}`, { waitMs: 60_000 }));
      t.match(answer, { code: OutcomeCode.Queued, ahead: at === 2 ? 1 : 0 });
      return answer.revision;
    });
    t.equal(log.answer(0, acquire('a', 'no barging')).code, OutcomeCode.LockBusy);
    t.strictSame(log.after(GRACE_MS - 5).events, [], 'not yet');
    const step = log.after(1);
    t.strictSame(
      grantsIn(step).map(({ name, place }) => [name, place]),
      [
        ['c', places[0]],
        ['a', places[1]],
        ['b', places[3]],
      ],
    );
    t.equal(completionOf(step, places[0]!).code, OutcomeCode.Ok);
    t.strictSame(log.get('a').places, [places[2]]);
  },
);

t.test('a waiter that leaves in the grace delays nobody, and leaves an idle lock', async (t) => {
  const { log } = oldLog();
  restore(log);
  const first = log.answer(0, acquire('a', 'first', { waitMs: 60_000 })).revision;
  const second = log.answer(0, acquire('a', 'second', { waitMs: 60_000 })).revision;
  const short = log.answer(0, acquire('b', 'short', { waitMs: 1_000 })).revision;
  log.after(0, cancel('first', { request: free('c') }));
  const step = log.after(1_000);
  t.equal(completionOf(step, short).code, OutcomeCode.WaitTimeout);
  t.match(log.machine.counts, { locks: 2, waits: 1 });
  log.machine.restart(200, 3);
  const over = log.after(GRACE_MS - 1_000);
  t.equal(completionOf(over, second).code, OutcomeCode.Ok);
  t.not(first, second);
  t.equal(log.answer(0, acquire('b', 'try')).code, OutcomeCode.Ok, 'b is idle, and free');
});

t.test('what an entry cannot hand over is settled by whoever asks, or by the next', async (t) => {
  const { log } = oldLog({ expiriesPerEntryMax: 1 });
  restore(log);
  const names = ['a', 'b', 'c', 'd'];
  const places = names.map(
    (name) => log.answer(0, acquire(name, name, { waitMs: 60_000 })).revision,
  );
  const step = log.after(GRACE_MS, acquire('d', 'try'), acquire('new', 'new'));
  t.strictSame(
    grantsIn(step).map(({ name }) => name),
    ['a', 'd', 'new'],
    'one by the sweep, one by who asked, and a free lock at once',
  );
  log.machine.restart(100, 2);
  t.strictSame(
    grantsIn(log.after(0)).map(({ place }) => place),
    [places[1]],
  );
  t.strictSame(
    grantsIn(log.after(0)).map(({ place }) => place),
    [places[2]],
  );
  log.after(0);
  t.equal(log.machine.grantsFrom, 0, 'the grace is forgotten');
});

t.test('snapshots in the grace go on as the machine that wrote them', async (t) => {
  const straight = oldLog({ expiriesPerEntryMax: 2 }).log;
  const broken = oldLog({ expiriesPerEntryMax: 2 }).log;
  restore(straight);
  restore(broken);
  for (let at = 0; at < 60; at += 1) {
    const name = `n${at % 7}`;
    const commands = [
      acquire(name, `w${at}`, { waitMs: 500 + 97 * (at % 13) }),
      cancel(`w${at - 9}`, { request: free(`c${at}`) }),
    ];
    const steps = [straight, broken].map((log) => log.after(110, ...commands));
    t.strictSame(steps[1], steps[0], `entry ${at}`);
    broken.machine.restart(64 + at, 1 + (at % 5));
  }
  t.equal(broken.machine.digest(), straight.machine.digest());
  t.equal(straight.machine.grantsFrom, 0, 'the grace has passed on the way');
});

t.test('rows with waiters of a free lock are refused outside a grace', async (t) => {
  const { log } = oldLog();
  restore(log);
  log.after(0, acquire('a', 'w', { waitMs: 1_000 }));
  const chunks = log.machine.snapshot(1);
  t.equal(log.machine.faultOf(chunks), '');
  const grace = chunks.findIndex((chunk) => chunk[0] === RowKind.Grace);
  t.equal(grace, 1, 'behind the head');
  t.match(log.machine.faultOf(chunks.toSpliced(grace, 1)), /wait without|neither held nor idle/);
  const twice = chunks.toSpliced(grace, 0, chunks[grace] as Uint8Array);
  t.match(log.machine.faultOf(twice), /a grace twice/);
  const late = [...chunks.toSpliced(grace, 1).toSpliced(3, 0, chunks[grace] as Uint8Array)];
  t.not(log.machine.faultOf(late), '');
});

t.test('the first entry tells of the restore; a client cannot', async (t) => {
  const { log } = oldLog();
  restore(log);
  const note = { kind: CommandKind.Restored, request: { kind: 'none' as const }, metadata: 'why' };
  const forged = log.after(0, { ...note, principal: 1 });
  t.equal(forged.outcomes[0]?.code, OutcomeCode.Forbidden);
  t.strictSame(forged.events, []);
  const step = log.after(0, { ...note, principal: PRINCIPAL_CLUSTER });
  const revision = TERMS.unixSeconds * REVISIONS_PER_SECOND + 1;
  t.match(step.events, [{ kind: EventKind.Restored, revision, name: '', token: 0 }]);
});

t.test('restores of one state agree on every node, and differ by cluster', async (t) => {
  const [one, other] = [oldLog().log, oldLog().log];
  restore(one);
  restore(other);
  t.equal(one.machine.digest(), other.machine.digest());
  t.equal(one.machine.restored(TERMS, 5).digest(), other.machine.restored(TERMS, 5).digest());
  t.not(one.machine.restored(TERMS, 5).digest(), one.machine.restored(TERMS, 6).digest());
  const longer = { ...TERMS, graceMs: GRACE_MS + 1 };
  t.not(one.machine.restored(TERMS, 5).digest(), one.machine.restored(longer, 5).digest());
});

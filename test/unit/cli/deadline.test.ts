import fc from 'fast-check';
import t from 'tap';
import {
  deadlineFrom,
  elapsedBetween,
  type Instant,
  readInstant,
  remainingUntil,
  sleepBeforeLook,
  whatIsDue,
} from '../../../src/cli/watchdog/deadline.js';

const START: Instant = { monotonicMs: 1_000, uptimeMs: 500_000 };

function after(ms: number, suspendedMs = 0): Instant {
  return {
    monotonicMs: START.monotonicMs + ms,
    uptimeMs: START.uptimeMs + ms + suspendedMs,
  };
}

t.test('30 s TTL: TERM with 5 s left, KILL with one second left', async (t) => {
  const deadline = deadlineFrom(START, 20_000, 30_000);
  t.equal(whatIsDue(deadline, null, after(14_900)), 'nothing');
  t.equal(whatIsDue(deadline, null, after(15_000)), 'terminate');
  t.equal(whatIsDue(deadline, after(15_000), after(18_900)), 'nothing');
  t.equal(whatIsDue(deadline, after(15_000), after(19_000)), 'kill');
});

t.test('KILL follows TERM after the lead, however much of the lease is left', async (t) => {
  const deadline = deadlineFrom(START, 29_000, 30_000);
  t.equal(whatIsDue(deadline, after(100), after(5_000)), 'nothing');
  t.equal(whatIsDue(deadline, after(100), after(5_100)), 'kill');
});

t.test('time in which the machine was suspended counts', async (t) => {
  const deadline = deadlineFrom(START, 20_000, 30_000);
  t.equal(whatIsDue(deadline, null, after(10, 60_000)), 'kill');
  t.equal(elapsedBetween(START, after(10, 60_000)), 60_010);
});

t.test('a clock that stood still on one side never stretches the deadline', async (t) => {
  const deadline = deadlineFrom(START, 20_000, 30_000);
  const now = { monotonicMs: START.monotonicMs + 25_000, uptimeMs: START.uptimeMs };
  t.equal(whatIsDue(deadline, null, now), 'kill');
});

t.test('property: KILL is due before the deadline, whatever the TTL', async () => {
  const ttl = fc.integer({ min: 100, max: 86_400_000 });
  fc.assert(
    fc.property(ttl, fc.double({ min: 0, max: 1, noNaN: true }), (ttlMs, share) => {
      const remainingMs = ttlMs * share;
      const deadline = deadlineFrom(START, remainingMs, ttlMs);
      return (
        deadline.killLeadMs < deadline.terminateLeadMs &&
        whatIsDue(deadline, null, after(remainingMs - deadline.killLeadMs)) === 'kill'
      );
    }),
  );
});

t.test('property: the watchdog never sleeps past the next thing that is due', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 60_000 }), fc.nat(60_000), (ttlMs, passedMs) => {
      const deadline = deadlineFrom(START, ttlMs, ttlMs);
      const sleepMs = sleepBeforeLook(deadline, after(passedMs));
      if (sleepMs < 1 || sleepMs > 50) return false;
      const before = whatIsDue(deadline, null, after(passedMs));
      const wokenEarlier = whatIsDue(deadline, null, after(passedMs + sleepMs - 1));
      return before !== 'nothing' || sleepMs === 1 || wokenEarlier === 'nothing';
    }),
  );
});

t.test('both clocks of this machine go forward', async (t) => {
  const before = readInstant();
  const now = readInstant();
  t.ok(now.monotonicMs >= before.monotonicMs);
  t.ok(now.uptimeMs >= before.uptimeMs);
  t.ok(remainingUntil(deadlineFrom(before, 1_000, 1_000), now) <= 1_000);
});

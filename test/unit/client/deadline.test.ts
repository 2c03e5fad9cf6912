import fc from 'fast-check';
import t from 'tap';
import { elapsedMs, type Instant, SystemClock } from '../../../src/client/clock.js';
import { boundOf, longerBound, marginMs, remainingMs } from '../../../src/client/deadline.js';
import { FakeClock } from './fake-clock.js';

const clock = new FakeClock();

function instant(ms: number): Instant {
  return { awakeMs: ms, uptimeMs: ms };
}

/** Clock rates within rho = 1 %: local ms, or cluster ms, for each real ms. */
const rate = fc.oneof(
  fc.constant(0.99),
  fc.constant(1.01),
  fc.double({ min: 0.99, max: 1.01, noNaN: true }),
);
const period = fc.oneof(
  fc.integer({ min: 1, max: 2_000 }),
  fc.integer({ min: 1, max: 86_400_000 }),
  fc.constantFrom(100, 250, 1_000, 30_000, 86_400_000),
);

t.test(
  'the safe deadline is never later than the end of the lease, at any rates within 1 %',
  (t) => {
    fc.assert(
      fc.property(
        rate,
        rate,
        period,
        fc.integer({ min: 0, max: 60_000 }),
        fc.integer({ min: 0, max: 10_000 }),
        (localRate, clusterRate, ttl, commitDelay, loopDelay) => {
          // Real time 0: first sent. The entry is stamped C = 0 after commitDelay of real time.
          const bound = boundOf({ sentAt: instant(0), clusterTimeMs: 0 }, ttl);
          const leaseEndsAt = commitDelay + ttl / clusterRate;
          // The first local time at which nothing is left, in real time.
          const localMs = remainingMs(clock, bound, instant(0), loopDelay);
          const believedUntil = Math.max(0, localMs) / localRate;
          return believedUntil <= leaseEndsAt;
        },
      ),
      { numRuns: 5_000 },
    );
    t.end();
  },
);

t.test('without the margin the same property fails: the margin is what covers the rates', (t) => {
  const ttl = 30_000;
  const withoutMargin = ttl / 0.99;
  t.ok(withoutMargin > ttl / 1.01);
  t.ok((ttl - marginMs(ttl)) / 0.99 <= ttl / 1.01);
  t.end();
});

t.test('the margin is 2.5 % of the period and at least 5 ms', (t) => {
  t.equal(marginMs(30_000), 750);
  t.equal(marginMs(200), 5);
  t.equal(marginMs(100), 5);
  t.equal(marginMs(201), 201 * 0.025);
  t.end();
});

t.test('the safe deadline is s + (D − C) − margin − event-loop delay', (t) => {
  const bound = boundOf({ sentAt: instant(1_000), clusterTimeMs: 70_000 }, 100_000);
  t.equal(remainingMs(clock, bound, instant(1_000), 0), 30_000 - 750);
  t.equal(remainingMs(clock, bound, instant(1_000), 120), 30_000 - 750 - 120);
  t.equal(remainingMs(clock, bound, instant(11_000), 120), 20_000 - 750 - 120);
  t.equal(remainingMs(clock, bound, instant(30_130), 120), 0);
  t.end();
});

t.test('one stall takes at most a tenth of the period off', (t) => {
  const bound = boundOf({ sentAt: instant(0), clusterTimeMs: 0 }, 10_000);
  t.equal(remainingMs(clock, bound, instant(0), 60_000), 10_000 - 250 - 1_000);
  t.end();
});

t.test('a bound from a slow commit never shortens an older one that lasts longer', (t) => {
  const now = instant(10_000);
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 10_000 }),
      period,
      fc.integer({ min: 0, max: 10_000 }),
      period,
      (oneSent, onePeriod, otherSent, otherPeriod) => {
        const one = { from: instant(oneSent), periodMs: onePeriod };
        const other = { from: instant(otherSent), periodMs: otherPeriod };
        const longer = longerBound(clock, one, other, now);
        const left = remainingMs(clock, longer, now, 0);
        return left >= remainingMs(clock, one, now, 0) && left >= remainingMs(clock, other, now, 0);
      },
    ),
  );
  t.end();
});

t.test('elapsed time is the greater of awake time and uptime: suspend counts', (t) => {
  t.equal(elapsedMs(clock, instant(0), instant(500)), 500);
  const suspended = { awakeMs: 500, uptimeMs: 20_500 };
  t.equal(elapsedMs(clock, instant(0), suspended), 20_510, 'and rounding never helps');
  const rounded = { awakeMs: 505, uptimeMs: 510 };
  t.equal(elapsedMs(clock, instant(0), rounded), 505, 'a step of the coarse counter is no suspend');
  t.end();
});

t.test('elapsed time is never below real time, whatever the coarse counter rounds', (t) => {
  const ms = fc.double({ min: 0, max: 1e7, noNaN: true });
  fc.assert(
    fc.property(ms, ms, fc.double({ min: 30, max: 1e6, noNaN: true }), (start, run, suspended) => {
      const from = { awakeMs: start, uptimeMs: Math.floor(start / 10) * 10 };
      const end = start + run + suspended;
      const to = { awakeMs: start + run, uptimeMs: Math.floor(end / 10) * 10 };
      return elapsedMs(clock, from, to) >= run + suspended - 1e-6;
    }),
  );
  t.end();
});

t.test('the clock of this machine rises and its uptime is that of the system', async (t) => {
  const system = new SystemClock();
  const from = system.read();
  await new Promise<void>((resolve) => {
    system.startTimer(20, resolve);
  });
  const to = system.read();
  t.ok(to.awakeMs - from.awakeMs >= 19);
  t.ok(elapsedMs(system, from, to) >= 19);
  t.ok(to.uptimeMs >= from.uptimeMs);
  t.equal(system.randomId().length, 16);
  t.notSame(system.randomId(), system.randomId());
  const cancelled = system.startTimer(1, () => t.fail('cancelled'));
  cancelled.cancel();
  await new Promise<void>((resolve) => {
    system.startTimer(5, resolve);
  });
});

import fc from 'fast-check';
import t from 'tap';
import { Alarm } from '../../../src/client/alarm.js';
import { TIMER_MS_MAX } from '../../../src/client/bounds.js';
import type { Timer } from '../../../src/client/clock.js';
import { LoopDelay } from '../../../src/client/loop-delay.js';
import { FakeClock } from './fake-clock.js';

/** Records every timer that is started; the base refuses any above 2^31 − 1. */
class RecordingClock extends FakeClock {
  readonly asked: number[] = [];

  override startTimer(afterMs: number, onTime: () => void): Timer {
    this.asked.push(afterMs);
    return super.startTimer(afterMs, onTime);
  }
}

t.test(
  'a moment a hundred days away is waited for in pieces, and not a ms too early',
  async (t) => {
    const clock = new RecordingClock();
    const dueMs = clock.nowMs() + 100 * 60_000;
    const fired: number[] = [];
    const alarm = new Alarm(clock, () => {
      const leftMs = dueMs - clock.nowMs();
      if (leftMs > 0) return leftMs;
      fired.push(clock.nowMs());
      return Number.POSITIVE_INFINITY;
    });
    alarm.wakeWithin(100 * 86_400_000);
    t.ok(clock.asked.every((ms) => ms <= TIMER_MS_MAX));
    alarm.wakeWithin(dueMs - clock.nowMs());
    for (let minute = 0; minute < 101; minute += 1) await clock.advance(60_000);
    t.same(fired, [dueMs]);
    t.equal(clock.timers, 0);
  },
);

t.test('an earlier wish wins, a later one changes nothing, cancel forgets both', async (t) => {
  const clock = new FakeClock();
  const woken: number[] = [];
  const start = clock.nowMs();
  const alarm = new Alarm(clock, () => {
    woken.push(clock.nowMs() - start);
    return Number.POSITIVE_INFINITY;
  });
  alarm.wakeWithin(500);
  alarm.wakeWithin(100);
  alarm.wakeWithin(900);
  await clock.advance(1_000);
  t.same(woken, [100]);
  alarm.wakeWithin(50);
  alarm.cancel();
  await clock.advance(1_000);
  t.same(woken, [100]);
  alarm.wakeWithin(Number.POSITIVE_INFINITY);
  t.equal(clock.timers, 0);
});

t.test('whatever is asked, a timer is between 1 ms and the greatest single timer', (t) => {
  fc.assert(
    fc.property(fc.double({ min: -1e9, max: 1e15, noNaN: true }), (ms) => {
      const clock = new RecordingClock();
      new Alarm(clock, () => Number.POSITIVE_INFINITY).wakeWithin(ms);
      const [asked = 0] = clock.asked;
      return asked >= 1 && asked <= TIMER_MS_MAX && Number.isInteger(asked);
    }),
  );
  t.end();
});

t.test('the event-loop delay is the lateness of a timer, and decays', async (t) => {
  const clock = new FakeClock();
  let stalls = 0;
  const delay = new LoopDelay(clock, () => {
    stalls += 1;
  });
  t.equal(clock.timers, 0, 'nothing is measured while nothing is held');
  delay.addUser();
  delay.addUser();
  await clock.advance(1_000);
  t.equal(delay.ms, 0);
  t.equal(stalls, 0);
  clock.stall(400);
  await clock.advance(0);
  const peak = delay.ms;
  t.ok(peak >= 300 && peak <= 400, `${peak} is the stall less what the timer had left`);
  t.equal(stalls, 1);
  await clock.advance(1_000);
  t.ok(delay.ms <= peak * 0.55, `${delay.ms} after a second`);
  await clock.advance(20_000);
  t.ok(delay.ms < 1);
  delay.removeUser();
  t.equal(clock.timers, 1);
  delay.removeUser();
  t.equal(clock.timers, 0);
});

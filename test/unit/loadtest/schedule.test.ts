/** Open loops: operations are due by the clock, whatever the answers do, and none is lost. */
import t from 'tap';
import { Schedule } from '../../../loadtest/schedule.js';

/** Everything that is due at `nowMs`. */
function dueAt(schedule: Schedule, nowMs: number): number[] {
  const due: number[] = [];
  for (let at = schedule.next(nowMs); at >= 0; at = schedule.next(nowMs)) due.push(at);
  return due;
}

t.test('operation n is due n / rate after the beginning', async (t) => {
  const schedule = new Schedule(1_000);
  schedule.start(50);
  t.same(dueAt(schedule, 49.9), []);
  t.same(dueAt(schedule, 52.5), [50, 51, 52]);
  t.same(dueAt(schedule, 52.9), [], 'each once');
});

t.test('a stall does not move the schedule: what was due in it has its old moment', async (t) => {
  const schedule = new Schedule(2_000);
  schedule.start(0);
  dueAt(schedule, 1);
  const due = dueAt(schedule, 1_000);
  t.equal(due.length, 1_998);
  t.equal(due[0], 1.5);
  t.equal(due.at(-1), 1_000);
});

t.test('what could not be sent stays due at its moment', async (t) => {
  const schedule = new Schedule(1_000);
  schedule.start(0);
  t.equal(schedule.next(10), 0);
  t.equal(schedule.next(10), 1);
  schedule.putBack();
  t.equal(schedule.next(500), 1);
});

t.test('a rate that changes leaves what was due before it where it was', async (t) => {
  const schedule = new Schedule(1_000);
  schedule.start(0);
  schedule.setRate(3, 10_000);
  t.same(dueAt(schedule, 3.25), [0, 1, 2, 3, 3.1, 3.2]);
  schedule.setRate(4, 500);
  t.same(dueAt(schedule, 8), [3.3, 3.4, 3.5, 3.6, 3.7, 3.8, 3.9, 4, 6, 8]);
});

t.test('a rate of 0 is never due', async (t) => {
  const schedule = new Schedule(0);
  schedule.start(0);
  t.equal(schedule.next(0), -1);
  t.equal(schedule.next(1e9), -1);
});

/** Clock, entropy and turn scheduler do what their ports promise. */

import t from 'tap';
import { MonotonicClock } from '../../../src/io/clock.js';
import { SystemEntropy } from '../../../src/io/entropy.js';
import { TurnScheduler } from '../../../src/io/turn.js';

t.test('the clock counts µs and never goes back', (t) => {
  const clock = new MonotonicClock();
  const started = process.hrtime.bigint();
  const first = clock.nowUs();
  let last = first;
  let backwards = 0;
  while (last - first < 20_000) {
    const now = clock.nowUs();
    if (now < last) backwards += 1;
    last = now;
  }
  const elapsedUs = Number(process.hrtime.bigint() - started) / 1_000;
  t.equal(backwards, 0);
  t.ok(elapsedUs >= 20_000 && elapsedUs < 2_000_000, `${elapsedUs} µs of the kernel's clock`);
  t.end();
});

t.test('the wall clock does not move it', (t) => {
  const clock = new MonotonicClock();
  const real = Date.now;
  const before = clock.nowUs();
  Date.now = () => 0;
  t.ok(clock.nowUs() >= before);
  Date.now = real;
  t.end();
});

t.test('entropy fills 16 bytes at the offset and no others, never the same twice', (t) => {
  const entropy = new SystemEntropy();
  const draws = new Set<string>();
  const target = new Uint8Array(48);
  for (let draw = 0; draw < 2_000; draw++) {
    target.fill(0);
    entropy.fill16(target, 16);
    const around = [...target.subarray(0, 16), ...target.subarray(32)];
    if (around.some((byte) => byte !== 0)) t.fail('wrote beside its place');
    draws.add(Buffer.from(target.subarray(16, 32)).toString('hex'));
  }
  t.equal(draws.size, 2_000);
  const ones = [...draws].join('').replace(/[^f]/g, '').length;
  t.ok(ones > 3_200 && ones < 4_800, `${ones} of 64000 digits are f`);
  t.end();
});

t.test('several wishes are one turn, after what is readable now', async (t) => {
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    const turn = new TurnScheduler(() => {
      order.push('turn');
      resolve();
    });
    turn.soon();
    turn.soon();
    turn.after(50_000);
    order.push('wished');
    process.nextTick(() => order.push('tick'));
  });
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(order, ['wished', 'tick', 'turn'], 'one turn, never inside the wish');
});

t.test('soon overtakes after, and the turn takes both', async (t) => {
  let turns = 0;
  const turn = new TurnScheduler(() => {
    turns += 1;
  });
  turn.after(5_000);
  turn.soon();
  await new Promise((resolve) => setTimeout(resolve, 20));
  t.equal(turns, 1);
});

t.test('after waits about its time, and the earliest wish stands', async (t) => {
  const started = performance.now();
  const ranAt = await new Promise<number>((resolve) => {
    const turn = new TurnScheduler(() => resolve(performance.now()));
    turn.after(10_000_000);
    turn.after(30_000);
    turn.after(60_000);
  });
  t.ok(ranAt - started >= 29 && ranAt - started < 5_000, `${ranAt - started} ms`);
});

t.test('a turn may wish for the next, at once or less than half a ms away', async (t) => {
  let turns = 0;
  await new Promise<void>((resolve) => {
    const turn = new TurnScheduler(() => {
      turns += 1;
      if (turns === 100) resolve();
      else if (turns % 2 === 0) turn.soon();
      else turn.after(300);
    });
    turn.soon();
  });
  t.equal(turns, 100);
});

t.test('a closed scheduler runs nothing', async (t) => {
  let turns = 0;
  const turn = new TurnScheduler(() => {
    turns += 1;
  });
  turn.soon();
  turn.close();
  turn.soon();
  turn.after(1_000);
  await new Promise((resolve) => setTimeout(resolve, 10));
  t.equal(turns, 0);
});

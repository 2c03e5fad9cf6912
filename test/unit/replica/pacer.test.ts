/** The commit gap: who waits for company, and for how long. */
import t from 'tap';
import { BATCH_GAP_US_MAX } from '../../../src/limits.js';
import { Pacer } from '../../../src/replica/pacer.js';

/** Closes a batch of `operations` every `everyUs` for half a second; returns the time then. */
function run(pacer: Pacer, operations: number, everyUs: number, unanswered: number): number {
  let nowUs = 1_000_000;
  for (const endUs = nowUs + 500_000; nowUs < endUs; nowUs += everyUs) {
    pacer.onClosed(nowUs, operations, unanswered);
  }
  return nowUs - everyUs;
}

t.test('a first operation never waits', async (t) => {
  t.equal(new Pacer().waitUs(5, 1), 0);
});

t.test('a lone caller never waits, however fast it is answered', async (t) => {
  const pacer = new Pacer();
  const nowUs = run(pacer, 1, 250, 0);
  t.ok(pacer.waitUs(nowUs + 1, 1) <= 0);
});

t.test('callers who are all in the batch do not wait for others', async (t) => {
  const pacer = new Pacer();
  const nowUs = run(pacer, 256, 8_000, 0);
  t.ok(pacer.waitUs(nowUs + 100, 255) > 0, 'one is missing');
  t.ok(pacer.waitUs(nowUs + 100, 256) <= 0, 'all are there');
});

t.test('a steady stream waits for the whole gap', async (t) => {
  const pacer = new Pacer();
  const nowUs = run(pacer, 30, 5_000, 30);
  t.ok(Math.abs(pacer.waitUs(nowUs, 1) - BATCH_GAP_US_MAX) < BATCH_GAP_US_MAX / 10);
  t.ok(pacer.waitUs(nowUs + BATCH_GAP_US_MAX, 1) <= 0, 'and not longer');
});

t.test('a thin stream does not wait', async (t) => {
  const pacer = new Pacer();
  const nowUs = run(pacer, 1, 1_100, 3);
  t.equal(pacer.waitUs(nowUs + 1, 1), 0);
});

t.test('a crowd that has gone is forgotten', async (t) => {
  const pacer = new Pacer();
  run(pacer, 1_000, 8_000, 1_000);
  pacer.onClosed(4_000_000, 10, 0);
  pacer.onClosed(4_000_500, 10, 0);
  t.ok(pacer.waitUs(4_000_501, 10) <= 0);
});

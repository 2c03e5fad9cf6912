/** The names that loads lock: in turn, or by Zipf's law. */
import t from 'tap';
import { makeNames, RoundRobin, Zipf } from '../../../loadtest/load.js';

t.test('a name comes again only after every other', async (t) => {
  const names = new RoundRobin(makeNames(3));
  const taken = Array.from({ length: 7 }, () => Buffer.from(names.take()).toString());
  const wanted = ['load/0', 'load/1', 'load/2', 'load/0', 'load/1', 'load/2', 'load/0'];
  t.same(taken, wanted);
});

t.test('Zipf draws each rank in proportion to 1 / rank^0.99', async (t) => {
  const names = 1_000;
  const draws = 400_000;
  const zipf = new Zipf(names, 0.99, 7);
  const counts = new Float64Array(names);
  for (let i = 0; i < draws; i += 1) {
    const rank = zipf.draw();
    counts[rank] = (counts[rank] as number) + 1;
  }
  let sum = 0;
  for (let rank = 1; rank <= names; rank += 1) sum += rank ** -0.99;
  for (const rank of [1, 2, 5, 20, 100]) {
    const wanted = (rank ** -0.99 / sum) * draws;
    const found = counts[rank - 1] as number;
    // Five standard deviations: a seed is fixed, so this does not flicker.
    const apart = Math.abs(found - wanted);
    t.ok(apart < 5 * Math.sqrt(wanted), `rank ${rank}: ${found} draws, wanted ${wanted}`);
  }
  t.ok(
    counts.every((count, rank) => count > 0 || rank > 100),
    'no rank is out of reach',
  );
});

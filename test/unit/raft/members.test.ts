/**
 * Quorum arithmetic against its definition.
 */
import fc from 'fast-check';
import t from 'tap';
import { majorityOf, majorityValue } from '../../../src/core/raft/members.js';

t.test('a majority is more than half', (t) => {
  for (let voters = 1; voters <= 9; voters += 1) {
    t.ok(majorityOf(voters) * 2 > voters);
    t.ok((majorityOf(voters) - 1) * 2 <= voters);
  }
  t.end();
});

t.test('majorityValue: the greatest value that a majority reaches', (t) => {
  fc.assert(
    fc.property(fc.array(fc.nat(20), { minLength: 1, maxLength: 9 }), (values) => {
      const scratch = new Float64Array(9).fill(99);
      values.forEach((value, at) => {
        scratch[at] = value;
      });
      const found = majorityValue(scratch, values.length);
      const reach = (wanted: number): number => values.filter((value) => value >= wanted).length;
      return (
        reach(found) >= majorityOf(values.length) && reach(found + 1) < majorityOf(values.length)
      );
    }),
    { numRuns: 1_000 },
  );
  t.equal(majorityValue(new Float64Array(9), 0), 0, 'nobody reaches nothing');
  t.end();
});

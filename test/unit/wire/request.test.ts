import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { CommandKind } from '../../../src/core/locks/command.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import {
  encodeAcquire,
  encodeRelease,
  encodeRenew,
  encodeRequest,
} from '../../../src/wire/request.js';
import { holds, ids, integers, names, positives } from './oracle.js';

const absentOr = fc.oneof(fc.constant(-1), integers);
const correlations = fc.integer({ min: 1, max: 2 ** 32 - 1 });

function bytesBy(encode: (out: OutBuffer) => void): Uint8Array {
  const out = new OutBuffer();
  encode(out);
  return out.take().slice();
}

const orNil = (value: number): number | null => (value < 0 ? null : value);

t.test('the fast forms write the bytes of the general one', async (t) => {
  holds(
    t,
    fc.property(
      fc.tuple(correlations, absentOr, ids, positives, absentOr, names, absentOr, absentOr, ids),
      ([correlation, deadlineMs, session, sequence, mark, name, ttlMs, waitMs, lease]) => {
        const text = new TextEncoder().encode(name);
        const head = [sequence, session, orNil(mark), null] as const;
        const pairs: readonly [Uint8Array, Uint8Array][] = [
          [
            bytesBy((out) =>
              encodeAcquire(
                out,
                correlation,
                deadlineMs,
                session,
                sequence,
                mark,
                text,
                ttlMs,
                waitMs,
              ),
            ),
            bytesBy((out) =>
              encodeRequest(out, correlation, deadlineMs, [
                CommandKind.Acquire,
                ...head,
                name,
                orNil(ttlMs),
                orNil(waitMs),
              ]),
            ),
          ],
          [
            bytesBy((out) =>
              encodeRelease(out, correlation, deadlineMs, session, sequence, mark, lease),
            ),
            bytesBy((out) =>
              encodeRequest(out, correlation, deadlineMs, [CommandKind.Release, ...head, lease]),
            ),
          ],
          [
            bytesBy((out) => encodeRenew(out, correlation, deadlineMs, lease, ttlMs)),
            bytesBy((out) =>
              encodeRequest(out, correlation, deadlineMs, [
                CommandKind.Renew,
                null,
                null,
                null,
                null,
                lease,
                orNil(ttlMs),
              ]),
            ),
          ],
        ];
        for (const [fast, general] of pairs) assert.deepEqual(fast, general);
      },
    ),
    { numRuns: 300 },
  );
});

/** Rows come back as they were written, and what is cut or foreign is broken, never read. */

import fc from 'fast-check';
import t from 'tap';
import { RowReader, RowWriter } from '../../../src/collections/row-bytes.js';

const CELL = fc.oneof(
  fc.record({ kind: fc.constant('u8' as const), value: fc.nat(255) }),
  fc.record({ kind: fc.constant('u32' as const), value: fc.nat(0xffff_ffff) }),
  fc.record({
    kind: fc.constant('number' as const),
    value: fc.oneof(fc.maxSafeNat(), fc.constantFrom(-1, 0, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1)),
  }),
  fc.record({ kind: fc.constant('string' as const), value: fc.uint8Array({ maxLength: 300 }) }),
  fc.record({ kind: fc.constant('absent' as const), value: fc.constant(null) }),
);
type Cell = typeof CELL extends fc.Arbitrary<infer T> ? T : never;

function write(cells: readonly Cell[]): Uint8Array {
  const out = new RowWriter(1);
  for (const cell of cells) {
    if (cell.kind === 'string') out.string(cell.value, 0, cell.value.length);
    else if (cell.kind === 'absent') out.absent();
    else out[cell.kind](cell.value);
  }
  return out.take().slice();
}

function read(input: RowReader, { kind }: Cell): Cell['value'] {
  if (kind === 'u8' || kind === 'u32' || kind === 'number') return input[kind]();
  input.string();
  const { bytes, stringOffset, stringBytes } = input;
  return stringOffset < 0 ? null : bytes.slice(stringOffset, stringOffset + stringBytes);
}

t.test('what was written is read', async (t) => {
  fc.assert(
    fc.property(fc.array(CELL), (cells) => {
      const input = new RowReader(write(cells));
      const values = cells.map((cell) => read(input, cell));
      const wanted = cells.map(({ value }) => value);
      return JSON.stringify(values) === JSON.stringify(wanted) && input.isAtEnd && !input.isBroken;
    }),
  );
  t.pass();
});

t.test('a row that is cut short is broken, and reads as nothing', async (t) => {
  fc.assert(
    fc.property(fc.array(CELL, { minLength: 1 }), fc.nat(), (cells, cut) => {
      const bytes = write(cells);
      const input = new RowReader(bytes.subarray(0, cut % bytes.length));
      for (const cell of cells) read(input, cell);
      return input.isBroken;
    }),
  );
  t.pass();
});

t.test('a number that no double holds exactly is broken', async (t) => {
  const input = new RowReader(Uint8Array.of(0, 0x20, 0, 0, 0, 0, 0, 0));
  t.equal(input.number(), 0);
  t.ok(input.isBroken);
});

t.test('a string longer than any that is stored is broken', async (t) => {
  const bytes = new Uint8Array(4_000);
  bytes.set([0x0b, 0xb8]);
  const input = new RowReader(bytes);
  input.string();
  t.ok(input.isBroken);
});

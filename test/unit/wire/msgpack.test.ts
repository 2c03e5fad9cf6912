import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { NESTING_DEPTH_MAX } from '../../../src/limits.js';
import { unpackValue } from '../../../src/wire/msgpack.js';
import {
  arrayAt,
  booleanAt,
  INVALID,
  idAt,
  integerBytes,
  NIL,
  rangeAt,
  rangeHeaderBytes,
  skipAt,
  unsignedAt,
} from '../../../src/wire/msgpack-reader.js';
import { type PackValue, writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { isPlainText } from '../../../src/wire/utf8.js';
import {
  bitFlips,
  bytesOf,
  holds,
  integers,
  packOracle,
  packOurs,
  unpackOracle,
} from './oracle.js';

const DEPTH = NESTING_DEPTH_MAX;

/** Values of every type that we write, three levels deep. */
const values: fc.Arbitrary<PackValue> = fc
  .letrec<{ value: PackValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constant(null),
      fc.boolean(),
      integers,
      integers.map((value) => -value),
      fc.double({ noNaN: true }).filter((value) => !Number.isInteger(value) && value !== 0),
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.string({ minLength: 250, maxLength: 270 }),
      fc.uint8Array({ maxLength: 300 }),
      fc.array(tie('value'), { maxLength: 20 }),
      fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), tie('value'), { maxKeys: 20 }),
    ),
  }))
  .value.filter((value) => JSON.stringify(value)?.includes('"__proto__"') !== true);

/** -0 is written as 0. */
function withoutMinusZero(value: unknown): unknown {
  if (Object.is(value, -0)) return 0;
  if (Array.isArray(value)) return value.map(withoutMinusZero);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).map(([key, part]) => [key, withoutMinusZero(part)]);
  return Object.fromEntries(entries);
}

t.test('msgpackr reads what we write, and we read what msgpackr writes', async (t) => {
  holds(
    t,
    fc.property(values, (value) => {
      const ours = packOurs(value);
      const theirs = packOracle(value);
      const wanted = withoutMinusZero(value);
      assert.deepEqual(unpackOracle(ours), wanted);
      for (const bytes of [ours, theirs]) {
        assert.equal(skipAt(bytes, 0, bytes.length, DEPTH), bytes.length);
        assert.deepEqual(plain(unpackValue(bytes, 0, bytes.length)), wanted);
      }
    }),
    { numRuns: 500 },
  );
});

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
}

t.test('integers are written as integers in their smallest form', async (t) => {
  const forms: readonly (readonly [number, string])[] = [
    [0, '00'],
    [127, '7f'],
    [128, 'cc80'],
    [255, 'ccff'],
    [256, 'cd0100'],
    [65_535, 'cdffff'],
    [65_536, 'ce00010000'],
    [2 ** 31, 'ce80000000'],
    [2 ** 32 - 1, 'ceffffffff'],
    [2 ** 32, 'cf0000000100000000'],
    [2 ** 53 - 1, 'cf001fffffffffffff'],
  ];
  for (const [value, hex] of forms) t.same(packOurs(value), bytesOf(hex), String(value));
});

t.test('an integer is read in any width, signed or not', async (t) => {
  const fives = ['05', 'cc05', 'cd0005', 'ce00000005', 'cf0000000000000005'];
  fives.push('d005', 'd10005', 'd200000005', 'd30000000000000005');
  for (const hex of fives) {
    const bytes = bytesOf(hex);
    t.equal(unsignedAt(bytes, 0, bytes.length), 5, hex);
    t.equal(integerBytes(bytes[0] ?? 0), bytes.length, hex);
    for (let end = 0; end < bytes.length; end += 1) {
      t.equal(unsignedAt(bytes, 0, end), INVALID, `${hex} cut to ${end}`);
    }
  }
  t.equal(unsignedAt(bytesOf('c0'), 0, 1), NIL);
  t.equal(unsignedAt(bytesOf('cf001fffffffffffff'), 0, 9), 2 ** 53 - 1);
});

t.test('negative numbers, floats, and integers above 2^53 - 1 are no integers', async (t) => {
  const wrong = [
    'ff',
    'e0',
    'd0ff',
    'd1ffff',
    'd2ffffffff',
    'd3ffffffffffffffff',
    'c2',
    'a0',
    '90',
  ];
  wrong.push('ca3f800000', 'cb3ff0000000000000', 'cf0020000000000000', 'cfffffffffffffffff', 'c1');
  wrong.push('d30020000000000000', 'd4', 'c7', 'dc', 'de', 'c4');
  for (const hex of wrong) {
    const bytes = bytesOf(hex);
    t.equal(unsignedAt(bytes, 0, bytes.length), INVALID, hex);
  }
});

t.test('strings and binaries are read in any width and never past the end', async (t) => {
  for (const hex of ['a3616263', 'd903616263', 'da0003616263', 'db00000003616263', 'c403616263']) {
    const bytes = bytesOf(hex);
    t.equal(rangeAt(bytes, 0, bytes.length), 3, hex);
    t.equal(rangeHeaderBytes(bytes[0] ?? 0) + 3, bytes.length, hex);
    for (let end = 0; end < bytes.length; end += 1) {
      t.equal(rangeAt(bytes, 0, end), INVALID, `${hex} cut to ${end}`);
    }
  }
  t.equal(rangeAt(bytesOf('c0'), 0, 1), NIL);
  for (const hex of [
    '05',
    '90',
    'c3',
    'dbffffffff',
    'c6ffffffff',
    'dbffffffff61',
    'd9',
    'c8000161',
  ]) {
    const bytes = bytesOf(hex);
    t.equal(rangeAt(bytes, 0, bytes.length), INVALID, hex);
  }
});

t.test('an id is a binary of sixteen bytes', async (t) => {
  const id = '00112233445566778899aabbccddeeff';
  for (const header of ['c410', 'c50010', 'c600000010']) {
    const bytes = bytesOf(header + id);
    t.equal(idAt(bytes, 0, bytes.length), header.length / 2, header);
    t.equal(idAt(bytes, 0, bytes.length - 1), INVALID, 'cut');
  }
  for (const hex of [`b0${id}`, `d910${id}`, `c411${id}00`, `c40f${id.slice(2)}`, '05', '']) {
    t.equal(idAt(bytesOf(hex), 0, hex.length / 2), INVALID, hex);
  }
  t.equal(idAt(bytesOf('c0'), 0, 1), NIL);
});

t.test(
  'an array that claims more elements than there are bytes is refused at its head',
  async (t) => {
    for (const hex of ['ddffffffff', 'dcffff', '9f', 'dd0000000401', 'dc000201']) {
      const bytes = bytesOf(hex);
      t.equal(arrayAt(bytes, 0, bytes.length), INVALID, hex);
      t.equal(skipAt(bytes, 0, bytes.length, DEPTH), INVALID, hex);
    }
    t.equal(arrayAt(bytesOf('920102'), 0, 3), 2);
    t.equal(arrayAt(bytesOf('dc00020102'), 0, 5), 2);
    t.equal(arrayAt(bytesOf('dd000000020102'), 0, 7), 2);
    t.equal(arrayAt(bytesOf('c0'), 0, 1), NIL);
  },
);

t.test('booleans are nothing but true and false', async (t) => {
  t.equal(booleanAt(bytesOf('c3'), 0, 1), 1);
  t.equal(booleanAt(bytesOf('c2'), 0, 1), 0);
  t.equal(booleanAt(bytesOf('c0'), 0, 1), NIL);
  for (const hex of ['01', '00', '', 'a0']) t.equal(booleanAt(bytesOf(hex), 0, hex.length / 2), -2);
});

t.test('bombs are refused after a few bytes', async (t) => {
  const bombs: readonly (readonly [string, Uint8Array])[] = [
    ['10,000 nested arrays', new Uint8Array(10_000).fill(0x91)],
    ['10,000 nested maps', new Uint8Array(10_000).fill(0x81)],
    ['an array of 2^32 - 1', bytesOf('ddffffffff')],
    ['a map of 2^32 - 1', bytesOf('dfffffffff')],
    ['a string of 2^32 - 1', bytesOf('dbffffffff')],
    ['a binary of 2^32 - 1', bytesOf('c6ffffffff')],
    ['an array of arrays of 2^32 - 1', bytesOf(`dc0400${'ddffffffff'.repeat(1_024)}`)],
  ];
  for (const [name, bytes] of bombs) {
    t.equal(skipAt(bytes, 0, bytes.length, DEPTH), INVALID, name);
    t.equal(unpackValue(bytes, 0, bytes.length), undefined, name);
  }
});

t.test('nesting is followed to its bound and no further', async (t) => {
  const nested = (levels: number): Uint8Array => {
    const bytes = new Uint8Array(levels + 1).fill(0x91);
    bytes[levels] = 0xc0;
    return bytes;
  };
  t.equal(skipAt(nested(DEPTH), 0, DEPTH + 1, DEPTH), DEPTH + 1);
  t.equal(skipAt(nested(DEPTH + 1), 0, DEPTH + 2, DEPTH), INVALID);
});

t.test('extension types are refused', async (t) => {
  for (const hex of ['d40001', 'd5000102', 'c7010001', 'c800010001', 'd6ff00000000', 'c1']) {
    const bytes = bytesOf(hex);
    t.equal(skipAt(bytes, 0, bytes.length, DEPTH), INVALID, hex);
    t.equal(unpackValue(bytes, 0, bytes.length), undefined, hex);
  }
});

t.test('a cut value is refused at every point, a flipped bit never throws', async (t) => {
  holds(
    t,
    fc.property(values, (value) => {
      const bytes = packOurs(value);
      for (let end = 0; end < Math.min(bytes.length, 400); end += 1) {
        assert.equal(skipAt(bytes, 0, end, DEPTH), INVALID);
        assert.equal(unpackValue(bytes, 0, end), undefined);
      }
      for (const flipped of bitFlips(bytes.subarray(0, 60))) {
        const end = skipAt(flipped, 0, flipped.length, DEPTH);
        assert.ok(end === INVALID || (end > 0 && end <= flipped.length));
        unpackValue(flipped, 0, flipped.length);
      }
    }),
    { numRuns: 60 },
  );
});

t.test('a decoded binary is a copy', async (t) => {
  const bytes = packOurs([Uint8Array.of(1, 2, 3)]);
  const [binary] = unpackValue(bytes, 0, bytes.length) as [Uint8Array];
  bytes.fill(0);
  t.same(new Uint8Array(binary), Uint8Array.of(1, 2, 3));
});

t.test('a value may stand anywhere in a buffer', async (t) => {
  const out = new OutBuffer();
  writeValue(out, 'before');
  const start = out.length;
  writeValue(out, ['x'.repeat(5_000), 2 ** 40]);
  const end = out.length;
  writeValue(out, 'after');
  t.same(unpackValue(out.bytes, start, end), ['x'.repeat(5_000), 2 ** 40]);
  t.equal(unpackValue(out.bytes, start, out.length), undefined, 'two values are not one');
});

t.test('plain text is what a strict decoder accepts, without control characters', async (t) => {
  const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const isPlain = (bytes: Uint8Array): boolean => {
    try {
      return !/\p{Cc}/u.test(strict.decode(bytes));
    } catch {
      return false; // not valid UTF-8
    }
  };
  holds(
    t,
    fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
      assert.equal(isPlainText(bytes, 0, bytes.length), isPlain(bytes));
    }),
    { numRuns: 3_000 },
  );
  holds(
    t,
    fc.property(fc.string({ unit: 'binary', maxLength: 12 }), fc.nat(), (text, at) => {
      const bytes = new TextEncoder().encode(text);
      assert.equal(isPlainText(bytes, 0, bytes.length), isPlain(bytes));
      if (bytes.length > 0) bytes[at % bytes.length]! ^= 1 << (at & 7);
      assert.equal(isPlainText(bytes, 0, bytes.length), isPlain(bytes));
    }),
    { numRuns: 2_000 },
  );
  for (let first = 0xc0; first <= 0xff; first += 1) {
    for (let second = 0x70; second <= 0xff; second += 1) {
      const bytes = Uint8Array.of(first, second, 0x80, 0x80);
      for (const length of [2, 3, 4]) {
        const part = bytes.subarray(0, length);
        if (isPlainText(part, 0, length) !== isPlain(part)) t.fail(`${first} ${second} ${length}`);
      }
    }
  }
});

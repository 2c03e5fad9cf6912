import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import {
  decodeFounding,
  encodeFounding,
  type FoundingMember,
  type FoundingRecord,
} from '../../../src/wire/founding.js';
import {
  decodeFoundingRecord,
  decodeFoundingStored,
  decodeFoundingTell,
  encodeFoundingAsk,
  encodeFoundingRecord,
  encodeFoundingStored,
  encodeFoundingTell,
  isFoundingAsk,
} from '../../../src/wire/founding-talk.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { isPeerFrameIntact, PEER_HEADER_BYTES } from '../../../src/wire/peer.js';
import { bitFlips, holds, packOurs, unpackOracle } from './oracle.js';

const checksum = (bytes: Uint8Array): number => crc32(bytes);

function member(nodeId: number): FoundingMember {
  return {
    nodeId,
    diskId: new Uint8Array(16).fill(nodeId),
    peer: `10.0.0.${nodeId}:7600`,
    client: `10.0.0.${nodeId}:7400`,
    zone: nodeId % 2 === 0 ? null : 'zone-a',
  };
}

const RECORD: FoundingRecord = {
  clusterId: new Uint8Array(16).fill(0xc1),
  members: [1, 2, 3, 4, 5].map(member),
  settings: defaultSettings(),
  featureLevel: 1,
};

t.test('a record is read as it was written', async (t) => {
  t.same(decodeFounding(encodeFounding(RECORD)), RECORD);
});

t.test('equal records are equal bytes, whatever the order of members', async (t) => {
  const shuffled = { ...RECORD, members: [...RECORD.members].reverse() };
  t.same(encodeFounding(shuffled), encodeFounding(RECORD));
  const other = { ...RECORD, settings: { ...RECORD.settings, idleLocksMax: 5 } };
  t.notSame(encodeFounding(other), encodeFounding(RECORD));
});

t.test('a record that is valid but written otherwise is refused', async (t) => {
  const bytes = encodeFounding(RECORD);
  t.same([...bytes.subarray(0, 3)], [0x95, 1, 1]);
  const wider = Uint8Array.from([0x95, 0xcc, 1, ...bytes.subarray(2)]);
  t.same(unpackOracle(wider), unpackOracle(bytes));
  t.match(decodeFounding(wider), /one written form/);
});

/** The record's array with one part changed by `change`. */
function altered(change: (parts: PackValue[]) => void): Uint8Array {
  const parts = unpackOracle(encodeFounding(RECORD)) as PackValue[];
  change(parts);
  return packOurs(parts);
}

/** The record with one field of its second member changed. */
function withMember(field: number, value: PackValue): Uint8Array {
  return altered((parts) => {
    const rows = parts[3] as PackValue[][];
    rows[1]![field] = value;
  });
}

t.test('what is wrong with a record is said', async (t) => {
  const cases: readonly (readonly [RegExp, Uint8Array])[] = [
    [/no founding record/, new Uint8Array(0)],
    [/no founding record/, packOurs('x')],
    [/no founding record/, packOurs([1, 2, 3])],
    [/larger/, new Uint8Array(20_000)],
    [/format 2/, altered((parts) => parts.splice(0, 1, 2))],
    [/feature level/, altered((parts) => parts.splice(1, 1, 0))],
    [/cluster id/, altered((parts) => parts.splice(2, 1, new Uint8Array(15)))],
    [/no members/, altered((parts) => parts.splice(3, 1, []))],
    [/10 members/, altered((parts) => parts.splice(3, 1, new Array(10).fill(null)))],
    [/member 2/, withMember(0, 0)],
    [/member 2/, withMember(0, 70_000)],
    [/member 2/, withMember(1, 'disk')],
    [/member 2/, withMember(2, '')],
    [/member 2/, withMember(3, 'x'.repeat(261))],
    [/member 2/, withMember(4, 'z'.repeat(65))],
    [/order or twice/, withMember(0, 1)],
    [/disk id of another/, withMember(1, member(1).diskId)],
    [/settings/, altered((parts) => parts.splice(4, 1, null))],
    [/wanted 18/, altered((parts) => parts.splice(4, 1, []))],
    [
      /lacks the setting leaseTtlMsDefault/,
      altered((parts) => (parts[4] as PackValue[][]).reverse()),
    ],
    [
      /waitMsGreatest 0, which is out of range/,
      altered((parts) => (parts[4] as PackValue[][])[6]!.splice(1, 1, 0)),
    ],
  ];
  for (const [wanted, bytes] of cases) t.match(decodeFounding(bytes), wanted, String(wanted));
});

t.test('cut and damaged records are refused or another record, never thrown on', async (t) => {
  const bytes = encodeFounding(RECORD);
  for (let end = 0; end < bytes.length; end += 1) {
    if (typeof decodeFounding(bytes.slice(0, end)) !== 'string') t.fail(`cut to ${end}`);
  }
  for (const flipped of bitFlips(bytes)) {
    const record = decodeFounding(flipped);
    if (typeof record !== 'string') assert.deepEqual(encodeFounding(record), flipped);
  }
  t.pass('every cut and every flip');
});

function frameOf(encode: (out: OutBuffer) => void): Uint8Array {
  const out = new OutBuffer();
  encode(out);
  return out.take().slice();
}

t.test('unfounded nodes ask, tell, offer and answer', async (t) => {
  const start = PEER_HEADER_BYTES;
  const ask = frameOf((out) => encodeFoundingAsk(out, checksum));
  t.ok(isFoundingAsk(ask, start, ask.length));
  const bytes = encodeFounding(RECORD);
  for (const record of [bytes, null]) {
    const told = { nodeId: 3, diskId: new Uint8Array(16).fill(9), record };
    const tell = frameOf((out) => encodeFoundingTell(out, told, checksum));
    t.same(decodeFoundingTell(tell, start, tell.length), told);
    t.notOk(isFoundingAsk(tell, start, tell.length));
  }
  const offer = frameOf((out) => encodeFoundingRecord(out, bytes, checksum));
  t.ok(isPeerFrameIntact(offer, 0, offer.length, checksum));
  t.same(decodeFoundingRecord(offer, start, offer.length), bytes);
  const answer = { isStored: false, reason: 'another disk' };
  const stored = frameOf((out) => encodeFoundingStored(out, answer, checksum));
  t.same(decodeFoundingStored(stored, start, stored.length), answer);
  t.equal(decodeFoundingTell(stored, start, stored.length), null);
  t.equal(decodeFoundingRecord(stored, start, stored.length), null);
  t.equal(decodeFoundingStored(offer, start, offer.length), null);
});

t.test('founding bodies of any bytes never throw', async (t) => {
  holds(
    t,
    fc.property(fc.integer({ min: 4, max: 7 }), fc.uint8Array({ maxLength: 80 }), (kind, rest) => {
      const body = Uint8Array.from([kind, ...rest]);
      decodeFoundingTell(body, 0, body.length);
      decodeFoundingRecord(body, 0, body.length);
      decodeFoundingStored(body, 0, body.length);
      isFoundingAsk(body, 0, body.length);
    }),
    { numRuns: 500 },
  );
  const huge = new Uint8Array(40_000).fill(6);
  t.equal(decodeFoundingRecord(huge, 0, huge.length), null);
});

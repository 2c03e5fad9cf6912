import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { Entry, EntryKind, Message, MessageKind } from '../../../src/core/raft/message.js';
import { APPEND_ENTRIES_MAX, PEER_FRAME_BYTES_MAX } from '../../../src/limits.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import {
  decodeMessage,
  decodePeerHello,
  decodePeerHelloReply,
  encodeMessage,
  encodePeerHello,
  encodePeerHelloReply,
  isPeerFrameIntact,
  PEER_HEADER_BYTES,
  peerFrameBytesAt,
} from '../../../src/wire/peer.js';
import { bitFlips, bytesOf, holds, ids, integers } from './oracle.js';

const checksum = (bytes: Uint8Array): number => crc32(bytes);

interface MessageRecord {
  readonly kind: MessageKind;
  readonly from: number;
  readonly to: number;
  readonly fields: Partial<Message>;
  readonly entries: readonly { term: number; kind: EntryKind; data: Uint8Array }[];
}

const indexes = fc.nat({ max: 2 ** 50 });
const messages: fc.Arbitrary<Message> = fc
  .record<MessageRecord>({
    kind: fc.constantFrom(...Object.values(MessageKind)),
    from: fc.integer({ min: 1, max: 65_535 }),
    to: fc.integer({ min: 1, max: 65_535 }),
    fields: fc.record({
      term: integers,
      index: indexes,
      logTerm: integers,
      commit: integers,
      reject: fc.boolean(),
      hintIndex: integers,
      hintTerm: integers,
      context: integers,
      freeMiB: integers,
    }),
    entries: fc.array(
      fc.record({
        term: integers,
        kind: fc.constantFrom(...Object.values(EntryKind)),
        data: fc.uint8Array({ maxLength: 300 }),
      }),
      { maxLength: 6 },
    ),
  })
  .map(({ kind, from, to, fields, entries }) => {
    const message = Object.assign(new Message(kind, from, to), fields);
    message.entries = entries.map((entry, position) => {
      return new Entry(message.index + 1 + position, entry.term, entry.kind, entry.data);
    });
    return message;
  });

function frameOf(encode: (out: OutBuffer) => void): Uint8Array {
  const out = new OutBuffer();
  encode(out);
  return out.take().slice();
}

t.test('a message is read as it was sent, behind an intact checksum', async (t) => {
  holds(
    t,
    fc.property(messages, (message) => {
      const frame = frameOf((out) => encodeMessage(out, message, checksum));
      assert.equal(peerFrameBytesAt(frame, 0, frame.length), frame.length);
      assert.ok(isPeerFrameIntact(frame, 0, frame.length, checksum));
      const received = Buffer.concat([Buffer.from('pre'), frame]);
      const decoded = decodeMessage(received, 3 + PEER_HEADER_BYTES, received.length);
      received.fill(0); // the socket's buffer is used again
      assert.deepEqual(decoded, message);
      for (const entry of decoded?.entries ?? []) {
        assert.equal(entry.data.buffer.byteLength, entry.data.length, 'an exact copy');
      }
    }),
    { numRuns: 400 },
  );
});

t.test('messages behind one another keep their frames', async (t) => {
  const out = new OutBuffer();
  const entry = new Entry(8, 2, EntryKind.Batch, new Uint8Array(9_000).fill(3));
  const first = new Message(MessageKind.Append, 1, 2);
  first.index = 7;
  first.entries = [entry];
  const second = new Message(MessageKind.Heartbeat, 1, 3);
  encodeMessage(out, first, checksum);
  const middle = out.length;
  encodeMessage(out, second, checksum);
  t.equal(peerFrameBytesAt(out.bytes, 0, out.length), middle);
  t.equal(peerFrameBytesAt(out.bytes, middle, out.length), out.length - middle);
  t.same(decodeMessage(out.bytes, PEER_HEADER_BYTES, middle), first);
  t.same(decodeMessage(out.bytes, middle + PEER_HEADER_BYTES, out.length), second);
});

t.test('a flipped bit anywhere is seen by the checksum, and never throws without it', async (t) => {
  holds(
    t,
    fc.property(messages, (message) => {
      const frame = frameOf((out) => encodeMessage(out, message, checksum));
      const head = frame.subarray(0, 160);
      for (const flipped of bitFlips(head)) {
        const damaged = frame.slice();
        damaged.set(flipped);
        const size = peerFrameBytesAt(damaged, 0, damaged.length);
        const isSeen = size !== frame.length || !isPeerFrameIntact(damaged, 0, size, checksum);
        assert.ok(isSeen);
        decodeMessage(damaged, PEER_HEADER_BYTES, damaged.length);
      }
    }),
    { numRuns: 10 },
  );
});

t.test('cut and lengthened bodies are refused', async (t) => {
  holds(
    t,
    fc.property(messages, (message) => {
      const frame = frameOf((out) => encodeMessage(out, message, checksum));
      for (let end = PEER_HEADER_BYTES; end < frame.length; end += 1) {
        assert.equal(decodeMessage(frame, PEER_HEADER_BYTES, end), null);
      }
      const longer = Uint8Array.from([...frame, 0]);
      assert.equal(decodeMessage(longer, PEER_HEADER_BYTES, longer.length), null);
    }),
    { numRuns: 40 },
  );
});

t.test('unknown kinds, reserved bytes and unsafe numbers are refused', async (t) => {
  const message = new Message(MessageKind.Append, 1, 2);
  message.entries = [new Entry(1, 1, EntryKind.Batch, Uint8Array.of(1))];
  const frame = frameOf((out) => encodeMessage(out, message, checksum));
  const body = frame.slice(PEER_HEADER_BYTES);
  t.not(decodeMessage(body, 0, body.length), null);
  for (const [offset, value] of [
    [0, 1],
    [1, 0],
    [1, 15],
    [2, 2],
    [3, 1],
    [7, 1],
    [16, 0x20],
    [72, 0x20],
    [84, 0x20],
    [92, 0],
    [92, 4],
    [93, 1],
    [94, 1],
    [95, 1],
    [80, 0xff],
    [83, 0],
    [83, 2],
    [96, 0xff],
  ] as const) {
    const damaged = body.slice();
    damaged[offset] = value;
    t.equal(decodeMessage(damaged, 0, damaged.length), null, `byte ${offset} is ${value}`);
  }
});

t.test('entries are bounded before anything is allocated for them', async (t) => {
  const message = new Message(MessageKind.Append, 1, 2);
  const entry = new Entry(1, 1, EntryKind.NoOp, new Uint8Array(0));
  message.entries = Array.from({ length: APPEND_ENTRIES_MAX + 1 }, () => entry);
  const frame = frameOf((out) => encodeMessage(out, message, checksum));
  t.equal(decodeMessage(frame, PEER_HEADER_BYTES, frame.length), null);
  message.entries = message.entries.slice(1);
  const most = frameOf((out) => encodeMessage(out, message, checksum));
  t.equal(decodeMessage(most, PEER_HEADER_BYTES, most.length)?.entries.length, APPEND_ENTRIES_MAX);
});

t.test('a length of nothing, or of more than a frame may have, is refused', async (t) => {
  t.equal(peerFrameBytesAt(bytesOf('00000000 00000000'), 0, 8), -2);
  t.equal(peerFrameBytesAt(bytesOf('ffffffff 00000000'), 0, 8), -2);
  t.equal(peerFrameBytesAt(bytesOf('00000005 000000'), 0, 7), 0);
  const size = new Uint8Array(8);
  new DataView(size.buffer).setUint32(0, PEER_FRAME_BYTES_MAX);
  t.equal(peerFrameBytesAt(size, 0, 8), PEER_HEADER_BYTES + PEER_FRAME_BYTES_MAX);
  new DataView(size.buffer).setUint32(0, PEER_FRAME_BYTES_MAX + 1);
  t.equal(peerFrameBytesAt(size, 0, 8), -2);
});

t.test('a hello says who calls, from which cluster and disk', async (t) => {
  const hellos = fc.record({
    version: fc.nat({ max: 65_535 }),
    featureLevel: fc.nat({ max: 65_535 }),
    nodeId: fc.nat({ max: 2 ** 32 - 1 }),
    clusterId: ids,
    diskId: ids,
  });
  holds(
    t,
    fc.property(hellos, (hello) => {
      const frame = frameOf((out) => encodePeerHello(out, hello, checksum));
      assert.ok(isPeerFrameIntact(frame, 0, frame.length, checksum));
      assert.deepEqual(decodePeerHello(frame, PEER_HEADER_BYTES, frame.length), { ...hello });
      for (let end = PEER_HEADER_BYTES; end < frame.length; end += 1) {
        assert.equal(decodePeerHello(frame, PEER_HEADER_BYTES, end), null);
      }
      for (let offset = 0; offset < 5; offset += 1) {
        const damaged = frame.slice();
        damaged[PEER_HEADER_BYTES + offset]! ^= 0xff;
        assert.equal(decodePeerHello(damaged, PEER_HEADER_BYTES, damaged.length), null);
      }
    }),
  );
});

t.test('the reply to a hello is a verdict and plain words', async (t) => {
  const frame = frameOf((out) => {
    encodePeerHelloReply(out, { verdict: 260, text: 'node 3 is gone' }, checksum);
  });
  const reply = decodePeerHelloReply(frame, PEER_HEADER_BYTES, frame.length);
  t.same(reply, { verdict: 260, text: 'node 3 is gone' });
  const long = frameOf((out) => {
    encodePeerHelloReply(out, { verdict: 1, text: `é${'x'.repeat(400)}` }, checksum);
  });
  const cut = decodePeerHelloReply(long, PEER_HEADER_BYTES, long.length);
  t.equal(cut?.text, `?${'x'.repeat(254)}`);
  t.equal(decodePeerHelloReply(frame, PEER_HEADER_BYTES, PEER_HEADER_BYTES + 2), null);
  const wild = bytesOf('02 0001 41 00 0a 80');
  t.equal(decodePeerHelloReply(wild, 0, wild.length)?.text, 'A???', 'no control reaches a log');
});

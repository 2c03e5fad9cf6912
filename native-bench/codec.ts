/**
 * What reading and writing requests costs: in place, and by the MessagePack library.
 *
 * Owns: the same acquire for both. Used by: main.ts.
 */
import { Packr, Unpackr } from 'msgpackr';
import { Command, CommandKind } from '../src/core/locks/command.js';
import { FrameReader } from '../src/wire/frame.js';
import { decodeOperation } from '../src/wire/operation.js';
import { OutBuffer } from '../src/wire/out-buffer.js';
import { encodeAcquire } from '../src/wire/request.js';
import { cost, type Figure, nsOfCall } from './figure.js';

const FOR_MS = 400;
const ITEMS = 64;
const ID = Uint8Array.from({ length: 16 }, (_, index) => 255 - index);
const NAME = Buffer.from('load/54321');
/** Frame head and, behind it, a request's head, in the encoding that both sides use here. */
const REQUEST_HEAD_BYTES = 1 + 1 + 3;

export async function measure(): Promise<Figure[]> {
  const out = new OutBuffer();
  const encode = (): void => {
    out.length = 0;
    encodeAcquire(out, 7, 9_000, ID, 100_000, 99_999, NAME, 30_000, 0);
  };
  const encodeNs = nsOfCall(encode, FOR_MS);
  encode();
  const bytes = out.bytes.slice(0, out.length);
  const command = new Command();
  const decodeNs = nsOfCall(() => {
    if (decodeOperation(bytes, REQUEST_HEAD_BYTES, bytes.length, command) !== 0) {
      throw new Error('refused');
    }
  }, FOR_MS);
  const packr = new Packr({ useRecords: false });
  const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });
  const operation = [CommandKind.Acquire, 100_000, ID, 99_999, null, 'load/54321', 30_000, 0];
  const value = [7, 9_000, operation];
  let sink = 0;
  const packNs = nsOfCall(() => {
    sink += packr.pack(value).length;
  }, FOR_MS);
  const unpackNs = nsOfCall(() => {
    sink += (unpackr.unpack(bytes) as unknown[]).length;
  }, FOR_MS);
  const frame = packr.pack([1, 0, ...Array.from({ length: ITEMS }, () => value)]);
  const reader = new FrameReader();
  const frameNs = nsOfCall(() => {
    if (!reader.next()) reader.open(frame, 0, frame.length);
    sink += reader.correlation;
  }, FOR_MS);
  if (sink === 0) throw new Error('nothing was measured');
  return [
    cost('encode an acquire in place', 'ns', encodeNs),
    cost('encode an acquire, msgpackr', 'ns', packNs),
    cost('find a request in a frame of 64', 'ns', frameNs),
    cost('decode an acquire in place', 'ns', decodeNs),
    cost('decode an acquire, msgpackr', 'ns', unpackNs),
  ];
}

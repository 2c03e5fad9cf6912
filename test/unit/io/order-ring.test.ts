/** Frames come out of the ring whole and in order, however it wraps, and never overwrite one. */

import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import t from 'tap';
import { makeRing, RingReader, RingWriter } from '../../../src/io/log/order-ring.js';
import { LOG_RING_BYTES } from '../../../src/limits.js';

/** Puts a frame whose bytes tell its number. False when it has to take the port. */
function put(writer: RingWriter, number: number, length: number): boolean {
  const at = writer.tryBegin(length);
  if (at < 0) return false;
  writer.bytes.fill(number, at, at + length);
  writer.end();
  return true;
}

/** Takes the next frame: its length, and whether every byte tells `number`. */
function take(reader: RingReader, number: number): { length: number; isWhole: boolean } {
  const length = reader.peek();
  if (length <= 0) {
    if (length === 0) reader.takePortFrame();
    return { length, isWhole: length === 0 };
  }
  const bytes = new Uint8Array(length);
  reader.take(bytes);
  return { length, isWhole: bytes.every((byte) => byte === (number & 0xff)) };
}

t.test('an empty ring has no frame', (t) => {
  t.equal(new RingReader(makeRing()).peek(), -1);
  t.end();
});

t.test('any run of frames comes out as it went in', (t) => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ put: fc.integer({ min: 0, max: 300_000 }) }) },
    { weight: 1, arbitrary: fc.record({ put: fc.constantFrom(1, LOG_RING_BYTES / 4) }) },
    { weight: 5, arbitrary: fc.constant({ put: -1 }) },
  );
  const property = fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
    const ring = makeRing();
    const [writer, reader] = [new RingWriter(ring), new RingReader(ring)];
    const queue: { number: number; length: number }[] = [];
    let number = 0;
    for (const { put: length } of steps) {
      if (length >= 0) {
        number += 1;
        if (length > 0 && put(writer, number, length)) queue.push({ number, length });
        else {
          writer.putPortFrame();
          queue.push({ number, length: 0 });
        }
        continue;
      }
      const wanted = queue.shift();
      const found = take(reader, wanted?.number ?? 0);
      if (found.length !== (wanted?.length ?? -1) || (wanted && !found.isWhole)) return false;
    }
    return queue.every((wanted) => {
      const found = take(reader, wanted.number);
      return found.isWhole && found.length === wanted.length;
    });
  });
  fc.assert(property, { numRuns: 60 });
  t.pass('60 runs');
  t.end();
});

t.test('a full ring takes frames of length 0 for every order and request, then no more', (t) => {
  const ring = makeRing();
  const writer = new RingWriter(ring);
  let count = 0;
  while (put(writer, count, 10_000)) count += 1;
  t.ok(count > 350, `${count} frames of 10,000 bytes`);
  t.notOk(put(writer, 0, LOG_RING_BYTES), 'nor one of any size');
  for (let frame = 0; frame < 512; frame++) writer.putPortFrame();
  const reader = new RingReader(ring);
  for (let frame = 0; frame < count; frame++) {
    if (!take(reader, frame).isWhole) t.fail(`frame ${frame} was overwritten`);
  }
  for (let frame = 0; frame < 512; frame++) {
    if (take(reader, 0).length !== 0) t.fail(`port frame ${frame} was overwritten`);
  }
  t.equal(reader.peek(), -1);
  t.ok(put(writer, 1, 10_000), 'and there is room again');
  const full = new RingWriter(makeRing());
  t.throws(() => {
    for (;;) full.putPortFrame();
  }, /the ring to the log thread is full/);
  t.end();
});

t.test('a sleeping reader on another thread is woken for every frame', async (t) => {
  const ring = makeRing();
  const module = new URL('../../../src/io/log/order-ring.js', import.meta.url).href;
  const source = `
    import { parentPort, workerData } from 'node:worker_threads';
    import { RingReader } from '${module}';
    const reader = new RingReader(workerData);
    let next = 1;
    for (;;) {
      const length = reader.peek();
      if (length < 0) { reader.wait(); continue; }
      if (length === 0) break;
      const bytes = new Uint8Array(length);
      reader.take(bytes);
      if (bytes.some((byte) => byte !== (next & 0xff))) throw new Error('frame ' + next);
      parentPort.postMessage(next);
      next += 1;
    }`;
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const worker = new Worker(url, { workerData: ring });
  const ended = new Promise((resolve, reject) => {
    worker.once('error', reject).once('exit', resolve);
  });
  const writer = new RingWriter(ring);
  let seen = 0;
  await new Promise<void>((resolve) => {
    // One frame at a time: the reader is asleep again before the next.
    worker.on('message', (number: number) => {
      seen = number;
      if (number === 3_000) resolve();
      else put(writer, number + 1, 1 + ((number * 701) % 9_000));
    });
    put(writer, 1, 100);
  });
  t.equal(seen, 3_000);
  writer.putPortFrame();
  t.equal(await ended, 0);
});

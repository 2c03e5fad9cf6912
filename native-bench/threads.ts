/**
 * What another thread costs: a hand-off there and back, and a checksum made there or here.
 *
 * Owns: one worker, this same file. By postMessage the event loops of both sides wake up; by
 * Atomics the worker sleeps in the kernel and this thread spins until the answer stands in shared
 * memory. Used by: main.ts.
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { cost, type Figure, nsOfCall, paced, rate } from './figure.js';

const FOR_MS = 800;
/** A batch of some 250 operations. */
const BATCH_BYTES = 24_000;
const ASKED = 0;
const ANSWERED = 1;
const SUM = 2;
const CONTROL_BYTES = 64;
/** In the place of a count of the asked: the worker ends. */
const END = -1;

interface Given {
  readonly control: SharedArrayBuffer;
  readonly data: SharedArrayBuffer;
}

/** The worker: answers messages, then serves through shared memory until it is told to end. */
function serve(given: Given): void {
  const control = new Int32Array(given.control);
  const data = new Uint8Array(given.data);
  parentPort?.on('message', (message: number | 'share') => {
    if (message !== 'share') {
      parentPort?.postMessage(message);
      return;
    }
    parentPort?.postMessage(message);
    for (let seen = 0; ; ) {
      Atomics.wait(control, ASKED, seen);
      seen = Atomics.load(control, ASKED);
      if (seen === END) break;
      Atomics.store(control, SUM, crc32(data) | 0);
      Atomics.store(control, ANSWERED, seen);
    }
    parentPort?.close();
  });
}

function answer(worker: Worker): Promise<void> {
  return new Promise((resolve) => worker.once('message', () => resolve()));
}

export async function measure(): Promise<Figure[]> {
  const given: Given = {
    control: new SharedArrayBuffer(CONTROL_BYTES),
    data: new SharedArrayBuffer(BATCH_BYTES),
  };
  const worker = new Worker(new URL(import.meta.url), { workerData: given });
  const posted = await paced(() => {
    worker.postMessage(1);
    return answer(worker);
  }, FOR_MS);
  worker.postMessage('share');
  await answer(worker);
  const control = new Int32Array(given.control);
  const data = new Uint8Array(given.data).fill(7);
  let asked = 0;
  const handOver = (): void => {
    asked += 1;
    Atomics.store(control, ASKED, asked);
    Atomics.notify(control, ASKED);
    while (Atomics.load(control, ANSWERED) !== asked);
  };
  const shared = await paced(handOver, FOR_MS);
  const there = Atomics.load(control, SUM);
  const here = crc32(data) | 0;
  if (there !== here) throw new Error('the two threads disagree about a checksum');
  Atomics.store(control, ASKED, END);
  Atomics.notify(control, ASKED);
  const block = Buffer.alloc(BATCH_BYTES, 7);
  const inlineNs = nsOfCall(() => {
    crc32(block);
  }, FOR_MS / 2);
  return [
    cost('thread and back, postMessage', 'µs', posted.p50Us),
    rate('thread and back, postMessage', '/s', posted.perSecond),
    cost('thread and back, Atomics, with the checksum', 'µs', shared.p50Us),
    cost('checksum of 24 kB here', 'µs', inlineNs / 1_000),
  ];
}

if (!isMainThread && workerData !== null) serve(workerData as Given);

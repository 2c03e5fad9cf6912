import t from 'tap';
import { Ambient } from '../../../src/client/ambient.js';
import { Call } from '../../../src/client/call.js';
import { Connection, type ConnectionListener } from '../../../src/client/connection.js';
import type { TransportEvents } from '../../../src/client/transport.js';
import { FRAME_OPERATIONS_MAX } from '../../../src/limits.js';
import {
  beginFrame,
  endFrame,
  FRAME_HEADER_BYTES,
  FrameReader,
  frameBytesAt,
} from '../../../src/wire/frame.js';
import { FrameAssembler } from '../../../src/wire/frame-assembler.js';
import { writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import type { Reply } from '../../../src/wire/response.js';
import { FakeClock, settle } from './fake-clock.js';

class Bench implements ConnectionListener {
  readonly clock = new FakeClock();
  readonly ambient = new Ambient(this.clock);
  readonly writes: Uint8Array[] = [];
  readonly replies: [number, Reply][] = [];
  readonly notices: Reply[] = [];
  readonly lost: Call[] = [];
  hasRoom = true;
  isClosed = false;
  events: TransportEvents | undefined;
  readonly connection: Connection;

  constructor() {
    const dial = (_endpoint: unknown, events: TransportEvents) => {
      this.events = events;
      return {
        write: (bytes: Uint8Array) => {
          this.writes.push(bytes);
          return this.hasRoom;
        },
        close: () => {
          this.isClosed = true;
        },
      };
    };
    this.connection = new Connection(this.ambient, dial, { host: 'n', port: 1 }, this);
  }

  onReply(_connection: Connection, call: Call, reply: Reply): void {
    this.replies.push([Number(call.spec.operation[1]), reply]);
    if (reply.code !== 1) call.settle(reply);
  }

  onNotice(_connection: Connection, reply: Reply): void {
    this.notices.push(reply);
  }

  onClosed(_connection: Connection, calls: Call[]): void {
    this.lost.push(...calls);
  }

  send(tag: number, deadlineMs = 1_000): Call {
    const call = new Call(this.ambient, { operation: [6, tag], deadlineMs, isLogged: true });
    this.connection.send(call);
    return call;
  }

  /** What was written: for each frame, correlation, deadline and tag of each item. */
  frames(): number[][][] {
    const assembler = new FrameAssembler(frameBytesAt);
    const frames: number[][][] = [];
    for (const bytes of this.writes) {
      assembler.push(bytes);
      while (assembler.next()) {
        const reader = new FrameReader();
        reader.open(assembler.bytes, assembler.frameStart + FRAME_HEADER_BYTES, assembler.frameEnd);
        const items: number[][] = [];
        while (reader.next()) items.push([reader.correlation, reader.deadlineMs]);
        frames.push(items);
      }
    }
    return frames;
  }

  /** One frame with these replies: correlation and code. */
  reply(...items: [number, number][]): Uint8Array {
    const out = new OutBuffer();
    const position = beginFrame(out);
    for (const [correlation, code] of items) writeValue(out, [correlation, code, 5, false]);
    endFrame(out, position, items.length);
    return out.take();
  }
}

t.test('nothing is written before the stream is open, then everything in one write', async (t) => {
  const bench = new Bench();
  for (let tag = 1; tag <= 3; tag += 1) bench.send(tag);
  await settle();
  t.equal(bench.writes.length, 0);
  bench.events?.onOpen();
  t.equal(bench.writes.length, 1);
  t.same(bench.frames(), [
    [
      [1, 1_000],
      [2, 1_000],
      [3, 1_000],
    ],
  ]);
});

t.test('the deadline that travels is what is left when it is written', async (t) => {
  const bench = new Bench();
  bench.send(1, 900);
  bench.send(2, 100_000);
  await bench.clock.advance(250);
  bench.events?.onOpen();
  t.same(bench.frames(), [
    [
      [1, 650],
      [2, 60_000],
    ],
  ]);
});

t.test('a call that was settled before it was written is not written', async (t) => {
  const bench = new Bench();
  const call = bench.send(1, 100);
  bench.send(2);
  await bench.clock.advance(200);
  t.equal(call.isSettled, true);
  t.equal(call.wasSent, false);
  bench.events?.onOpen();
  t.same(bench.frames(), [[[2, 800]]]);
});

t.test('a stream that is full is written again when it drains, in one write', async (t) => {
  const bench = new Bench();
  bench.events?.onOpen();
  bench.hasRoom = false;
  bench.send(1);
  await settle();
  t.equal(bench.writes.length, 1);
  bench.send(2);
  await settle();
  bench.send(3);
  await settle();
  t.equal(bench.writes.length, 1, 'held back');
  bench.hasRoom = true;
  bench.events?.onDrain();
  t.equal(bench.writes.length, 2);
});

t.test('more requests than a frame takes are several frames in one write', async (t) => {
  const bench = new Bench();
  bench.events?.onOpen();
  for (let tag = 1; tag <= FRAME_OPERATIONS_MAX + 10; tag += 1) bench.send(tag);
  await settle();
  t.equal(bench.writes.length, 1);
  t.same(
    bench.frames().map((items) => items.length),
    [FRAME_OPERATIONS_MAX, 10],
  );
});

t.test('replies are read at every split of the stream', async (t) => {
  const whole = new Bench().reply([2, 0], [1, 0], [3, 1], [3, 0]);
  for (let cut = 0; cut <= whole.length; cut += 1) {
    const bench = new Bench();
    bench.events?.onOpen();
    for (let tag = 1; tag <= 3; tag += 1) bench.send(tag);
    await new Promise(process.nextTick);
    bench.events?.onBytes(whole.subarray(0, cut));
    bench.events?.onBytes(whole.subarray(cut));
    const order = bench.replies.map(([tag, reply]) => `${tag}:${reply.code}`);
    if (order.join(' ') !== '2:0 1:0 3:1 3:0') t.fail(`cut at ${cut}: ${order}`);
    if (bench.connection.unanswered !== 0) t.fail(`cut at ${cut}: unanswered calls`);
  }
  t.pass('all splits');
});

t.test('a queued reply keeps the call, a final one ends it, a third is late', async (t) => {
  const bench = new Bench();
  bench.events?.onOpen();
  bench.send(1);
  await settle();
  bench.events?.onBytes(bench.reply([1, 1]));
  t.equal(bench.connection.unanswered, 1);
  bench.events?.onBytes(bench.reply([1, 0], [1, 0], [77, 0]));
  t.equal(bench.connection.unanswered, 0);
  t.equal(bench.ambient.counters.lateReplies, 2);
});

t.test('a notice is told apart from replies', async (t) => {
  const bench = new Bench();
  bench.events?.onOpen();
  bench.events?.onBytes(bench.reply([0, 47]));
  t.equal(bench.notices[0]?.code, 47);
  t.equal(bench.ambient.counters.notices, 1);
});

t.test('whatever cannot be read ends the connection and hands its calls over', async (t) => {
  const broken = [
    [0, 0, 0, 0],
    [0xff, 0xff, 0xff, 0xff],
    [0, 0, 0, 1, 0xc1],
    [0, 0, 0, 3, 0x92, 2, 0],
    [0, 0, 0, 4, 0x93, 1, 0, 0x90],
    [0, 0, 0, 8, 0x93, 1, 0, 0x94, 0xa1, 0x61, 0, 0xc2],
  ];
  for (const bytes of broken) {
    const bench = new Bench();
    bench.events?.onOpen();
    const call = bench.send(1);
    await settle();
    bench.events?.onBytes(new Uint8Array(bytes));
    t.equal(bench.isClosed, true);
    t.same(bench.lost, [call]);
    t.equal(call.mayHaveEffect, true);
    t.equal(bench.ambient.counters.badFrames, 1);
    bench.events?.onBytes(bench.reply([1, 0]));
    t.equal(bench.replies.length, 0, 'nothing is read after the end');
  }
});

t.test('calls come back in the order they were sent, unsent ones without an effect', async (t) => {
  const bench = new Bench();
  const unsent = [bench.send(1), bench.send(2)];
  await settle();
  bench.connection.close('test');
  t.same(bench.lost, unsent);
  t.ok(bench.lost.every((call) => !call.mayHaveEffect));
  bench.connection.close('again');
  t.equal(bench.lost.length, 2);
});

/** What is seen of a traced request from outside a replica: each time, whatever becomes of it. */

import t from 'tap';
import { Entry, EntryKind } from '../../../src/core/raft/message.js';
import { Connection } from '../../../src/replica/connection.js';
import type { AppendOrder, Transport } from '../../../src/replica/ports.js';
import {
  TRACED_REQUESTS_MAX,
  type TracedRequest,
  TracedRequests,
  traceAt,
} from '../../../src/server/traced-requests.js';
import { EntryWriter } from '../../../src/wire/entry.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { beginFrame, endFrame, FRAME_HEADER_BYTES } from '../../../src/wire/frame.js';
import { type PackValue, writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { CommandKind, encodeRequest } from '../../../src/wire/request.js';

const QUIET: Transport = {
  backlogBytes: 0,
  flush: () => undefined,
  close: () => undefined,
  pauseReading: () => undefined,
  resumeReading: () => undefined,
};

function traceId(fill: number): Uint8Array {
  return new Uint8Array(16).fill(fill);
}

function acquire(request: string, trace: Uint8Array | null): PackValue[] {
  return [CommandKind.Acquire, request, null, null, trace, 'jobs/1', 1_000, 0];
}

function bytesOf(operation: readonly PackValue[]): Uint8Array {
  const out = new OutBuffer();
  writeValue(out, operation);
  return out.take();
}

function batchOf(index: number, operations: readonly (readonly PackValue[])[]): Entry {
  const writer = new EntryWriter();
  for (const operation of operations) {
    const bytes = bytesOf(operation);
    writer.addOperation(1, 1, bytes, 0, bytes.length);
  }
  return new Entry(index, 7, EntryKind.Batch, writer.close(5_000, 1, new Uint8Array(16)));
}

function orderOf(entries: readonly Entry[]): AppendOrder {
  return { appendId: 1, resetTo: 0, truncateFrom: 0, entries, hardState: null, commitIndex: 0 };
}

/** TracedRequests over a clock that the test moves. */
function ground() {
  const answered: TracedRequest[] = [];
  const waited: TracedRequest[] = [];
  const world = { nowMs: 1_000, asked: 0 };
  const requests = new TracedRequests({
    sink: {
      onAnswered: (request) => answered.push(request),
      onWaited: (request) => waited.push(request),
    },
    nowMs: () => {
      world.asked += 1;
      return world.nowMs;
    },
  });
  const connection = new Connection(1, 1, QUIET, '');
  const receive = (...sent: (readonly [number, readonly PackValue[]])[]): void => {
    const out = new OutBuffer();
    const position = beginFrame(out);
    for (const [correlation, operation] of sent) encodeRequest(out, correlation, 500, operation);
    endFrame(out, position, sent.length);
    requests.onFrame(connection, out.bytes, FRAME_HEADER_BYTES, out.length);
  };
  const reply = (correlation: number, code: number, time: number | null): void => {
    writeValue(connection.beginItem(), [correlation, code, time, false, ['x', { y: 1 }]]);
    connection.endItem();
  };
  const flush = (): void => {
    connection.sealFrame();
    requests.onFlush(connection);
    connection.out.clear();
  };
  return { requests, world, answered, waited, connection, receive, reply, flush };
}

t.test('a request is followed from its receipt over append and commit to its reply', async (t) => {
  const { requests, world, answered, connection, receive, reply, flush } = ground();
  const [traced, plain] = [acquire('a', traceId(9)), acquire('b', null)];
  receive([1, plain], [2, traced], [3, [CommandKind.Get, 'jobs/1', false, null]]);
  world.nowMs = 1_010;
  requests.onOrdered(orderOf([batchOf(41, [plain, traced])]));
  world.nowMs = 1_020;
  requests.onTurn();
  flush();
  t.equal(answered.length, 0, 'that turn had no reply');
  world.nowMs = 1_035;
  requests.onTurn();
  reply(1, ErrorCode.Ok, 9_000);
  reply(2, ErrorCode.Ok, 9_000);
  world.nowMs = 1_040;
  flush();
  t.equal(answered.length, 1, 'only what carries a trace id');
  t.match(answered[0], {
    command: CommandKind.Acquire,
    index: 41,
    term: 7,
    receivedMs: 1_000,
    orderedMs: 1_010,
    appliesMs: 1_035,
    repliedMs: 1_040,
    code: ErrorCode.Ok,
    isDecided: true,
  });
  t.equal(answered[0]?.traceId.toString('hex'), '09'.repeat(16));
  const { asked } = world;
  requests.onTurn();
  requests.onOrdered(orderOf([batchOf(42, [traced])]));
  requests.onFlush(connection);
  t.equal(world.asked, asked, 'with nothing under way not even the time is asked');
});

t.test('a refusal before the log has neither commit nor entry', async (t) => {
  const { requests, world, answered, receive, reply, flush } = ground();
  const traced = acquire('a', traceId(9));
  receive([2, traced]);
  world.nowMs = 1_002;
  reply(2, ErrorCode.NotLeader, null);
  flush();
  // The new leader logs the same bytes when the caller asks it: here that is another's entry.
  requests.onOrdered(orderOf([batchOf(50, [traced])]));
  t.match(answered, [{ index: 0, appliesMs: 0, isDecided: false, repliedMs: 1_002 }]);
});

t.test('a session that is gone is answered from the state, without an entry', async (t) => {
  const { requests, answered, receive, reply, flush } = ground();
  receive([2, acquire('a', traceId(9))]);
  requests.onTurn();
  reply(2, ErrorCode.SessionExpired, 9_000);
  flush();
  t.match(answered, [{ index: 0, appliesMs: 0, isDecided: true }]);
});

t.test(
  'two requests of one trace are told apart by their bytes, resent ones by order',
  async (t) => {
    const { requests, answered, receive, reply, flush } = ground();
    const [first, second] = [acquire('a', traceId(9)), acquire('b', traceId(9))];
    receive([1, first], [2, second], [3, first]);
    requests.onOrdered(orderOf([batchOf(41, [second, first])]));
    requests.onOrdered(orderOf([batchOf(42, [first])]));
    for (const correlation of [1, 2, 3]) reply(correlation, ErrorCode.Ok, 9_000);
    flush();
    t.same(
      answered.map(({ correlation, index }) => [correlation, index]),
      [
        [1, 41],
        [2, 41],
        [3, 42],
      ],
    );
  },
);

t.test('a queued acquire is answered, and waits', async (t) => {
  const { world, answered, waited, receive, reply, flush } = ground();
  receive([2, acquire('a', traceId(9))]);
  reply(2, ErrorCode.Queued, 9_000);
  world.nowMs = 1_100;
  flush();
  t.match(answered, [{ code: ErrorCode.Queued, repliedMs: 1_100 }]);
  reply(5, ErrorCode.Ok, 9_000);
  flush();
  t.equal(waited.length, 0, 'that was another');
  reply(2, ErrorCode.Ok, 12_000);
  world.nowMs = 3_000;
  flush();
  t.match(waited, [{ waitCode: ErrorCode.Ok, repliedMs: 1_100, waitedMs: 3_000 }]);
  reply(2, ErrorCode.Ok, 12_000);
  flush();
  t.same([answered.length, waited.length], [1, 1], 'once each');
});

t.test('a caller that hangs up is told of without a code; one that waits is not', async (t) => {
  const { requests, answered, waited, connection, receive, reply, flush } = ground();
  receive([1, acquire('a', traceId(9))], [2, acquire('b', traceId(8))]);
  reply(1, ErrorCode.Queued, 9_000);
  flush();
  requests.onClosed(connection);
  requests.onClosed(connection);
  t.same(
    answered.map(({ correlation, code }) => [correlation, code]),
    [
      [1, ErrorCode.Queued],
      [2, -1],
    ],
  );
  t.equal(waited.length, 0);
});

t.test('what was logged and cut again is not taken for committed', async (t) => {
  const { requests, answered, receive, reply, flush } = ground();
  const traced = acquire('a', traceId(9));
  receive([2, traced]);
  requests.onOrdered(orderOf([batchOf(41, [traced])]));
  requests.onTurn();
  reply(2, ErrorCode.NotLeader, null);
  flush();
  t.match(answered, [{ index: 41, appliesMs: 0, isDecided: false }]);
});

t.test('past the bound requests are counted, not followed, until others have ended', async (t) => {
  const { requests, answered, connection, receive } = ground();
  for (let at = 1; at <= TRACED_REQUESTS_MAX + 3; at += 1) {
    receive([at, acquire(`r-${at}`, traceId(9))]);
  }
  t.equal(requests.unfollowed, 3);
  requests.onClosed(connection);
  t.equal(answered.length, TRACED_REQUESTS_MAX);
  receive([1, acquire('again', traceId(9))]);
  t.equal(requests.unfollowed, 3);
});

t.test('bytes that are no operation have no trace id', async (t) => {
  const whole = bytesOf(acquire('a', traceId(9)));
  t.ok(traceAt(whole, 0, whole.length) > 0);
  for (let end = 0; end < 8; end += 1) t.ok(traceAt(whole, 0, end) < 0, `cut at ${end}`);
  for (const value of [[], [36, 'a', null, null], [36, 'a', null, null, 'text'], 7, null]) {
    const out = new OutBuffer();
    writeValue(out, value as PackValue);
    t.ok(traceAt(out.bytes, 0, out.length) < 0, JSON.stringify(value));
  }
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { CommandKind, RequestKind } from '../../../src/core/locks/command.js';
import type { LockReading } from '../../../src/core/locks/readings.js';
import { COMMAND_ROWS, RESERVED_COMMANDS } from '../../../src/wire/commands.js';
import { faultField } from '../../../src/wire/fault.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { decodeQuery, Query, queryFieldsMax } from '../../../src/wire/query.js';
import {
  encodeAttached,
  encodeCheck,
  encodeHello,
  encodeLock,
  encodeLockPage,
  encodeMembers,
  encodePong,
  encodeStatus,
} from '../../../src/wire/query-reply.js';
import {
  bitFlips,
  freeIds,
  holds,
  ids,
  integers,
  names,
  packOracle,
  packOurs,
  positives,
  unpackOracle,
} from './oracle.js';

const UTF8 = new TextEncoder();
const ID = new Uint8Array(16).fill(0xfe);

function decode(operation: readonly PackValue[]): Query {
  const query = new Query();
  const bytes = packOurs(operation);
  assert.equal(faultField(decodeQuery(bytes, 0, bytes.length, query)), '');
  bytes.fill(0); // the query owns what it keeps
  return query;
}

function faultOf(operation: readonly PackValue[]): string {
  const bytes = packOurs(operation);
  return faultField(decodeQuery(bytes, 0, bytes.length, new Query()));
}

function bytesOfValue(value: PackValue): Uint8Array {
  return typeof value === 'string' ? UTF8.encode(value) : (value as Uint8Array);
}

const stale = fc.option(fc.boolean(), { nil: null });
const valid: fc.Arbitrary<PackValue[]> = fc.oneof(
  fc.tuple(
    fc.constant(CommandKind.Hello),
    positives,
    names.filter((n) => UTF8.encode(n).length <= 64),
    ids,
  ),
  fc.constantFrom<PackValue[]>([CommandKind.Ping], [CommandKind.Members], [CommandKind.Status]),
  fc.tuple(fc.constant(CommandKind.SessionAttach), ids, ids),
  fc.tuple(fc.constant(CommandKind.Get), names, stale, fc.option(integers, { nil: null })),
  fc.tuple(
    fc.constant(CommandKind.List),
    names,
    fc.option(names, { nil: null }),
    fc.integer({ min: 1, max: 250 }),
    stale,
  ),
  fc.tuple(fc.constant(CommandKind.Lookup), ids, fc.oneof(positives, freeIds)),
  fc.tuple(fc.constant(CommandKind.Check), names, integers),
  fc.tuple(fc.constant(CommandKind.Transfer), positives),
  fc.tuple(fc.constant(CommandKind.Watch), names, fc.constant(null), positives),
  fc.tuple(fc.constant(CommandKind.Watch), fc.constant(null), names, fc.constant(null), stale),
  fc.tuple(fc.constant(CommandKind.Unwatch), fc.integer({ min: 1, max: 2 ** 32 - 1 })),
  fc.tuple(fc.constant(CommandKind.Abandon), fc.integer({ min: 1, max: 2 ** 32 - 1 }), positives),
);

t.test('a query is read as it was written, by us or by msgpackr', async (t) => {
  holds(
    t,
    fc.property(valid, (operation) => {
      const ours = decode(operation);
      const bytes = packOracle(operation);
      const theirs = new Query();
      assert.equal(decodeQuery(bytes, 0, bytes.length, theirs), 0);
      assert.deepEqual(theirs, ours);
      assert.equal(ours.kind, operation[0]);
      const [kind, first, second, third] = operation;
      if (kind === CommandKind.Get || kind === CommandKind.Check || kind === CommandKind.List) {
        assert.deepEqual(ours.name, bytesOfValue(first!));
      }
      if (kind === CommandKind.Get) assert.equal(ours.atLeastRevision, third ?? -1);
      if (kind === CommandKind.Get) assert.equal(ours.stale, second === true);
      if (kind === CommandKind.Check) assert.equal(ours.token, second);
      if (kind === CommandKind.Transfer) assert.equal(ours.nodeId, first);
      if (kind === CommandKind.List) {
        assert.deepEqual(ours.cursor, second === null ? null : bytesOfValue(second!));
        assert.equal(ours.limit, third);
        assert.equal(ours.stale, operation[4] === true);
      }
      if (kind === CommandKind.Watch) {
        assert.deepEqual(ours.name, bytesOfValue((first ?? second)!));
        assert.equal(ours.isPrefix, first === null);
        assert.equal(ours.revision, third ?? -1);
        assert.equal(ours.snapshot, operation[4] === true);
      }
      if (kind === CommandKind.Unwatch) assert.equal(ours.correlation, first);
      if (kind === CommandKind.Abandon) {
        assert.deepEqual([ours.correlation, ours.place], [first, second]);
      }
      if (kind === CommandKind.Lookup && typeof second === 'number') {
        assert.deepEqual([ours.requestKind, ours.sequence], [RequestKind.Sequence, second]);
      }
      if (kind === CommandKind.Lookup && typeof second !== 'number') {
        assert.equal(ours.requestKind, RequestKind.Free);
        assert.deepEqual(ours.request, bytesOfValue(second!));
      }
    }),
    { numRuns: 500 },
  );
});

t.test('ids are read as four signed words', async (t) => {
  const session = Uint8Array.from({ length: 16 }, (_, index) => index);
  const secret = session.map((byte) => 0xf0 + byte);
  const query = decode([CommandKind.SessionAttach, session, secret]);
  t.same(
    [query.session0, query.session1, query.session2, query.session3],
    [0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f],
  );
  t.same(
    [query.secret0, query.secret1, query.secret2, query.secret3],
    [0xf0f1f2f3 | 0, 0xf4f5f6f7 | 0, 0xf8f9fafb | 0, 0xfcfdfeff | 0],
  );
  t.ok(query.hasSession);
});

t.test('what is left out has its default', async (t) => {
  const list = decode([CommandKind.List]);
  t.same([list.name.length, list.cursor, list.limit, list.stale], [0, null, 100, false]);
  const get = decode([CommandKind.Get, 'a']);
  t.same([get.stale, get.atLeastRevision], [false, -1]);
  const hello = decode([CommandKind.Hello, 1]);
  t.same([hello.version, hello.clientName.length, hello.credential.length], [1, 0, 0]);
  const lookup = decode([CommandKind.Lookup, null, 'id']);
  t.notOk(lookup.hasSession);
});

t.test('what is wrong with a query is named', async (t) => {
  const cases: readonly (readonly [string, PackValue[]])[] = [
    ['version', [CommandKind.Hello]],
    ['version', [CommandKind.Hello, 0]],
    ['version', [CommandKind.Hello, 'one']],
    ['client_name', [CommandKind.Hello, 1, 'x'.repeat(65)]],
    ['client_name', [CommandKind.Hello, 1, 'a\nb']],
    ['client_name', [CommandKind.Hello, 1, 5]],
    ['credential', [CommandKind.Hello, 1, 'x', 'y'.repeat(1_025)]],
    ['credential', [CommandKind.Hello, 1, 'x', true]],
    ['fields', [CommandKind.Hello, 1, 'x', 'y', null]],
    ['fields', [CommandKind.Ping, null]],
    ['session', [CommandKind.SessionAttach]],
    ['session', [CommandKind.SessionAttach, 'abc', ID]],
    ['secret', [CommandKind.SessionAttach, ID]],
    ['name', [CommandKind.Get]],
    ['name', [CommandKind.Get, '']],
    ['name', [CommandKind.Get, 'x'.repeat(513)]],
    ['name', [CommandKind.Get, 'a\u0007']],
    ['stale', [CommandKind.Get, 'a', 1]],
    ['at_least_revision', [CommandKind.Get, 'a', null, -1]],
    ['prefix', [CommandKind.List, 5]],
    ['prefix', [CommandKind.List, 'x'.repeat(513)]],
    ['prefix', [CommandKind.List, 'a\u0000']],
    ['cursor', [CommandKind.List, null, 5]],
    ['cursor', [CommandKind.List, null, 'x'.repeat(513)]],
    ['limit', [CommandKind.List, null, null, 0]],
    ['limit', [CommandKind.List, null, null, 251]],
    ['stale', [CommandKind.List, null, null, 1, 'yes']],
    ['session', [CommandKind.Lookup, null, 5]],
    ['session', [CommandKind.Lookup, 'abc', 5]],
    ['request', [CommandKind.Lookup, ID]],
    ['request', [CommandKind.Lookup, ID, 0]],
    ['request', [CommandKind.Lookup, ID, '']],
    ['request', [CommandKind.Lookup, null, 'x'.repeat(65)]],
    ['name', [CommandKind.Check]],
    ['token', [CommandKind.Check, 'a']],
    ['token', [CommandKind.Check, 'a', 'b']],
    ['node_id', [CommandKind.Transfer]],
    ['node_id', [CommandKind.Transfer, 0]],
    ['name', [CommandKind.Watch]],
    ['name', [CommandKind.Watch, '']],
    ['name', [CommandKind.Watch, 'a', 'b']],
    ['name', [CommandKind.Watch, 'a', '']],
    ['name', [CommandKind.Watch, 'a\u0007']],
    ['prefix', [CommandKind.Watch, null, 5]],
    ['prefix', [CommandKind.Watch, null, 'a\u0000']],
    ['revision', [CommandKind.Watch, 'a', null, 0]],
    ['revision', [CommandKind.Watch, 'a', null, 'b']],
    ['snapshot', [CommandKind.Watch, 'a', null, 5, true]],
    ['snapshot', [CommandKind.Watch, 'a', null, null, 1]],
    ['correlation', [CommandKind.Unwatch]],
    ['correlation', [CommandKind.Unwatch, 0]],
    ['correlation', [CommandKind.Unwatch, 2 ** 32]],
    ['correlation', [CommandKind.Abandon, 0, 1]],
    ['place', [CommandKind.Abandon, 1]],
    ['place', [CommandKind.Abandon, 1, 0]],
    ['command', [CommandKind.Acquire, 'id']],
    ['command', [200]],
    ['command', ['ping']],
    ['operation', []],
  ];
  for (const [field, operation] of cases) {
    t.equal(faultOf(operation), field, JSON.stringify(operation));
  }
  for (const command of RESERVED_COMMANDS) t.equal(faultOf([command]), 'command', 'reserved');
});

t.test(
  'cut, lengthened, flipped and random bytes are refused or read, never thrown on',
  async (t) => {
    holds(
      t,
      fc.property(valid, (operation) => {
        const bytes = packOurs(operation);
        for (let end = 0; end < bytes.length; end += 1) {
          assert.notEqual(decodeQuery(bytes, 0, end, new Query()), 0);
        }
        const longer = Uint8Array.from([...bytes, 0xc0]);
        assert.notEqual(decodeQuery(longer, 0, longer.length, new Query()), 0);
        for (const flipped of bitFlips(bytes.subarray(0, 60))) {
          decodeQuery(flipped, 0, flipped.length, new Query());
        }
      }),
      { numRuns: 60 },
    );
    holds(
      t,
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        const fault = decodeQuery(bytes, 0, bytes.length, new Query());
        assert.ok(fault === 0 || faultField(fault) !== '');
      }),
      { numRuns: 1_000 },
    );
  },
);

t.test('the decoder takes as many fields as the table of commands has', async (t) => {
  for (const row of COMMAND_ROWS) {
    const wanted = row.isLogged ? 0 : 1 + row.fields.length;
    t.equal(queryFieldsMax(row.number), wanted, row.name);
  }
});

function replyBy(encode: (out: OutBuffer) => void): unknown {
  const out = new OutBuffer();
  encode(out);
  return unpackOracle(out.bytes.slice(0, out.length));
}

const LOCK: LockReading = {
  name: UTF8.encode('jobs/é'),
  revision: 41,
  holder: {
    token: 40,
    since: 1_000,
    deadline: 31_000,
    renewedAt: 2_000,
    principal: 1,
    hasSession: true,
    metadata: UTF8.encode('host-1'),
  },
  waiters: 2,
  queue: [
    { place: 41, since: 3_000, until: 9_000, principal: 1, metadata: null },
    { place: 42, since: 4_000, until: 9_500, principal: 1, metadata: UTF8.encode('b') },
  ],
};
const IDLE: LockReading = { ...LOCK, holder: null, waiters: 0, queue: [] };
const POINT = { clusterTime: 5_000, revision: 99, appliedIndex: 12, ageMs: -1 };
const HOLDER_ROW = [40, 1_000, 31_000, 2_000, 1, true, UTF8.encode('host-1')];

t.test('a lock is shown with holder and queue, and never a lease id', async (t) => {
  t.same(
    replyBy((out) => encodeLock(out, 3, LOCK, POINT)),
    [
      3,
      0,
      5_000,
      false,
      [
        'jobs/é',
        41,
        HOLDER_ROW,
        2,
        'required',
        [
          [41, 3_000, 9_000, 1, null],
          [42, 4_000, 9_500, 1, UTF8.encode('b')],
        ],
      ],
      99,
      12,
      null,
    ],
  );
  t.same(
    replyBy((out) => encodeLock(out, 3, null, { ...POINT, ageMs: 7 })),
    [3, 0, 5_000, false, null, 99, 12, 7],
  );
});

t.test('a page ends with the cursor of the next, or nil', async (t) => {
  const rows = [
    ['jobs/é', 41, HOLDER_ROW, 2, 'required'],
    ['jobs/é', 41, null, 0, 'required'],
  ];
  t.same(
    replyBy((out) => encodeLockPage(out, 3, [LOCK, IDLE], IDLE.name, POINT)),
    [3, 0, 5_000, false, rows, 'jobs/é', 99, 12, null],
  );
  t.same(
    replyBy((out) => encodeLockPage(out, 3, [], null, POINT)),
    [3, 0, 5_000, false, [], null, 99, 12, null],
  );
});

t.test('the other replies have their fields', async (t) => {
  const members = [{ nodeId: 1, address: '[::1]:7401', role: 'voter' as const }];
  const hello = {
    version: 1,
    featureLevel: 1,
    nodeId: 2,
    leaderId: 1,
    shardCount: 1,
    clusterId: ID,
    frameBytesMax: 1 << 20,
    members,
  };
  const rows = [[1, '[::1]:7401', 'voter']];
  t.same(
    replyBy((out) => encodeHello(out, 1, hello)),
    [1, 0, null, false, 1, 1, 2, 1, 1, ID, 1 << 20, rows],
  );
  t.same(
    replyBy((out) => encodeMembers(out, 1, 0, members)),
    [1, 0, null, false, 0, rows],
  );
  t.same(
    replyBy((out) => encodePong(out, 1, 55)),
    [1, 0, 55, false],
  );
  t.same(
    replyBy((out) => encodeAttached(out, 1, 55, 99, 44, true)),
    [1, 0, 55, false, 99, 44, true],
  );
  t.same(
    replyBy((out) => encodeCheck(out, 1, 55, true, 7)),
    [1, 0, 55, false, 'current', 7],
  );
  t.same(
    replyBy((out) => encodeCheck(out, 1, 55, false, 0)),
    [1, 0, 55, false, 'stale', 0],
  );
});

t.test('a status is one map, large numbers as integers', async (t) => {
  const status = {
    nodeId: 1,
    role: 'leader' as const,
    term: 3,
    leaderId: 1,
    appliedIndex: 2 ** 40,
    commitIndex: 2 ** 40 + 1,
    revision: 2 ** 41,
    clusterTime: 77,
    digest: '0'.repeat(32),
    featureLevel: 1,
    members: [],
    counters: { replies: 2 ** 33, refusals: 0 },
  };
  t.same(
    replyBy((out) => encodeStatus(out, 1, status)),
    [
      1,
      0,
      77,
      false,
      {
        node_id: 1,
        role: 'leader',
        term: 3,
        leader_id: 1,
        applied_index: 2 ** 40,
        commit_index: 2 ** 40 + 1,
        revision: 2 ** 41,
        cluster_time: 77,
        digest: '0'.repeat(32),
        feature_level: 1,
        members: [],
        counters: { replies: 2 ** 33, refusals: 0 },
      },
    ],
  );
});

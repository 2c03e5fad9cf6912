/**
 * The byte-exact examples of docs/PROTOCOL.md, made by the product's own encoders.
 *
 * Owns: which exchanges are shown. A client's frames are written as any MessagePack library writes
 * them, a node's as the node does. Used by: pages.ts, which puts them into the page, and tests.
 */
import { CommandKind } from '../../../src/core/locks/command.js';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, Outcome, OutcomeCode } from '../../../src/core/locks/outcome.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { encodeExplanation } from '../../../src/wire/explain-reply.js';
import { beginFrame, endFrame } from '../../../src/wire/frame.js';
import { type PackValue, writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import {
  encodeAttached,
  encodeAuditPage,
  encodeCheck,
  encodeHello,
  encodeLock,
  encodeLockPage,
  encodePong,
} from '../../../src/wire/query-reply.js';
import {
  encodeLookup,
  encodeNotLeader,
  encodeOutcome,
  encodeRefusal,
} from '../../../src/wire/reply.js';
import {
  encodeCompacted,
  encodeEvents,
  encodeSnapshotPart,
  putEvent,
} from '../../../src/wire/watch.js';

export interface Example {
  readonly title: string;
  readonly from: 'client' | 'node';
  /** The whole frame, length included. */
  readonly frame: Uint8Array;
}

const UTF8 = new TextEncoder();

function filled(first: number): Uint8Array {
  return Uint8Array.from({ length: 16 }, (_, index) => first + index);
}

const CLUSTER = filled(0x10);
const SESSION = filled(0x20);
const SECRET = filled(0x30);
const LEASE = filled(0x40);
const HOST = UTF8.encode('host-7');
const NAME = 'jobs/nightly';

/** A client's frame: any array width is legal, so the shortest stands here. */
function request(title: string, ...items: readonly PackValue[]): Example {
  const out = new OutBuffer();
  writeValue(out, [1, 0, ...items]);
  const body = out.take();
  const frame = new Uint8Array(4 + body.length);
  new DataView(frame.buffer).setUint32(0, body.length);
  frame.set(body, 4);
  return { title, from: 'client', frame };
}

/** A node's frame of one or more replies. */
function reply(title: string, ...encoders: readonly ((out: OutBuffer) => void)[]): Example {
  const out = new OutBuffer();
  const position = beginFrame(out);
  for (const encode of encoders) encode(out);
  endFrame(out, position, encoders.length);
  return { title, from: 'node', frame: out.take().slice() };
}

/** The id fields are those of the lease unless `fields` says otherwise. */
function outcome(correlation: number, fields: Partial<Outcome>): (out: OutBuffer) => void {
  const record = Object.assign(new Outcome(), fields);
  const id = new DataView((record.kind === CommandKind.SessionOpen ? SESSION : LEASE).buffer);
  const secret = new DataView(SECRET.buffer);
  record.id0 = id.getUint32(0);
  record.id1 = id.getUint32(4);
  record.id2 = id.getUint32(8);
  record.id3 = id.getUint32(12);
  record.secret0 = secret.getUint32(0);
  record.secret1 = secret.getUint32(4);
  record.secret2 = secret.getUint32(8);
  record.secret3 = secret.getUint32(12);
  return (out) => encodeOutcome(out, correlation, record);
}

const GRANT = {
  kind: CommandKind.Acquire,
  entryTime: 5_200,
  token: 41,
  revision: 41,
  deadline: 35_200,
  ttlMs: 30_000,
} as const;

const GREETING: readonly Example[] = [
  request('hello', [1, 5_000, [CommandKind.Hello, 1, 'example', null]]),
  reply('the greeting of node 2, which knows that node 1 leads', (out) => {
    encodeHello(out, 1, {
      version: 1,
      featureLevel: 1,
      nodeId: 2,
      leaderId: 1,
      shardCount: 1,
      clusterId: CLUSTER,
      frameBytesMax: 1_048_576,
      members: [
        { nodeId: 1, address: '127.0.0.1:7401', role: 'voter' },
        { nodeId: 2, address: '127.0.0.1:7402', role: 'voter' },
      ],
    });
  }),
  request('ping, without naming a deadline', [2, null, [CommandKind.Ping]]),
  reply('its answer: cluster time 5,000 ms', (out) => encodePong(out, 2, 5_000)),
  reply('a follower refuses what needs the log', (out) => {
    encodeNotLeader(out, 3, 1, '127.0.0.1:7401');
  }),
];

const SESSIONS: readonly Example[] = [
  request('open a session of 30 s', [3, 5_000, [32, 'open-1', null, null, null, 30_000, HOST]]),
  reply(
    'the session, its secret, its deadline',
    outcome(3, {
      kind: CommandKind.SessionOpen,
      entryTime: 5_100,
      deadline: 35_100,
      ttlMs: 30_000,
    }),
  ),
  request('renew it', [9, 5_000, [33, null, SESSION]]),
  reply(
    'renewed',
    outcome(9, {
      kind: CommandKind.SessionRenew,
      entryTime: 15_000,
      deadline: 45_000,
      ttlMs: 30_000,
    }),
  ),
  request('attach it to another connection', [1, 5_000, [5, SESSION, SECRET]]),
  reply('attached', (out) => encodeAttached(out, 1, 15_500, 45_000, 30_000, false)),
];

const LOCKS: readonly Example[] = [
  request('acquire, sequence 1 of the session', [
    4,
    5_000,
    [36, 1, SESSION, null, null, NAME, 30_000],
  ]),
  reply('granted: lease, token 41, revision 41, deadline, TTL', outcome(4, GRANT)),
  request(
    'two requests in one frame: acquire with a wait of 10 s, acknowledging 1, and renew the lease',
    [
      5,
      5_000,
      [36, 2, SESSION, 1, null, 'jobs/hourly', 30_000, 10_000, 0, null, null, null, null, HOST],
    ],
    [6, 5_000, [37, null, null, null, null, LEASE]],
  ),
  reply(
    'both answered, in another order: renewed; queued at place 44 with one waiter ahead',
    outcome(6, { ...GRANT, kind: CommandKind.Renew, entryTime: 6_000, deadline: 36_000 }),
    outcome(5, {
      kind: CommandKind.Acquire,
      code: OutcomeCode.Queued,
      entryTime: 6_000,
      revision: 44,
      ahead: 1,
    }),
  ),
  reply(
    'later, under the same correlation: granted',
    outcome(5, { ...GRANT, entryTime: 9_000, token: 47, revision: 47, deadline: 39_000 }),
  ),
  request('a try without a session, named by a free-form id', [
    7,
    2_000,
    [36, 'nightly-2024-05-01', null, null, null, NAME],
  ]),
  reply(
    'busy: token, since, deadline, principal, metadata of the holder',
    outcome(7, {
      kind: CommandKind.Acquire,
      code: OutcomeCode.LockBusy,
      entryTime: 9_100,
      token: 41,
      holderSince: 5_200,
      deadline: 36_000,
      holderPrincipal: 1,
      blob: HOST,
    }),
  ),
  request('release', [8, 5_000, [38, 3, SESSION, 2, null, LEASE]]),
  reply(
    'released at revision 48',
    outcome(8, { kind: CommandKind.Release, entryTime: 9_200, revision: 48 }),
  ),
  reply(
    'renewing it again: stale, for it was released (cause 1) at revision 48',
    outcome(10, {
      kind: CommandKind.Renew,
      code: OutcomeCode.StaleLease,
      entryTime: 9_300,
      cause: LeaseEnd.Released,
      revision: 48,
    }),
  ),
  request('cancel the wait of sequence 2', [11, 5_000, [39, 4, SESSION, null, null, 2]]),
  reply(
    'too late: it had been granted (cause 0), and this is the grant',
    outcome(11, {
      ...GRANT,
      kind: CommandKind.Cancel,
      entryTime: 9_400,
      token: 47,
      revision: 47,
      deadline: 39_000,
    }),
  ),
];

const SAID = ['anna', 'host-7 hangs'] as const;

const OPERATORS: readonly Example[] = [
  request('end the lease of token 41, whoever owns it: anna asks, since host-7 hangs', [
    24,
    5_000,
    [42, 'ops-1', null, null, null, NAME, null, 41, ...SAID],
  ]),
  reply(
    'ended: the barrier token 49, then what was removed, as LOCK_BUSY shows it',
    outcome(24, {
      kind: CommandKind.ForceRelease,
      entryTime: 9_700,
      revision: 49,
      token: 41,
      holderSince: 5_200,
      deadline: 36_000,
      holderPrincipal: 1,
      blob: HOST,
    }),
  ),
  reply(
    'or CONFLICT, when by now token 47 holds: the holder, since when, until when, whose',
    outcome(24, {
      kind: CommandKind.ForceRelease,
      code: OutcomeCode.Conflict,
      entryTime: 9_700,
      token: 47,
      holderSince: 9_000,
      deadline: 39_000,
      holderPrincipal: 1,
      blob: HOST,
    }),
  ),
  request('no new acquires below jobs/', [
    25,
    5_000,
    [43, 'ops-2', null, null, null, null, 'jobs/', ...SAID],
  ]),
  reply(
    'disabled since revision 50',
    outcome(25, { kind: CommandKind.Disable, entryTime: 9_800, revision: 50 }),
  ),
  reply(
    'what an acquire below it is told: DISABLED, since revision 50',
    outcome(26, {
      kind: CommandKind.Acquire,
      code: OutcomeCode.Disabled,
      entryTime: 9_900,
      revision: 50,
    }),
  ),
  request('acquires below jobs/ again', [
    27,
    5_000,
    [44, 'ops-3', null, null, null, null, 'jobs/', ...SAID],
  ]),
  reply(
    'enabled with revision 51; 0 when nothing was disabled',
    outcome(27, { kind: CommandKind.Enable, entryTime: 10_000, revision: 51 }),
  ),
  request('end a session, whoever owns it', [
    28,
    5_000,
    [45, 'ops-4', null, null, null, SESSION, ...SAID],
  ]),
  reply(
    'ended with revision 54, after its waits and leases',
    outcome(28, { kind: CommandKind.ExpireSession, entryTime: 10_100, revision: 54 }),
  ),
  request('a guard refused token 41 twice, since its resource had seen 47', [
    29,
    5_000,
    [46, 'guard-1', null, null, null, NAME, 41, 47, 2, 'redis'],
  ]),
  reply(
    'noted with revision 55',
    outcome(29, { kind: CommandKind.ReportRefusal, entryTime: 10_200, revision: 55 }),
  ),
];

const POINT = { clusterTime: 9_500, revision: 48, appliedIndex: 77, ageMs: -1 };
const HELD = {
  name: UTF8.encode('jobs/hourly'),
  revision: 47,
  holder: {
    token: 47,
    since: 9_000,
    deadline: 39_000,
    renewedAt: 9_000,
    principal: 1,
    hasSession: true,
    metadata: HOST,
  },
  waiters: 1,
  queue: [{ place: 46, since: 8_000, until: 18_000, principal: 1, metadata: null }],
};

const READS: readonly Example[] = [
  request('who holds a lock', [12, 2_000, [6, 'jobs/hourly']]),
  reply('holder and queue', (out) => encodeLock(out, 12, HELD, POINT)),
  request('the first two locks below a prefix', [13, 2_000, [7, 'jobs/', null, 2]]),
  reply('one lock, and no further page', (out) => encodeLockPage(out, 13, [HELD], null, POINT)),
  request('what became of sequence 3', [14, 2_000, [8, SESSION, 3]]),
  reply('done: code, cluster time, replay, revision', (out) => {
    const stored = Object.assign(new Outcome(), {
      kind: CommandKind.Release,
      entryTime: 9_200,
      revision: 48,
    });
    encodeLookup(out, 14, 9_500, 'done', stored);
  }),
  request('is token 41 still current', [15, 2_000, [9, 'jobs/hourly', 41]]),
  reply('no, it is 47', (out) => encodeCheck(out, 15, 9_500, false, 47)),
];

const EVENT_ROWS = new OutBuffer();
putEvent(EVENT_ROWS, 49, EventKind.Ended, UTF8.encode('jobs/hourly'), 47, 0, 1, 1, 9_600);
putEvent(EVENT_ROWS, 50, EventKind.Granted, UTF8.encode('jobs/hourly'), 50, 46, 0, 1, 9_600);

const AUDITS: readonly Example[] = [
  request('two events below jobs/ from revision 49 on; wait five seconds for the first', [
    22,
    9_000,
    [15, 'jobs/', 49, 2, 5_000],
  ]),
  reply('a release in a session, and the hand-over that it caused', (out) => {
    const cause = [310, 1, 38, 12, SESSION, null, null, null, null];
    const release = [49, 2, 'jobs/hourly', 47, 0, 1, 1, 9_600, ...cause];
    const grant = [50, 1, 'jobs/hourly', 50, 46, 0, 1, 9_600, ...cause];
    const page = { rows: [release, grant], next: 51, oldest: 1, revision: 64 };
    encodeAuditPage(out, 22, 9_650, page, CLUSTER);
  }),
  reply('a forced end (cause 5), with who asked for it and why', (out) => {
    const cause = [330, 2, 42, 'ops-1', null, null, ...SAID, null];
    const page = {
      rows: [[65, 2, 'jobs/hourly', 50, 0, LeaseEnd.Forced, 1, 9_700, ...cause]],
      next: 66,
      oldest: 1,
      revision: 65,
    };
    encodeAuditPage(out, 30, 9_750, page, CLUSTER);
  }),
];

const EXPLANATIONS: readonly Example[] = [
  request('why does my request nightly-7 not have the lock', [
    23,
    2_000,
    [16, NAME, null, 'nightly-7'],
  ]),
  reply(
    'it did not wait (10, LOCK_BUSY); the lock is free by now, released with revision 49',
    (out) => {
      encodeExplanation(out, 23, {
        clusterTime: 9_650,
        lock: null,
        events: [[49, 2, NAME, 47, 0, 1, 1, 9_600]],
        request: { state: 'done', code: 10, place: 0, token: 47, revision: 0 },
        lease: null,
        revision: 64,
        appliedIndex: 310,
        grantsFrom: 0,
      });
    },
  ),
];

const WATCHES: readonly Example[] = [
  request('watch everything below jobs/ from revision 49 on', [18, 2_000, [11, null, 'jobs/', 49]]),
  reply('it has begun: everything up to 48 counts as told', (out) => {
    encodeEvents(out, 18, 9_500, new OutBuffer(), 0, 48);
  }),
  reply('a lease ended by its release, and the lock was handed over', (out) => {
    encodeEvents(out, 18, 9_600, EVENT_ROWS, 2, 50);
  }),
  reply('a mark of progress: nothing of this watch up to 64', (out) => {
    encodeEvents(out, 18, 14_700, new OutBuffer(), 0, 64);
  }),
  request('watch one lock, beginning with how it is', [
    19,
    2_000,
    [11, 'jobs/hourly', null, null, true],
  ]),
  reply('the snapshot', (out) => encodeSnapshotPart(out, 19, 9_500, [HELD], 48)),
  reply('a watch from a revision that is kept no more: 31 is the oldest, 64 the last', (out) => {
    encodeCompacted(out, 20, null, 31, 64);
  }),
  request('end the watch 18', [21, 2_000, [12, 18]]),
  request('nobody waits for the acquire 5 any more, whose place is 46', [22, 2_000, [14, 5, 46]]),
];

const REFUSALS: readonly Example[] = [
  request('a name with a control character', [
    16,
    2_000,
    [36, 'x-1', null, null, null, 'a\u0007b'],
  ]),
  reply('refused before the log, naming the field', (out) => {
    encodeRefusal(out, 16, ErrorCode.BadRequest, null, -1, ['name']);
  }),
  reply('a queue is full: come back in 50 ms', (out) => {
    encodeRefusal(out, 17, ErrorCode.Overloaded, null, 50);
  }),
  reply('a notice: the frame cannot be read, the node closes the connection', (out) => {
    encodeRefusal(out, 0, ErrorCode.UnsupportedVersion, 'send whole frames of version 1');
  }),
];

/** All examples, by the heading that they stand under in the page. */
export const EXAMPLES: readonly {
  readonly heading: string;
  readonly examples: readonly Example[];
}[] = [
  { heading: 'Greeting', examples: GREETING },
  { heading: 'Sessions', examples: SESSIONS },
  { heading: 'Locks', examples: LOCKS },
  { heading: 'Operators and guards', examples: OPERATORS },
  { heading: 'Reads', examples: READS },
  { heading: 'Watches', examples: WATCHES },
  { heading: 'The audit stream', examples: AUDITS },
  { heading: 'Explain', examples: EXPLANATIONS },
  { heading: 'Refusals', examples: REFUSALS },
];

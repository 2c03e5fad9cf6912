/** client.admin: what is sent, what comes back, how it is refused; a retry is no repeat. */

import t from 'tap';
import { type LeaderView, observe } from '../../../src/client/election.js';
import type { AdminOptions } from '../../../src/client/index.js';
import type { LockView } from '../../../src/client/lock-view.js';
import type { WatchItem } from '../../../src/client/watch.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { CommandKind } from '../../../src/wire/request.js';
import type { FakeCluster, FakeReply } from './fake-cluster.js';
import { advanced, connected, rejected } from './ground.js';

const LEASE = 'ab'.repeat(16);
const WHO: AdminOptions = { actor: 'ops@bastion', reason: 'worker-7 hangs' };

/** Answers the admin commands that reach the leader, and keeps what they asked. */
function answerAdmin(cluster: FakeCluster, answer: () => FakeReply): (readonly unknown[])[] {
  const asked: (readonly unknown[])[] = [];
  cluster.interfere = ({ command, elements }, nodeId) => {
    if (command < CommandKind.ForceRelease || nodeId !== cluster.leaderId) return undefined;
    asked.push(elements);
    return { reply: answer() };
  };
  return asked;
}

t.test('each command is one named request with who asks and why', async (t) => {
  const { clock, cluster, client } = await connected();
  const asked = answerAdmin(cluster, () => cluster.ok([43, 41, 100, 900, 1, new Uint8Array(0)]));
  const { admin } = client;
  const forced = await advanced(clock, admin.forceRelease('a', { token: 41 }, WHO));
  t.same(forced, {
    barrierToken: 43,
    token: 41,
    sinceMs: 100,
    deadlineMs: 900,
    principal: 1,
    metadata: null,
  });
  const named = { ...WHO, requestId: 'mine' };
  await advanced(clock, admin.forceRelease('a', { lease: LEASE, token: 41 }, named));
  await advanced(clock, admin.forceRelease('a', { any: true }, named));
  t.same(await advanced(clock, admin.disable({ name: 'a' }, named)), { revision: 43 });
  await advanced(clock, admin.enable({ prefix: '' }, named));
  await advanced(clock, admin.expireSession(LEASE, named));
  const report = { token: 40, mark: 41, refusals: 3 };
  await advanced(clock, admin.reportRefusal('a', { ...report, guard: 'redis' }));
  await advanced(clock, admin.reportRefusal('a', report, { requestId: 'mine' }));
  const words = [WHO.actor, WHO.reason];
  const lease = new Uint8Array(16).fill(0xab);
  const rest = asked.map(([command, , ...more]) => [command, ...more.slice(3)]);
  t.same(rest, [
    [CommandKind.ForceRelease, 'a', null, 41, ...words],
    [CommandKind.ForceRelease, 'a', lease, 41, ...words],
    [CommandKind.ForceRelease, 'a', null, null, ...words],
    [CommandKind.Disable, 'a', null, ...words],
    [CommandKind.Enable, null, '', ...words],
    [CommandKind.ExpireSession, lease, ...words],
    [CommandKind.ReportRefusal, 'a', 40, 41, 3, 'redis'],
    [CommandKind.ReportRefusal, 'a', 40, 41, 3, null],
  ]);
  for (const [, request, session, acknowledged] of asked) {
    t.ok(request === 'mine' || (request instanceof Uint8Array && request.length === 16));
    t.same([session, acknowledged], [null, null], 'in no session');
  }
  await advanced(clock, client.close());
});

t.test('a lost answer is asked for again by the same id, from the next leader', async (t) => {
  const { clock, cluster, client } = await connected();
  const ids: unknown[] = [];
  cluster.interfere = ({ command, elements, wire }, nodeId) => {
    if (command !== CommandKind.ForceRelease) return undefined;
    ids.push(elements[1]);
    if (nodeId === 2) return { reply: cluster.ok([43, 41, 100, 900, 1, new Uint8Array(2)], true) };
    cluster.elect(2, true);
    wire.reset();
    return 'lose-request';
  };
  const forcing = client.admin.forceRelease('a', { any: true }, WHO);
  const { barrierToken, metadata } = await advanced(clock, forcing);
  t.equal(barrierToken, 43);
  t.equal(metadata?.length, 2);
  t.equal(ids.length, 2);
  t.same(ids[0], ids[1]);
  await advanced(clock, client.close());
});

t.test('a refusal says who holds, and since when a lock is disabled', async (t) => {
  const { clock, cluster, client } = await connected();
  const metadata = new TextEncoder().encode('worker-8');
  let holder: PackValue[] = [44, 100, 90_000, 1, metadata];
  answerAdmin(cluster, () => cluster.refused(ErrorCode.Conflict, holder));
  const force = (): Promise<unknown> => client.admin.forceRelease('a', { token: 41 }, WHO);
  const other = await rejected(advanced(clock, force()), 'CONFLICT');
  t.match(other.details.holder, { token: 44, sinceMs: 100, deadlineMs: 90_000, metadata });
  t.equal(other.message, 'another lease is meant: the lock is held by "worker-8" with token 44');
  t.equal(other.outcome, 'none');
  holder = [0, 0, 0, 0, new Uint8Array(0)];
  const nobody = await rejected(advanced(clock, force()), 'CONFLICT');
  t.equal(nobody.details.holder?.token, 0);
  t.equal(nobody.message, 'nobody holds the lock');
  cluster.interfere = ({ command }) =>
    command === CommandKind.Acquire
      ? { reply: cluster.refused(ErrorCode.Disabled, [77]) }
      : undefined;
  const acquiring = client.acquire('a', { session: null });
  const disabled = await rejected(advanced(clock, acquiring), 'DISABLED');
  t.equal(disabled.details.revision, 77);
  t.match(disabled.message, /disabled since revision 77/);
  cluster.interfere = ({ command }) =>
    command === CommandKind.Acquire ? { reply: cluster.refused(ErrorCode.Conflict) } : undefined;
  const guarded = client.acquire('a', { session: null, expectedRevision: 3 });
  const changed = await rejected(advanced(clock, guarded), 'CONFLICT');
  t.same(changed.details, {}, 'the conflict of an acquire has no holder');
  await advanced(clock, client.close());
});

t.test('what is missing or wrong is said before anything is sent', async (t) => {
  const { clock, cluster, client } = await connected();
  const sent = cluster.requests.length;
  const admin = client.admin as unknown as Record<
    string,
    (...words: unknown[]) => Promise<unknown>
  >;
  const report = { token: 1, mark: 2, refusals: 1 };
  const cases: readonly (readonly [string, readonly unknown[], string, RegExp])[] = [
    ['forceRelease', ['a', {}, WHO], 'token', /by lease or token, or say any: true/],
    ['forceRelease', ['a', undefined, WHO], 'token', /or say any: true/],
    ['forceRelease', ['a', { any: true, token: 4 }, WHO], 'any', /or say any: true/],
    ['forceRelease', ['a', { token: -1 }, WHO], 'token', /token is -1/],
    ['forceRelease', ['a', { lease: '7' }, WHO], 'lease', /not 32 hexadecimal digits/],
    ['forceRelease', ['a', { leas: LEASE }, WHO], 'options', /no option leas/],
    ['forceRelease', ['', { any: true }, WHO], 'name', /name has 0 bytes/],
    ['forceRelease', ['a', { any: true }], 'actor', /say who asks/],
    ['forceRelease', ['a', { any: true }, { actor: 'me' }], 'reason', /say why/],
    [
      'forceRelease',
      ['a', { any: true }, { ...WHO, actor: '' }],
      'actor',
      /0 bytes, wanted 1 to 128/,
    ],
    ['forceRelease', ['a', { any: true }, { ...WHO, why: 'x' }], 'options', /no option why/],
    ['disable', [{}, WHO], 'name', /a name or a prefix, and not both/],
    ['disable', [{ name: 'a', prefix: 'a' }, WHO], 'name', /and not both/],
    ['enable', [{ prefix: 'p'.repeat(513) }, WHO], 'prefix', /prefix has 513 bytes/],
    ['disable', [{ name: 'a' }, { ...WHO, reason: 'r'.repeat(1_025) }], 'reason', /1025 bytes/],
    ['expireSession', ['abc', WHO], 'session', /not 32 hexadecimal digits/],
    ['reportRefusal', ['a', { ...report, mark: 1.5 }], 'mark', /mark is 1.5/],
    ['reportRefusal', ['a'], 'token', /token is undefined/],
    ['reportRefusal', ['a', { ...report, guard: 'g'.repeat(65) }], 'guard', /65 bytes/],
    ['reportRefusal', ['a', report, WHO], 'options', /no option actor/],
  ];
  for (const [call, words, field, message] of cases) {
    const error = await rejected(admin[call]!(...words), 'BAD_REQUEST');
    t.equal(error.details.field, field, message.source);
    t.match(error.message, message);
  }
  t.equal(cluster.requests.length, sent, 'nothing was sent');
  await advanced(clock, client.close());
  await rejected(client.admin.disable({ name: 'a' }, WHO), 'SHUTTING_DOWN');
});

t.test('an observer of an election is told nothing of what operators say', async (t) => {
  const base = { revision: 1, name: 'primary', token: 0, place: 0, cause: null };
  const said = (['disabled', 'refused', 'fenced', 'expelled', 'enabled'] as const).map((type) => {
    return { ...base, type, principal: 1, clusterTimeMs: 1 };
  });
  const items: WatchItem[] = [
    { type: 'snapshot', isFirst: true, locks: [] },
    ...said,
    { ...base, type: 'granted', revision: 9, token: 9, principal: 1, clusterTimeMs: 1 },
  ];
  async function* stream(): AsyncGenerator<WatchItem> {
    yield* items;
  }
  const read = async (): Promise<LockView> => ({ holder: null }) as LockView;
  const told: LeaderView[] = [];
  for await (const view of observe(stream(), read)) told.push(view);
  t.same(told, [{ type: 'no-leader' }, { type: 'leader', token: 9, value: null }]);
});

/** What a caller gets wrong is said before anything is sent, in the names that the caller used. */

import t from 'tap';
import type { Client } from '../../../src/client/client.js';
import { type ConnectOptions, connect } from '../../../src/client/connect.js';
import type { HoldfastError } from '../../../src/client/errors.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { FakeClock } from './fake-clock.js';
import { FakeCluster, refusal } from './fake-cluster.js';
import { advanced, connected, connectedTo, rejected } from './ground.js';

/** As plain JavaScript calls it: without types. */
type Loose = Record<string, (...words: unknown[]) => Promise<unknown>>;

function loose(client: Client): Loose {
  return client as unknown as Loose;
}

function connectWithout(options: unknown): Promise<unknown> {
  return connect(options as ConnectOptions);
}

t.test('connect says which option is wrong, whatever it is given', async (t) => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /endpoints is undefined, wanted an array: \{ endpoints: \['127/],
    [{}, /endpoints is undefined, wanted an array/],
    [{ endpoints: '127.0.0.1:7401' }, /endpoints is string, wanted an array/],
    [{ endpoint: ['127.0.0.1:7401'] }, /no option endpoint; options: endpoints, /],
    [{ endpoints: [] }, /endpoints is empty/],
    [{ endpoints: [7_401] }, /endpoint is 7401, wanted host:port/],
    [{ endpoints: ['127.0.0.1:7401'], needs: 'nothing' }, /needs is nothing, wanted 'leader'/],
    [{ endpoints: ['127.0.0.1:7401'], deadlineMs: '5' }, /deadlineMs is "5", wanted 1 to 60000/],
    ['127.0.0.1:7401', /connect: options is string, wanted an object/],
  ];
  for (const [options, message] of cases) {
    const error = await rejected(connectWithout(options), 'BAD_REQUEST');
    t.match(error.message, message);
    t.equal(error.outcome, 'none');
  }
});

t.test('a mistyped option is refused by every call, never ignored', async (t) => {
  const { clock, cluster, client } = await connected();
  const work = (): string => 'done';
  const sent = cluster.requests.length;
  const calls: readonly (readonly [string, readonly unknown[], RegExp])[] = [
    ['withLock', ['a', { ttl: 5_000 }, work], /^withLock.*: no option ttl; options: ttlMs, waitMs/],
    ['withLock', ['a', work], /^withLock\(name, options, work\): options is function/],
    ['withLock', ['a', undefined, undefined], /work is undefined, wanted a function/],
    ['acquire', ['a', { ttlMS: 5_000 }], /^acquire: no option ttlMS/],
    ['acquire', ['a', null], /^acquire: options is null/],
    ['acquire', ['a', { ttlMs: '5s' }], /^ttlMs is "5s", wanted a whole number from 1 up/],
    ['acquire', ['a', { waitMs: -1 }], /^waitMs is -1/],
    ['acquire', ['a', { metadata: 7 }], /^metadata is number, wanted a string or bytes/],
    ['acquire', ['a', { session: null, requestId: 7 }], /^requestId is 7, wanted a string/],
    ['tryAcquire', ['a', { wait: 0 }], /^tryAcquire: no option wait/],
    ['acquireInOrder', [['a'], { waitMs: 5 }], /^acquireInOrder: no option waitMs/],
    ['acquireInOrder', ['a'], /names is string, wanted an array/],
    ['openSession', [{ ttl: 5 }], /^openSession: no option ttl/],
    ['get', ['a', { Stale: true }], /^get: no option Stale/],
    ['lookup', ['a', { stale: true }], /^lookup: no option stale/],
    ['status', [{ stale: true }], /^status: no option stale/],
    ['ping', [{ timeout: 1 }], /^ping: no option timeout/],
    ['check', ['a', 1, { stale: true }], /^check: no option stale/],
  ];
  for (const [name, words, message] of calls) {
    const error = await rejected(loose(client)[name]!(...words), 'BAD_REQUEST');
    t.match(error.message, message);
  }
  t.equal(cluster.requests.length, sent, 'nothing was sent');
  t.equal(await advanced(clock, loose(client)['withLock']!('a', undefined, work)), 'done');
  await advanced(clock, client.close());
});

t.test('what the cluster refuses is told by the option’s name', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.interfere = () => ({ reply: refusal(ErrorCode.BadRequest, ['ttl_ms']) });
  const acquiring = client.acquire('a', { session: null, ttlMs: 1 });
  const error = await rejected(advanced(clock, acquiring), 'BAD_REQUEST');
  t.match(error.message, /the cluster refuses ttlMs: malformed or out of range/);
  t.equal(error.details.field, 'ttl_ms');
  cluster.interfere = () => undefined;
  await advanced(clock, client.close());
});

t.test('LOCK_BUSY names the holder, and how long its lease has', async (t) => {
  const { clock, cluster, client } = await connected();
  const fields = (metadata: string) => [9, 100, 25_000, 1, new TextEncoder().encode(metadata)];
  const answer = (details: readonly (number | Uint8Array)[]) => () => ({
    reply: { ...refusal(ErrorCode.LockBusy, details), time: 5_000 },
  });
  const busy = async (): Promise<HoldfastError> => {
    const acquiring = client.acquire('a', { session: null, waitMs: 0 });
    return rejected(advanced(clock, acquiring), 'LOCK_BUSY');
  };
  cluster.interfere = answer(fields('vm pid 7'));
  const named = await busy();
  t.equal(named.message, 'the lock is held by "vm pid 7" with token 9');
  t.equal(named.details.holder?.endsInMs, 20_000);
  cluster.interfere = answer(fields(''));
  const bare = await busy();
  t.equal(bare.message, 'the lock is held with token 9');
  t.equal(bare.details.holder?.metadata, null, 'as in a get');
  cluster.interfere = answer([0, 0, 0, 0, new Uint8Array(0)]);
  t.match((await busy()).message, /nobody holds the lock, but others wait/);
  cluster.interfere = () => undefined;
  await advanced(clock, client.close());
});

t.test('nobody answers: each address once, with the reason, and no outcome to fear', async (t) => {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  for (const endpoint of cluster.endpoints) cluster.network.down.add(endpoint);
  const error = await rejected(connectedTo(clock, cluster), 'NO_QUORUM');
  t.match(error.message, /^no node answers at 10\.0\.0\.\d:7400 \(ECONNRESET\), /);
  for (const endpoint of cluster.endpoints) t.equal(error.message.split(endpoint).length, 2);
  t.equal(error.outcome, 'none');
  t.equal(error.cause, undefined);
  t.equal(error.details.silent?.length, 3);
});

t.test('one node of a minority is enough for a stale read, when asked so', async (t) => {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  cluster.leaderId = 0;
  for (const nodeId of [1, 2]) cluster.network.down.add(cluster.address(nodeId));
  const needy = await rejected(connectedTo(clock, cluster), 'NO_QUORUM');
  t.match(needy.message, /10\.0\.0\.3:7400 does not lead and knows no leader that answers/);
  t.equal(needy.details.silent, undefined, 'a node has answered');
  const client = await connectedTo(clock, cluster, { needs: 'node' });
  const view = await advanced(clock, client.get('a', { stale: true }));
  t.equal(view.holder, null);
  cluster.elect(2, true);
  cluster.network.down.clear();
  const lease = await advanced(clock, client.acquire('a'));
  t.equal(lease.state, 'held', 'the leader is found later');
  await advanced(clock, client.close());
});

import t from 'tap';
import { connect, type LeaderView, type LockEvent } from '../../src/client/index.js';
import { runCli } from './cli.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const cluster = await Cluster.start({ test: t, settings: { leaseTtlMsLeast: 100 } });
const client = await connect({ endpoints: cluster.endpoints });
t.teardown(() => client.close());

async function hold(name: string): Promise<number> {
  await using lease = await client.acquire(name, { ttlMs: 60_000 });
  return lease.token;
}

t.test('I9: the iterable goes on over killed nodes: every event once, in order', async (t) => {
  const events: LockEvent[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const item of client.watchPrefix('', { fromRevision: 1, signal: stop.signal })) {
      if (item.type !== 'progress' && item.type !== 'snapshot') events.push(item);
    }
  })();
  let tokens = 0;
  for (const victim of cluster.nodeIds) {
    for (let i = 0; i < 5; i += 1) {
      await hold(`it/${i}`);
      tokens += 1;
    }
    await cluster.kill(victim);
    await cluster.leader();
    await hold(`while-${victim}-is-away`);
    tokens += 1;
    await cluster.restart(victim);
    await cluster.leader();
  }
  const grants = (): LockEvent[] => events.filter((event) => event.type === 'granted');
  await waitFor('every grant', () => (grants().length >= tokens ? true : null));
  await waitFor('every end', () => (events.length >= 2 * tokens ? true : null));
  stop.abort();
  await watching;
  t.same(
    events.map((event) => event.revision),
    events.map((_, at) => at + 1),
  );
  t.equal(grants().length, tokens);
  t.ok(client.counters.watchesResumed > 0, 'its own node was among the killed');
});

t.test('a watch ends by break, by signal and with its client', async (t) => {
  const seen: string[] = [];
  const looking = (async () => {
    for await (const item of client.watch('brk', { snapshot: true })) {
      seen.push(item.type);
      if (item.type === 'ended') break;
    }
  })();
  await waitFor('the snapshot', () => (seen.includes('snapshot') ? true : null));
  await hold('brk');
  await looking;
  t.same(
    seen.filter((type) => type !== 'progress'),
    ['snapshot', 'granted', 'ended'],
  );
  const other = await connect({ endpoints: cluster.endpoints });
  const iterator = other.watch('quiet')[Symbol.asyncIterator]();
  await iterator.next();
  const pending = iterator.next();
  await other.close();
  await t.rejects(pending, { code: 'SHUTTING_DOWN' });
  t.throws(() => client.watch('x', { fromRevision: 0 }), { code: 'BAD_REQUEST' });
});

t.test('elections: observers hear of leaders, their values, and of no leader', async (t) => {
  const views: LeaderView[] = [];
  const stop = new AbortController();
  const observing = (async () => {
    for await (const view of client.observe('primary', { signal: stop.signal })) views.push(view);
  })();
  await waitFor('the start', () => (views.length === 1 ? true : null));
  const first = await client.elect('primary', 'a:1', { ttlMs: 60_000 });
  await first.proclaim('a:2');
  const second = client.elect('primary', 'b:1', { ttlMs: 60_000, waitMs: 30_000 });
  await waitFor('the candidate', async () => {
    return (await client.get('primary')).waiters === 1 ? true : null;
  });
  await first.resign();
  const leader = await second;
  await waitFor('the next leader', () => (views.length >= 3 ? true : null));
  await leader.resign();
  await waitFor('the end', () => (views.length >= 4 ? true : null));
  stop.abort();
  await observing;
  t.same(views[0], { type: 'no-leader' });
  t.match(views[1], { type: 'leader', token: first.token });
  t.same(views[2], { type: 'leader', token: leader.token, value: 'b:1' });
  t.same(views[3], { type: 'no-leader' });
});

t.test('holdfast watch and elect from the shell', async (t) => {
  const environment = { HOLDFAST_ENDPOINTS: cluster.endpointList };
  const revision = (await client.get('x')).stateRevision;
  await hold('shell');
  const words = ['watch', 'shell', '--from', String(revision + 1), '--count', '2'];
  const told = await runCli(t, words, environment);
  t.equal(told.status, 0, told.err);
  t.match(told.out, /shell {2}granted with token \d+\n\d+ {2}shell {2}token \d+ ended: released\n/);
  const json = await runCli(t, [...words, '--json'], environment);
  const types = json.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).type);
  t.same(
    types.filter((type: string) => type !== 'progress'),
    ['granted', 'ended'],
  );
  const both = await runCli(t, ['watch', 'a', '--prefix', 'b'], environment);
  t.not(both.status, 0);
  const neither = await runCli(t, ['elect', 'primary'], environment);
  t.not(neither.status, 0);
});

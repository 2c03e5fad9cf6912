import t from 'tap';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { Cli, runCli } from './cli.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const cluster = await Cluster.start({ test: t, nodes: 3 });
const ENDPOINTS = { HOLDFAST_ENDPOINTS: cluster.endpointList };

t.test('status shows every node, and fails without a leader', async (t) => {
  await cluster.settled();
  const plain = await runCli(t, ['status'], ENDPOINTS);
  t.equal(plain.status, 0, plain.err);
  const [headings, ...rows] = plain.out.trim().split('\n');
  t.match(
    headings,
    /^node +endpoint +role +term +leader +applied +revision +cluster time +digest$/,
  );
  t.equal(rows.length, 3);
  t.equal(rows.filter((row) => row.includes('leader, serving')).length, 1);

  const json = await runCli(t, ['status', '--json'], ENDPOINTS);
  const status = JSON.parse(json.out);
  t.equal(status.leader, await cluster.leader());
  t.same(status.disagreeing, []);
  t.equal(status.nodes.length, 3);
  for (const node of status.nodes) {
    t.match(node, { reachable: true, node_id: Number, term: Number, digest: /^[0-9a-f]{32}$/ });
  }

  const nobody = await runCli(t, ['status', '--endpoints', '127.0.0.1:1', '--timeout', '500ms']);
  t.equal(nobody.status, ExitCode.Unavailable);
  t.match(nobody.out, /unreachable \(refused\)/);
});

t.test('transfer makes the named node lead', async (t) => {
  const leader = await cluster.leader();
  const target = cluster.nodeIds.find((nodeId) => nodeId !== leader) ?? 0;
  const moved = await runCli(t, ['transfer', String(target), '--json'], ENDPOINTS);
  t.equal(moved.status, 0, moved.err);
  t.same(JSON.parse(moved.out), { leader: target, previous: leader });
  t.equal(await cluster.leader(), target);
  const again = await runCli(t, ['transfer', String(target)], ENDPOINTS);
  t.equal(again.status, 0);
  t.match(again.out, /leads already/);
  const unknown = await runCli(t, ['transfer', '77'], ENDPOINTS);
  t.equal(unknown.status, ExitCode.Usage);
  t.match(unknown.err, /BAD_REQUEST/);
});

t.test('ls lists held locks by prefix in byte order', async (t) => {
  const names = ['list/b', 'list/a', 'other'];
  const holders = names.map((name) => new Cli(t, ['lock', name, '--', 'sleep', '60'], ENDPOINTS));
  const listed = await waitFor('three locks', async () => {
    const { out } = await runCli(t, ['ls', '--json'], ENDPOINTS);
    const { locks } = JSON.parse(out) as { locks: { name: string }[] };
    return locks.length === 3 ? locks.map((lock) => lock.name) : null;
  });
  t.same(listed, ['list/a', 'list/b', 'other']);
  const prefixed = await runCli(t, ['ls', 'list/'], ENDPOINTS);
  const lines = prefixed.out.trim().split('\n');
  t.match(lines[0], /^name +state +token +waiters +holder$/);
  t.match(lines[1], /^list\/a +held +\d+ +0 +.* pid \d+: sleep$/);
  t.equal(lines.length, 3);
  for (const holder of holders) holder.signal('SIGINT');
  for (const holder of holders) t.equal((await holder.ended).status, 128 + 2);
  const empty = await runCli(t, ['ls'], ENDPOINTS);
  t.equal(empty.status, 0);
  t.equal(empty.out, '');
  t.equal(empty.err, 'holdfast: no lock is held or waited for\n');
  const none = await runCli(t, ['ls', '--json'], ENDPOINTS);
  t.equal(none.err, '', 'the result says it');
});

t.test('get shows a free lock as free', async (t) => {
  const { status, out } = await runCli(t, ['get', 'never-used'], ENDPOINTS);
  t.equal(status, 0);
  t.equal(out, 'never-used  free (not in use)\n');
  const stale = await runCli(t, ['get', 'never-used', '--stale', '--json'], ENDPOINTS);
  t.match(JSON.parse(stale.out), { name: 'never-used', holder: null, waiters: 0, age_ms: Number });
});

t.test('a session is opened, renewed and closed with its secret', async (t) => {
  const opened = await runCli(t, ['session', 'open', '--ttl', '30s', '--json'], ENDPOINTS);
  t.equal(opened.status, 0, opened.err);
  const { session, secret, ttl_ms: ttlMs } = JSON.parse(opened.out);
  t.match(session, /^[0-9a-f]{32}$/);
  t.equal(ttlMs, 30_000);
  const withSecret = { ...ENDPOINTS, HOLDFAST_SESSION_SECRET: secret };

  const renewed = await runCli(t, ['session', 'renew', session, '--json'], withSecret);
  t.equal(renewed.status, 0, renewed.err);
  t.ok(JSON.parse(renewed.out).expires_in_ms > 29_000);

  const wrong = await runCli(t, ['session', 'renew', session, '--secret', session], ENDPOINTS);
  t.equal(wrong.status, ExitCode.Lost);
  t.match(wrong.err, /is expired or closed, or its id or secret is wrong: open a new one/);
  const shorter = await runCli(t, ['session', 'renew', session, '--ttl', '5s'], withSecret);
  t.match(shorter.out, /lives (30|29|28)\S*s more: a renewal never shortens/);
  const bare = await runCli(t, ['session', 'renew', session], ENDPOINTS);
  t.equal(bare.status, ExitCode.Usage);

  const closed = await runCli(t, ['session', 'close', session], withSecret);
  t.equal(closed.status, 0, closed.err);
  t.equal(closed.out, `session ${session} closed\n`);
  const late = await runCli(t, ['session', 'renew', session], withSecret);
  t.equal(late.status, ExitCode.Lost, late.err);
});

t.test('a value that the cluster refuses is named with its option and its range', async (t) => {
  const cases: readonly (readonly [readonly string[], string, RegExp])[] = [
    [
      ['lock', 'a', '--ttl', '500ms', '--', 'true'],
      'ttl_ms',
      /^--ttl: 500ms is out of.* 1s to 24h/,
    ],
    [['lock', 'a', '--ttl', '100h', '--', 'true'], 'ttl_ms', /^--ttl: 100h is out of range: 1s to/],
    [['lock', 'a', '--wait', '100d', '--', 'true'], 'wait_ms', /^--wait: 100d .* 0s to 1h, unless/],
    [['session', 'open', '--ttl', '100h'], 'ttl_ms', /^--ttl: 100h .* sessionTtlMsGreatest$/],
    [['ls', '\u0001'], 'prefix', /^PREFIX: "\\u0001" is malformed/],
  ];
  for (const [[command = '', ...words], field, message] of cases) {
    const { status, err } = await runCli(t, [command, '--json', ...words], ENDPOINTS);
    t.equal(status, ExitCode.Usage, err);
    t.match(JSON.parse(err).error, { code: 'BAD_REQUEST', field, message });
  }
});

t.test('serve below /proc ends with a message', async (t) => {
  const words = ['serve', '--node-id', '1', '--data', '/proc/nc'];
  words.push('--client', '127.0.0.1:1', '--clients', '1=127.0.0.1:1');
  words.push('--peer', '127.0.0.1:2', '--peers', '1=127.0.0.1:2');
  const { status, out } = await runCli(t, words);
  t.equal(status, ExitCode.Configuration);
  t.match(out, /Choose another data folder: \/proc\/nc cannot be made \(ENOENT\)/);
});

t.test('bad values are 64 before anything is sent', async (t) => {
  const cases = [
    ['lock', 'a', '--ttl', '30', '--', 'true'],
    ['lock', 'a', '--ttl', '0s', '--', 'true'],
    ['lock', 'a'],
    ['lock', '', '--', 'true'],
    ['lock', 'a', '--ttl', '1ms', '--', 'true'],
    ['get'],
    ['get', 'a', 'b'],
    ['get', 'a', '--endpoints', 'nowhere'],
    ['get', 'a', '--endpoints', ''],
    ['status', '--timeout', '2m'],
    ['session', 'close', 'xyz', '--secret', 'xyz'],
    ['transfer', 'one'],
    ['serve', '--node-id', '1'],
  ];
  for (const words of cases) {
    const { status, out } = await runCli(t, words, ENDPOINTS);
    t.equal(status, ExitCode.Usage, words.join(' '));
    t.equal(out, '');
  }
});

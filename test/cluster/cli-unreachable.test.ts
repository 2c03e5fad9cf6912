/** The command where nodes do not answer: who is asked, what is said, with which status. */

import t from 'tap';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { connect } from '../../src/client/index.js';
import { Cli, type CliEnd, runCli } from './cli.js';
import { Cluster } from './harness.js';

const cluster = await Cluster.start({ test: t, nodes: 3 });
const NOBODY = '127.0.0.1:1';

function messageOf({ err }: CliEnd): string {
  const { error } = JSON.parse(err) as { error: { message: string } };
  return error.message;
}

t.test('nobody there: each address once, the reason, what to do, and no long wait', async (t) => {
  const commands = [
    ['get', 'a'],
    ['ls', '--stale'],
    ['lock', 'a', '--', 'true'],
    ['session', 'open'],
    ['transfer', '2'],
  ];
  for (const words of commands) {
    const started = performance.now();
    const { status, err } = await runCli(t, words, { HOLDFAST_ENDPOINTS: NOBODY });
    t.equal(status, ExitCode.Unavailable, words.join(' '));
    t.match(err, /^holdfast: NO_QUORUM: no node answers at 127\.0\.0\.1:1 \(refused\)\. Is the/);
    t.match(err, /npm start, or give --endpoints\n$/);
    t.ok(performance.now() - started < 8_000, 'sooner than the 10 s of a cluster that is slow');
  }
  const { out } = await runCli(t, ['status'], { HOLDFAST_ENDPOINTS: NOBODY });
  t.match(out, /^- +127\.0\.0\.1:1 +unreachable \(refused\)$/m);
  t.match(out, /no node answers: is the cluster running\?/);
});

t.test('an address that is wrong is told as such', async (t) => {
  const name = 'nosuch.host.example:7401';
  for (const words of [
    ['get', 'a'],
    ['session', 'open'],
  ]) {
    const unknown = await runCli(t, [...words, '--json', '--endpoints', name, '--timeout', '2s']);
    t.match(messageOf(unknown), /nosuch\.host\.example:7401 \(host name not found/);
    const peer = ['--endpoints', cluster.peerEndpoint(1), '--timeout', '2s'];
    const wrong = await runCli(t, [...words, '--json', ...peer]);
    t.match(messageOf(wrong), /accepts connections but does not .*: a peer port/);
  }
});

t.test('status by one follower shows all nodes and the leader', async (t) => {
  await cluster.settled();
  const leader = await cluster.leader();
  const follower = cluster.nodeIds.find((nodeId) => nodeId !== leader) ?? 0;
  const words = ['status', '--json', '--endpoints', cluster.endpoint(follower)];
  const { status, out } = await runCli(t, words);
  t.equal(status, 0);
  const shown = JSON.parse(out) as { leader: number; nodes: { node_id: number }[] };
  t.equal(shown.leader, leader);
  t.same(shown.nodes.map((node) => node.node_id).sort(), cluster.nodeIds);
});

t.test(
  'transfer to a node that does not answer is said at once, and is no lack of quorum',
  async (t) => {
    const leader = await cluster.leader();
    const [victim = 0] = cluster.nodeIds.filter((nodeId) => nodeId !== leader);
    await cluster.kill(victim);
    const words = ['transfer', String(victim), '--json', '--endpoints', cluster.endpointList];
    const end = await runCli(t, words);
    t.equal(end.status, ExitCode.Refused);
    t.match(JSON.parse(end.err).error, { code: 'NODE_UNREACHABLE', leader });
    t.match(messageOf(end), new RegExp(`^node ${victim} does not answer; node ${leader} leads on`));
    const unknown = await runCli(t, ['transfer', '9', '--endpoints', cluster.endpointList]);
    t.match(unknown.err, /node 9 is no voter; voters: 1, 2, 3/);
    const shown = await runCli(t, ['status', '--endpoints', cluster.endpointList]);
    t.match(
      shown.out,
      new RegExp(`^${victim === 1 ? '[1-]' : '.'} .*unreachable \\(refused\\)$`, 'm'),
    );
  },
);

t.test('one node of a minority answers stale reads, and says that nobody leads', async (t) => {
  const leader = await cluster.leader();
  await cluster.kill(leader);
  const [left = 0] = cluster.runningIds;
  const endpoints = ['--endpoints', cluster.endpoint(left)];
  for (const words of [['get', 'a'], ['ls']]) {
    const stale = await runCli(t, [...words, '--stale', '--json', ...endpoints]);
    t.equal(stale.status, 0, stale.err);
  }
  const client = await connect({ endpoints: [cluster.endpoint(left)], needs: 'node' });
  t.equal((await client.get('a', { stale: true })).holder, null);
  await client.close();
  for (const words of [
    ['get', 'a'],
    ['session', 'open'],
    ['lock', 'a', '--', 'true'],
  ]) {
    const at = words.includes('--') ? words.indexOf('--') : words.length;
    const own = ['--timeout', '1500ms', ...endpoints];
    const all = [...words.slice(0, at), ...own, ...words.slice(at)];
    const { status, err } = await runCli(t, all);
    t.equal(status, ExitCode.Unavailable, err);
    t.match(err, /NO_QUORUM: .*(does not lead and knows no leader that answers|majority)/);
  }
  const shown = await new Cli(t, ['status', '--timeout', '2s', ...endpoints]).ended;
  t.equal(shown.status, ExitCode.Unavailable);
  t.match(shown.out, /no node serves: /);
});

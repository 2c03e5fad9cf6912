import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { planDev } from '../../../src/cli/commands/dev.js';
import { findDisagreement } from '../../../src/cli/commands/status.js';
import { describeEnd, isSecondWish } from '../../../src/cli/dev-children.js';
import { lastWordsIn } from '../../../src/cli/last-words.js';
import {
  clientAddresses,
  type LocalNode,
  localNodes,
  serveWords,
} from '../../../src/cli/local-cluster.js';
import type { NodeStatus } from '../../../src/cli/node-status.js';
import { formatTable } from '../../../src/cli/output.js';
import { parseServeOptions } from '../../../src/server/options.js';

t.test('node i: clients 7400 + i, HTTP 7500 + i, peers 7600 + i, folder node-i', async (t) => {
  const nodes = localNodes('/data', 7_400);
  t.equal(nodes.length, 5);
  for (const { nodeId, client, http, peer, dataFolder } of nodes) {
    t.equal(client.port, 7_400 + nodeId);
    t.equal(http.port, 7_500 + nodeId);
    t.equal(peer.port, 7_600 + nodeId);
    t.equal(dataFolder, `/data/node-${nodeId}`);
  }
  t.match(clientAddresses(nodes), /^127\.0\.0\.1:7401,.*,127\.0\.0\.1:7405$/);
});

t.test('the words for a node are options that serve accepts', async (t) => {
  const nodes = localNodes('/data', 20_000);
  for (const node of nodes) {
    const words = serveWords(nodes, node, node.nodeId === 1);
    t.equal(words.shift(), 'serve');
    const values = new Map<string, string>();
    for (let at = 0; at < words.length; at += 1) {
      const name = words[at] ?? '';
      const isFlag = name === '--bootstrap' || name === '--until-stdin-ends';
      values.set(name, isFlag ? 'yes' : (words[at + 1] ?? ''));
      if (!isFlag) at += 1;
    }
    const options = parseServeOptions({
      nodeId: values.get('--node-id'),
      data: values.get('--data'),
      client: values.get('--client'),
      peer: values.get('--peer'),
      http: values.get('--http'),
      peers: values.get('--peers'),
      clients: values.get('--clients'),
      bootstrap: values.has('--bootstrap'),
      untilStdinEnds: values.has('--until-stdin-ends'),
    });
    t.same(options.client, node.client);
    t.same(options.http, node.http);
    t.equal(options.members.length, 5);
    t.equal(options.bootstrap, node.nodeId === 1);
    t.ok(options.untilStdinEnds);
  }
});

function fill(node: LocalNode): void {
  mkdirSync(node.dataFolder, { recursive: true });
  writeFileSync(path.join(node.dataFolder, 'file'), 'x');
}

t.test('dev founds when all five folders are empty, or a founding was interrupted', async (t) => {
  const folder = t.testdir({});
  const nodes = localNodes(folder, 20_000);
  t.ok(planDev(folder, nodes).isFounding, 'nothing is there');
  for (const node of nodes) mkdirSync(node.dataFolder);
  t.ok(planDev(folder, nodes).isFounding, 'empty folders');
  fill(nodes[0]!);
  t.ok(planDev(folder, nodes).isFounding, 'the mark of the first decision stands');
});

t.test('dev does not found over data: a majority of good folders starts alone', async (t) => {
  const folder = t.testdir({});
  const nodes = localNodes(folder, 20_000);
  const [one, two, three, ...others] = nodes;
  for (const node of [one, two, three]) fill(node!);
  const plan = planDev(folder, nodes);
  t.notOk(plan.isFounding);
  t.same(plan.started, [one, two, three]);
  t.same(plan.wiped, others);
  for (const node of others) fill(node);
  t.same(planDev(folder, nodes), { isFounding: false, started: nodes, wiped: [] });
});

t.test('dev refuses a minority of good folders, and warns of the tokens', async (t) => {
  const folder = t.testdir({});
  const nodes = localNodes(folder, 20_000);
  for (const node of nodes.slice(0, 2)) fill(node);
  t.throws(() => planDev(folder, nodes), {
    code: 'FOLDER_WIPED',
    message: /restore node-3, node-4, node-5 .*counts its tokens from 1 again/,
  });
});

t.test('a second signal within a second is the same wish', async (t) => {
  t.notOk(isSecondWish(0));
  t.notOk(isSecondWish(999));
  t.ok(isSecondWish(1_000));
});

t.test('how a node ended is told with its last words, or with what to do', async (t) => {
  t.equal(describeEnd(74, null, 'it is damaged.'), 'ended with status 74: it is damaged');
  t.match(describeEnd(null, 'SIGKILL', ''), /^ended by SIGKILL\. It is not restarted: Ctrl-C/);
  for (const signal of ['SIGABRT', 'SIGSEGV', 'SIGBUS'] as const) {
    const words = describeEnd(null, signal, '');
    t.match(words, new RegExp(`^ended by ${signal}: its data folder seems to be damaged`));
  }
});

t.test('the last words of a node are its fatal line of this run', async (t) => {
  const file = path.join(t.testdir({}), 'node-1.log');
  const line = (level: string, message: string): string =>
    `${JSON.stringify({ level, message })}\n`;
  const earlier = line('fatal', 'an earlier end');
  writeFileSync(file, earlier + line('info', 'serving'));
  t.equal(lastWordsIn(file, earlier.length), '');
  writeFileSync(file, earlier + line('fatal', 'the disk is full') + line('info', 'stopped'));
  t.equal(lastWordsIn(file, earlier.length), 'the disk is full');
  writeFileSync(file, `${earlier}holdfast: USAGE: --setting: no\n`);
  t.equal(lastWordsIn(file, earlier.length), 'USAGE: --setting: no');
});

t.test('status finds two nodes that applied the same entries and disagree', async (t) => {
  const status = (nodeId: number, appliedIndex: number, digest: string): NodeStatus => ({
    nodeId,
    role: 'follower',
    isServing: false,
    term: 1,
    leaderId: 1,
    commitIndex: appliedIndex,
    appliedIndex,
    revision: 1,
    clusterTimeMs: 1,
    digest,
    featureLevel: 1,
    members: [],
    counters: {},
    fields: {},
  });
  t.same(findDisagreement([status(1, 5, 'a'), status(2, 6, 'b'), status(3, 5, 'a')]), []);
  const found = findDisagreement([status(1, 5, 'a'), status(2, 6, 'b'), status(3, 5, 'c')]);
  t.same(
    found.map((each) => each.nodeId),
    [1, 3],
  );
});

t.test('a table has columns as wide as their longest cell', async (t) => {
  t.same(
    formatTable([
      ['a', 'bb', 'c'],
      ['aaa', 'b'],
    ]),
    ['a    bb  c', 'aaa  b'],
  );
});

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { decideFounding } from '../../../src/cli/commands/dev.js';
import { findDisagreement } from '../../../src/cli/commands/status.js';
import { clientAddresses, localNodes, serveWords } from '../../../src/cli/local-cluster.js';
import type { NodeStatus } from '../../../src/cli/node-status.js';
import { formatTable } from '../../../src/cli/output.js';
import { parseServeOptions } from '../../../src/server/options.js';

t.test('node i: clients 7400 + i, peers 7600 + i, folder node-i', async (t) => {
  const nodes = localNodes('/data', 7_400);
  t.equal(nodes.length, 5);
  for (const { nodeId, client, peer, dataFolder } of nodes) {
    t.equal(client.port, 7_400 + nodeId);
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
      peers: values.get('--peers'),
      clients: values.get('--clients'),
      bootstrap: values.has('--bootstrap'),
      untilStdinEnds: values.has('--until-stdin-ends'),
    });
    t.same(options.client, node.client);
    t.equal(options.members.length, 5);
    t.equal(options.bootstrap, node.nodeId === 1);
    t.ok(options.untilStdinEnds);
  }
});

t.test('dev founds when all five folders are empty, or a founding was interrupted', async (t) => {
  const folder = path.join(t.testdir({}), 'data');
  const nodes = localNodes(folder, 20_000);
  t.ok(decideFounding(folder, nodes), 'nothing is there');
  for (const node of nodes) mkdirSync(node.dataFolder);
  t.ok(decideFounding(folder, nodes), 'empty folders');
  writeFileSync(path.join(nodes[0]?.dataFolder ?? '', 'file'), 'x');
  t.ok(decideFounding(folder, nodes), 'the mark of the first decision stands');
});

t.test('dev does not found over data, and refuses a mixture', async (t) => {
  const folder = t.testdir({});
  const nodes = localNodes(folder, 20_000);
  for (const node of nodes) {
    mkdirSync(node.dataFolder);
    writeFileSync(path.join(node.dataFolder, 'file'), 'x');
  }
  t.notOk(decideFounding(folder, nodes));
  const six = [...nodes, { ...(nodes[0] as (typeof nodes)[0]), dataFolder: `${folder}/node-6` }];
  t.throws(() => decideFounding(folder, six), { option: '--data', code: 'USAGE' });
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

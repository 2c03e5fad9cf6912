/** States are compared at one index or not at all, while nodes go on at their own pace. */

import t from 'tap';
import type { NodeStatus } from '../../../src/cli/node-status.js';
import { compareDigests } from '../../../src/cli/verify/digests.js';
import { Findings } from '../../../src/cli/verify/finding.js';

function statusOf(nodeId: number, appliedIndex: number, digest: string): NodeStatus {
  return { nodeId, appliedIndex, digest } as NodeStatus;
}

t.test('nodes that are at one index by turns are all compared', async (t) => {
  const findings = new Findings();
  let look = 0;
  const read = async (nodeId: number): Promise<NodeStatus> => {
    look += 1;
    // Each node is an entry behind the one before it, and all go on.
    const index = 10 + Math.floor(look / 3) - nodeId;
    return statusOf(nodeId, index, `digest of ${index}`);
  };
  const report = await compareDigests([1, 2, 3], read, 5_000, findings);
  t.match(report, { compared: [1, 2, 3], alone: [], silent: [] });
  t.equal(report.digest, `digest of ${report.index}`);
  t.strictSame(findings.told, []);
});

t.test('two digests at one index are a fault, told once for two nodes', async (t) => {
  const findings = new Findings();
  const read = async (nodeId: number): Promise<NodeStatus> =>
    statusOf(nodeId, 7, nodeId === 2 ? 'bad' : 'good');
  const report = await compareDigests([1, 2, 3], read, 1_000, findings);
  t.strictSame(report.compared, [1, 2, 3]);
  t.match(findings.told, [
    {
      check: 'digests',
      where: 'nodes 1 and 2',
      found: 'at index 7 node 1 has good, node 2 has bad',
    },
    { where: 'nodes 2 and 3' },
  ]);
  t.match(report, { index: 7, digest: 'good' });
});

t.test('a node that is silent, or never at an index of another, is not called sound', async (t) => {
  const read = async (nodeId: number): Promise<NodeStatus> => {
    if (nodeId === 3) throw new Error('no answer');
    return statusOf(nodeId, nodeId === 4 ? 99 : 7, 'same');
  };
  const report = await compareDigests([1, 2, 3, 4], read, 200, new Findings());
  t.match(report, { compared: [1, 2], alone: [4], silent: [3] });
});

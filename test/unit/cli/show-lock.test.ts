import t from 'tap';
import { readClusterOptions } from '../../../src/cli/cluster-options.js';
import type { CommandInput } from '../../../src/cli/command.js';
import { lockLines } from '../../../src/cli/commands/get.js';
import {
  explainLeaderless,
  unaskedMembers,
  withoutTwins,
} from '../../../src/cli/commands/status.js';
import { findTarget } from '../../../src/cli/commands/transfer.js';
import type { NodeStatus } from '../../../src/cli/node-status.js';
import type { LockView } from '../../../src/client/lock-view.js';

const FREE: LockView = {
  name: 'a',
  revision: 0,
  holder: null,
  waiters: 0,
  fencing: 'required',
  clusterTimeMs: 100_000,
  queue: [],
  stateRevision: 24,
  ageMs: null,
  disabled: null,
};

t.test('a lease that its session renews is held until now, and ends from now on', async (t) => {
  const holder = {
    token: 24,
    sinceMs: 86_000,
    deadlineMs: 105_000,
    lastRenewedMs: 86_000,
    principal: 1,
    inSession: true,
    metadata: new TextEncoder().encode('vm pid 7: make'),
  };
  t.same(lockLines({ ...FREE, revision: 24, holder }), [
    'a  held',
    'token     24',
    'held for  14s',
    'ends in   5s unless renewed',
    'holder    vm pid 7: make',
    'waiters   0',
    'revision  24',
  ]);
});

t.test('a name that nobody uses is free, and has no revision', async (t) => {
  t.same(lockLines(FREE), ['a  free (not in use)']);
  t.match(lockLines({ ...FREE, waiters: 2 })[0], 'a  free, and waited for');
});

t.test('a disabled lock says since when, by which rule, by whom and why', async (t) => {
  const said = { revision: 7, sinceMs: 90_000, principal: 1, actor: 'ops@b', reason: 'restore' };
  const disabled = { ...said, name: 'a', isPrefix: false };
  t.same(lockLines({ ...FREE, disabled }), [
    'a  free (not in use)',
    'disabled  since revision 7 by ops@b: restore',
  ]);
  const byPrefix = { ...said, name: '', isPrefix: true };
  t.match(lockLines({ ...FREE, disabled: byPrefix })[1], 'revision 7 (*) by ops@b');
});

t.test('a stale reading says how old it is', async (t) => {
  t.same(lockLines({ ...FREE, ageMs: 1_500 }).at(-1), 'age       1.5s, by this node alone');
});

function status(nodeId: number, leaderId: number, isServing = false): NodeStatus {
  const members = [1, 2, 3].map((id) => ({
    nodeId: id,
    endpoint: { host: '127.0.0.1', port: 7_400 + id },
  }));
  return { nodeId, leaderId, isServing, members } as unknown as NodeStatus;
}

function ids(nodes: readonly { readonly nodeId: number | null }[]): (number | null)[] {
  return nodes.map((node) => node.nodeId);
}

t.test('status asks every member that is named and was not asked', async (t) => {
  const asked = [
    { host: 'localhost', port: 7_401 },
    { host: '127.0.0.1', port: 7_402 },
  ];
  t.same(ids(unaskedMembers(status(1, 3), asked)), [3], 'node 1 has answered, by another name');
  t.same(ids(unaskedMembers(null, asked)), []);
});

t.test('status shows a node once, though it was asked by two names', async (t) => {
  const row = (nodeId: number | null, host: string, isThere: boolean) => ({
    endpoint: { host, port: 7_401 },
    nodeId,
    status: isThere ? status(nodeId ?? 0, 3) : null,
    reason: '',
    error: '',
  });
  const [one, two] = [row(1, 'localhost', true), row(2, 'b', false)];
  const rows = [one, row(null, 'a', false), two, row(1, '127.0.0.1', false)];
  t.same(ids(withoutTwins(rows)), [1, null, 2]);
});

t.test('without a leader, status says what the others know', async (t) => {
  t.match(explainLeaderless([]), /no node answers/);
  t.match(explainLeaderless([status(1, 0)]), /no leader with a majority/);
  t.match(explainLeaderless([status(1, 3)]), /node 3 leads, by what node 1 knows.* not answer/);
  t.match(explainLeaderless([status(3, 3)]), /node 3 leads, by what node 3 knows.* no majority/);
});

t.test('transfer names the voters when the node is none', async (t) => {
  const members = [1, 2].map((nodeId) => ({
    nodeId,
    address: `127.0.0.1:740${nodeId}`,
    role: 'voter',
  }));
  t.same(findTarget(members, 2), { host: '127.0.0.1', port: 7_402 });
  t.throws(() => findTarget(members, 9), { message: 'node 9 is no voter; voters: 1, 2' });
});

function endpointsOf(option: string | undefined, variable: string | undefined): unknown {
  const input = { text: (name: string) => (name === 'endpoints' ? option : undefined) };
  const environment = variable === undefined ? {} : { HOLDFAST_ENDPOINTS: variable };
  return readClusterOptions(input as unknown as CommandInput, environment).endpoints.length;
}

t.test('empty endpoints are refused, never taken for the local cluster', async (t) => {
  t.equal(endpointsOf(undefined, undefined), 5);
  t.equal(endpointsOf('a:1,b:2', ''), 2, 'the option wins');
  t.throws(() => endpointsOf('', undefined), { option: '--endpoints', code: 'USAGE' });
  t.throws(() => endpointsOf('', 'a:1'), { option: '--endpoints', code: 'USAGE' });
  t.throws(() => endpointsOf(undefined, ''), { option: 'HOLDFAST_ENDPOINTS', code: 'USAGE' });
});

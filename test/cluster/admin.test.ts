/**
 * A forced release on real nodes, by every way in: what the old holder, the next in line, watches,
 * the audit stream, metrics and explain are told; and over the death of the leader.
 */

import t from 'tap';
import { connect, type LockEvent } from '../../src/client/index.js';
import { runCli } from './cli.js';
import { Cluster } from './harness.js';
import { HttpClient } from './http-client.js';
import { waitFor } from './wait-for.js';

const SAID = { actor: 'ops@bastion', reason: 'ticket 812' };
const LOCK = 'ops/a';

const cluster = await Cluster.start({ test: t, nodes: 3 });
const environment = { HOLDFAST_ENDPOINTS: cluster.endpointList };
const holder = await connect({ endpoints: cluster.endpoints });
const operator = await connect({ endpoints: cluster.endpoints });
const http = new HttpClient();
const events: LockEvent[] = [];
t.teardown(async () => {
  http.close();
  await Promise.all([holder.close(), operator.close()]);
});

/** Follows every event of the cluster from the first on. */
async function follow(): Promise<void> {
  for await (const item of operator.watchPrefix('', { fromRevision: 1 })) {
    if (item.type !== 'snapshot' && item.type !== 'progress') events.push(item);
  }
}
void follow().catch(() => undefined); // closed with its client

function told(type: string, cause: string | null = null) {
  return waitFor(`an event ${type} ${cause}`, () => {
    return events.find((each) => each.type === type && each.cause === cause) ?? null;
  });
}

/** An order over HTTP at a node that does not lead. */
async function order(path: string, body: object, key: string) {
  const leader = await cluster.leader();
  const follower = cluster.runningIds.find((nodeId) => nodeId !== leader) ?? 0;
  const url = `${cluster.httpUrl(follower)}/v1/admin/${path}`;
  return http.post(url, { ...SAID, ...body }, { 'idempotency-key': key });
}

t.test('a forced release shows everywhere, and hands over at once', async (t) => {
  const a = await holder.acquire(LOCK, { session: null, ttlMs: 600_000, metadata: 'worker-7' });
  const waiting = operator.acquire(LOCK, { waitMs: 60_000, ttlMs: 3_000 });
  await told('queued');
  const wrong = ['--token', String(a.token + 1_000), '--reason', 'a slip', '--actor', 'typist'];
  const refused = await runCli(t, ['admin', 'force-release', LOCK, ...wrong], environment);
  t.equal(refused.status, 1);
  t.match(refused.err, /CONFLICT: another lease is meant: .*"worker-7" with token \d+; look again/);
  t.match(await told('refused', 'CONFLICT'), { name: LOCK, principal: 1 });

  const token = { fencing_token: a.token };
  const forced = await order('locks/ops%2Fa/force-release', token, 'force-a');
  t.equal(forced.status, 200, forced.text);
  const barrier = forced.json.barrier_token;
  const b = await waiting;
  t.equal(b.token, barrier + 1, 'the next in line is granted right above the barrier');
  t.match(await told('ended', 'forced'), { token: a.token, revision: barrier });
  await t.rejects(a.renew(), { code: 'STALE_LEASE', details: { leaseEnd: 'forced' } });
  t.equal(a.state, 'lost');
  t.equal(a.signal.aborted, true);

  const shell = await runCli(t, ['explain', LOCK], environment);
  t.match(shell.out, /^ops\/a: held/);
  t.match(shell.out, /by force with revision \d+, by ops@bastion \(principal 1, force_release\)/);
  const again = ['--token', String(b.token), '--reason', 'again', '--request', 'cli-1', '--json'];
  const words = ['admin', 'force-release', LOCK, ...again];
  const [first, second] = [
    await runCli(t, words, environment),
    await runCli(t, words, environment),
  ];
  t.equal(first?.status, 0, first?.err);
  t.equal(second?.out, first?.out, 'asked again under the same name: the same barrier');
  const { barrier_token: next, next: command } = JSON.parse(first?.out ?? '');
  t.equal(command, `holdfast guard raise ops/a --token ${next}`);
  await waitFor('a session to find that its lease was ended', () => b.state === 'lost');
  t.match(b.signal.reason, { code: 'STALE_LEASE', details: { leaseEnd: 'forced' } });
  const explanation = await operator.explain({ name: LOCK });
  t.equal(explanation.cause, 'free_forced');
  t.match(explanation.says.join(' '), /by \S+@\S+ \(principal 1, force_release\): again/);
});

t.test('a disabled prefix refuses new acquires, and says by which rule', async (t) => {
  const disabled = await order('disable', { prefix: 'ops/' }, 'disable');
  const { revision } = disabled.json;
  const asked = holder.acquire('ops/new', { session: null, requestId: 'early', waitMs: 0 });
  await t.rejects(asked, { code: 'DISABLED', details: { revision } });
  const { disabled: rule } = await operator.get('ops/new');
  t.match(rule, { ...SAID, name: 'ops/', isPrefix: true, revision });
  const why = await operator.explain({ request: 'early' });
  t.match(why, { name: null, cause: 'refused_disabled' });
  t.match(why.says.join(' '), /lock under "ops\/" was disabled .*, by ops@bastion/);
  const lock = await runCli(t, ['lock', 'ops/new', '--', 'true'], environment);
  t.equal(lock.status, 75, lock.err);
  const shown = await runCli(t, ['get', 'ops/new'], environment);
  t.match(shown.out, /disabled {2}since revision \d+ \(ops\/\*\) by ops@bastion: ticket 812/);
  t.match(await told('disabled'), { name: 'ops/', place: 1, revision });
});

t.test('a session that is ended takes its leases with it', async (t) => {
  const session = await holder.openSession({ ttlMs: 600_000 });
  const lease = await holder.acquire('other/a', { session, ttlMs: 600_000 });
  const expired = await order(`sessions/${session.id}/expire`, {}, 'expire');
  t.equal(expired.status, 200, expired.text);
  t.match(await told('expelled', 'forced'), { name: '', revision: expired.json.revision });
  await t.rejects(lease.renew(), { code: 'STALE_LEASE', details: { leaseEnd: 'forced' } });
  const gone = ['admin', 'expire-session', session.id, '--reason', 'again'];
  t.equal((await runCli(t, gone, environment)).status, 70);
});

t.test('I6: a leader killed between two attempts of one id leaves one barrier', async (t) => {
  const lease = await holder.acquire('kill/a', { session: null, ttlMs: 600_000 });
  const force = () => {
    const named = { ...SAID, requestId: 'over-a-kill' };
    return operator.admin.forceRelease('kill/a', { token: lease.token }, named);
  };
  const first = await force();
  const leader = await cluster.leader();
  const later = await holder.acquire('kill/a', { session: null, ttlMs: 600_000 });
  await cluster.kill(leader);
  t.same(await force(), first, 'the same result from the next leader');
  t.equal((await operator.get('kill/a')).holder?.token, later.token, 'nobody else was removed');
  await cluster.restart(leader);
  await cluster.settled();
});

t.test('guards report, metrics count, the audit stream has it all with who and why', async (t) => {
  const report = { token: 3, mark: 4, refusals: 5, guard: 'redis' };
  const named = { requestId: 'report-1' };
  const { revision } = await operator.admin.reportRefusal(LOCK, report, named);
  t.same(await operator.admin.reportRefusal(LOCK, report, named), { revision });
  await cluster.settled();
  for (const nodeId of cluster.nodeIds) {
    const { text } = await http.get(`${cluster.httpUrl(nodeId)}/metrics`);
    t.match(text, /^holdfast_fencing_refusals_total 5$/m, 'once, on every node');
    t.match(text, /^holdfast_leases_ended_total\{cause="forced"\} 4$/m);
    t.match(text, /^holdfast_disabled_rules 1$/m);
    t.match(text, /^holdfast_operations_total\{operation="force_release",code="CONFLICT"\} 1$/m);
  }
  const shown = await runCli(t, ['audit', '--json'], environment);
  const rows = shown.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const asked = rows.filter(({ asked_by: by }) => by !== null);
  t.same(
    asked.map(({ type, cause, command, name }) => [type, cause, command, name]),
    [
      ['refused', 'CONFLICT', 'force_release', LOCK],
      ['ended', 'forced', 'force_release', LOCK],
      ['granted', null, 'force_release', LOCK],
      ['ended', 'forced', 'force_release', LOCK],
      ['disabled', null, 'disable', 'ops/'],
      ['ended', 'forced', 'expire_session', 'other/a'],
      ['expelled', 'forced', 'expire_session', ''],
      ['refused', 'SESSION_EXPIRED', 'expire_session', ''],
      ['ended', 'forced', 'force_release', 'kill/a'],
      ['fenced', 'STALE_TOKEN', 'report_refusal', LOCK],
    ],
  );
  t.match(asked[0], { asked_by: 'typist', reason: 'a slip', revision: Number });
  t.match(asked.at(-1), { asked_by: 'redis', refusals: 5, fencing_token: 3, place: 4 });
  t.ok(asked.slice(1, 3).every(({ reason }) => reason === SAID.reason));
  const verified = await runCli(t, ['verify'], environment);
  t.equal(verified.status, 0, verified.out + verified.err);
});

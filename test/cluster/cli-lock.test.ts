import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { connect } from '../../src/client/index.js';
import { Cli, runCli } from './cli.js';
import { Cluster } from './harness.js';
import { isAlive } from './process-state.js';
import { waitFor } from './wait-for.js';

const cluster = await Cluster.start({
  test: t,
  nodes: 3,
  settings: { leaseTtlMsLeast: 250, sessionTtlMsLeast: 250 },
});
const ENDPOINTS = { HOLDFAST_ENDPOINTS: cluster.endpointList };

function lockWords(name: string, script: string, ...options: readonly string[]): string[] {
  return ['lock', name, ...options, '--', '/bin/sh', '-c', script];
}

async function pidIn(file: string): Promise<number> {
  const text = await waitFor(`a process id in ${file}`, () => {
    if (!existsSync(file)) return null;
    const content = readFileSync(file, 'utf8');
    return content.endsWith('\n') ? content : null;
  });
  return Number(text);
}

function loop(folder: string, name: string): string {
  return `echo $$ > ${folder}/${name}; while :; do sleep 0.02; done`;
}

/** Prints `alone` or `overlap`: a zombie that nobody has reaped yet does nothing any more. */
function lookFor(pid: number): string {
  return `grep -q "^State:.[RSDT]" /proc/${pid}/status 2>/dev/null && echo overlap || echo alone`;
}

const client = await connect({ endpoints: cluster.endpoints });
t.teardown(() => client.close());

t.test('the command gets its token; the lock is free when it has ended', async (t) => {
  const words = lockWords(
    'env',
    'echo "$HOLDFAST_LOCK $HOLDFAST_TOKEN $HOLDFAST_LEASE_ID"; exit 3',
  );
  const { status, out, err } = await runCli(t, words, ENDPOINTS);
  t.equal(status, 3, err);
  t.match(out, /^env [1-9][0-9]* [0-9a-f]{32}\n$/);
  t.equal((await client.get('env')).holder, null);
});

t.test('HOLDFAST_ENDPOINTS works inside the command', async (t) => {
  const cli = `"${process.execPath}" dist-test/src/cli/main.js`;
  const words = lockWords('nested', `${cli} get "$HOLDFAST_LOCK" --json`);
  const { status, out, err } = await runCli(t, [...words], ENDPOINTS);
  t.equal(status, 0, err);
  t.match(JSON.parse(out), { name: 'nested', holder: { fencing_token: Number } });
});

t.test('two shells run one after the other', async (t) => {
  const folder = t.testdir({});
  const log = path.join(folder, 'log');
  const script = (name: string): string =>
    `echo "${name} begin $HOLDFAST_TOKEN" >> ${log}; sleep 0.3; echo "${name} end" >> ${log}`;
  const runs = ['a', 'b'].map((name) =>
    runCli(t, lockWords('shells', script(name), '--wait', '20s'), ENDPOINTS),
  );
  for (const { status, err } of await Promise.all(runs)) t.equal(status, 0, err);
  const lines = readFileSync(log, 'utf8').trim().split('\n');
  t.equal(lines.length, 4);
  const [first, firstEnd, second, secondEnd] = lines.map((line) => line.split(' '));
  t.same(
    [first?.[1], firstEnd?.[1], second?.[1], secondEnd?.[1]],
    ['begin', 'end', 'begin', 'end'],
  );
  t.equal(first?.[0], firstEnd?.[0]);
  t.ok(Number(second?.[2]) > Number(first?.[2]), 'the second token is larger');
});

t.test('a busy lock is 75 at once, and says who holds it', async (t) => {
  const folder = t.testdir({});
  const holder = new Cli(t, lockWords('busy', loop(folder, 'pid')), ENDPOINTS);
  await pidIn(path.join(folder, 'pid'));
  const words = lockWords('busy', 'echo never', '--wait', '0s');
  const plain = await runCli(t, words, ENDPOINTS);
  t.equal(plain.status, ExitCode.Busy);
  t.match(
    plain.err,
    /LOCK_BUSY: busy is held by ".* pid \d+: \/bin\/sh" with token \d+; its lease ends in \d/,
  );
  t.equal(plain.out, '');
  const json = await runCli(t, ['lock', 'busy', '--json', '--wait', '0s', '--', 'true'], ENDPOINTS);
  t.equal(json.status, ExitCode.Busy);
  t.match(JSON.parse(json.err), {
    error: {
      code: 'LOCK_BUSY',
      outcome: 'none',
      holder: { fencing_token: Number, expires_in_ms: Number, metadata: /pid \d+: \/bin\/sh$/ },
    },
  });
  const late = await runCli(t, lockWords('busy', 'echo never', '--wait', '200ms'), ENDPOINTS);
  t.equal(late.status, ExitCode.Busy);
  t.match(
    late.err,
    /WAIT_TIMEOUT: busy was not free within 200ms, held by ".*" with token \d+; give a longer/,
  );
  const waiter = new Cli(t, lockWords('busy', 'true', '--wait', '1m', '--json'), ENDPOINTS);
  await waitFor('the remark', () => waiter.err.includes('waiting for busy, held by'));
  t.match(JSON.parse(waiter.err), { remark: /^waiting for busy, held by ".*" with token \d+$/ });
  waiter.signal('SIGTERM');
  await waiter.ended;
  holder.signal('SIGTERM');
  t.equal((await holder.ended).status, 128 + 15);
});

t.test('with --json every failure of lock is one line on standard error', async (t) => {
  const cases: readonly (readonly [string, number, string])[] = [
    ['no-such-command', ExitCode.NotFound, 'COMMAND_NOT_FOUND'],
    ['/etc/passwd', ExitCode.NotExecutable, 'COMMAND_NOT_STARTED'],
  ];
  for (const [command, status, code] of cases) {
    const end = await runCli(t, ['lock', 'json', '--json', '--', command], ENDPOINTS);
    t.equal(end.status, status);
    t.match(JSON.parse(end.err), { error: { code } });
    t.equal(end.out, '');
  }
  const killed = lockWords('json', 'kill -9 $PPID; sleep 60', '--json');
  const end = await runCli(t, killed, ENDPOINTS);
  t.equal(end.status, ExitCode.Fault);
  t.match(JSON.parse(end.err), { error: { code: 'WATCHDOG_KILLED' } });
});

t.test('SIGTERM ends the command, frees the lock at once, and is 143', async (t) => {
  const folder = t.testdir({});
  const holder = new Cli(t, lockWords('term', loop(folder, 'pid'), '--ttl', '1m'), ENDPOINTS);
  const pid = await pidIn(path.join(folder, 'pid'));
  holder.signal('SIGTERM');
  t.equal((await holder.ended).status, 128 + 15);
  t.notOk(isAlive(pid));
  t.equal((await client.get('term')).holder, null);
});

t.test('SIGTERM while waiting: the command never starts, the place is given up', async (t) => {
  const folder = t.testdir({});
  const holder = new Cli(t, lockWords('queue', loop(folder, 'pid')), ENDPOINTS);
  await pidIn(path.join(folder, 'pid'));
  const ran = path.join(folder, 'ran');
  const waiter = new Cli(t, lockWords('queue', `touch ${ran}`, '--wait', '1m'), ENDPOINTS);
  await waitFor('the waiter to stand in the queue', async () => {
    return (await client.get('queue')).waiters === 1;
  });
  waiter.signal('SIGTERM');
  t.equal((await waiter.ended).status, 128 + 15);
  t.equal((await client.get('queue')).waiters, 0);
  holder.signal('SIGTERM');
  await holder.ended;
  t.notOk(existsSync(ran));
});

t.test('kill -9 of the CLI: its command is gone before the next one starts', async (t) => {
  const folder = t.testdir({});
  const first = new Cli(t, lockWords('handover', loop(folder, 'first'), '--ttl', '2s'), ENDPOINTS);
  const firstPid = await pidIn(path.join(folder, 'first'));
  const words = lockWords('handover', lookFor(firstPid), '--wait', '30s');
  const second = runCli(t, words, ENDPOINTS);
  first.signal('SIGKILL');
  const { status, out, err } = await second;
  t.equal(status, 0, err);
  t.equal(out, 'alone\n');
  t.notOk(isAlive(firstPid));
});

t.test('a stopped CLI: its command is gone before the next one starts', async (t) => {
  const folder = t.testdir({});
  const script = `trap "" TERM; ${loop(folder, 'first')}`;
  const first = new Cli(t, lockWords('stopped', script, '--ttl', '2s'), ENDPOINTS);
  const firstPid = await pidIn(path.join(folder, 'first'));
  first.signal('SIGSTOP');
  const words = lockWords('stopped', lookFor(firstPid), '--wait', '30s');
  const second = await runCli(t, words, ENDPOINTS);
  t.equal(second.status, 0, second.err);
  t.equal(second.out, 'alone\n');
  first.signal('SIGCONT');
  t.equal((await first.ended).status, ExitCode.Lost);
});

t.test('a lease that was ended by force while the command ran is 70, and says so', async (t) => {
  const folder = t.testdir();
  const go = path.join(folder, 'go');
  const script = `while [ ! -e ${go} ]; do sleep 0.02; done; exit 0`;
  const cli = new Cli(t, lockWords('forced', script, '--ttl', '10m'), ENDPOINTS);
  const { holder } = await waitFor('the lock to be held', async () => {
    const lock = await client.get('forced');
    return lock.holder === null ? null : lock;
  });
  const { token = 0 } = holder ?? {};
  const words = { actor: 'ops@bastion', reason: 'it hangs' };
  await client.admin.forceRelease('forced', { token }, words);
  writeFileSync(go, '');
  const { status, err } = await cli.ended;
  t.equal(status, ExitCode.Lost, err);
  t.match(err, /LEASE_EXPIRED: the lease of forced had ended while the command ran \(forced\)/);
});

t.test('the lock survives a leader change', async (t) => {
  const folder = t.testdir({});
  const holder = new Cli(t, lockWords('steady', loop(folder, 'pid'), '--ttl', '10s'), ENDPOINTS);
  const pid = await pidIn(path.join(folder, 'pid'));
  const before = await client.get('steady');
  const leader = await cluster.leader();
  await cluster.kill(leader);
  await cluster.leaderOtherThan(leader);
  await cluster.restart(leader);
  t.equal((await client.get('steady')).holder?.token, before.holder?.token);
  t.ok(isAlive(pid));
  holder.signal('SIGTERM');
  t.equal((await holder.ended).status, 128 + 15);
});

t.test('no quorum: 69, and nothing runs', async (t) => {
  const leader = await cluster.leader();
  const others = cluster.nodeIds.filter((nodeId) => nodeId !== leader);
  for (const nodeId of others) await cluster.stop(nodeId);
  const words = lockWords('nobody', 'echo never', '--timeout', '1500ms', '--wait', '0s');
  const { status, out, err } = await runCli(t, words, ENDPOINTS);
  for (const nodeId of others) await cluster.cont(nodeId);
  t.ok(status === ExitCode.Unavailable || status === ExitCode.Unknown, `${status}: ${err}`);
  t.equal(out, '');
});

t.test('nobody there at all: 69', async (t) => {
  const words = lockWords('nobody', 'echo never', '--timeout', '500ms');
  const { status, out } = await runCli(t, words, { HOLDFAST_ENDPOINTS: '127.0.0.1:1' });
  t.equal(status, ExitCode.Unavailable);
  t.equal(out, '');
});

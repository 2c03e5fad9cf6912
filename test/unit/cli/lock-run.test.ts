import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import path from 'node:path';
import t from 'tap';
import { ExitCode } from '../../../src/cli/exit-codes.js';
import {
  type CommandLease,
  type LockFailure,
  type LockRun,
  runUnderLock,
} from '../../../src/cli/lock-run.js';
import { parsePlace } from '../../../src/cli/watchdog/session.js';
import { isAlive, stateOf } from '../../cluster/process-state.js';
import { waitFor } from '../../cluster/wait-for.js';
import { compiledFile } from '../../gate/paths.js';

/** A lease whose time the test sets. */
class TestLease implements CommandLease {
  readonly token = 41;
  readonly leaseId = '00112233445566778899aabbccddeeff';
  readonly ttlMs = 2_000;
  readonly lossController = new AbortController();
  readonly lost = this.lossController.signal;
  released = 0;
  /** Called at the release, to look at the world at that moment. */
  onRelease: () => void = () => undefined;
  private deadline = Number.POSITIVE_INFINITY;

  remainingMs(): number {
    return Math.min(this.ttlMs, this.deadline - performance.now());
  }

  /** From now on nothing renews it. */
  stopRenewing(): void {
    this.deadline = performance.now() + this.ttlMs;
  }

  async release(): Promise<void> {
    this.released += 1;
    this.onRelease();
  }
}

interface Scene {
  readonly lease: TestLease;
  readonly said: string[];
  readonly failed: [LockFailure, string][];
  readonly run: LockRun;
}

function scene(script: string, acquire?: LockRun['acquire']): Scene {
  const lease = new TestLease();
  const said: string[] = [];
  const failed: [LockFailure, string][] = [];
  return {
    lease,
    said,
    failed,
    run: {
      name: 'jobs/nightly',
      command: '/bin/sh',
      words: ['-c', script],
      endpoints: '127.0.0.1:7401',
      acquire: acquire ?? (async () => lease),
      say: (text) => said.push(text),
      fail: (code, text) => failed.push([code, text]),
    },
  };
}

async function pidIn(file: string): Promise<number> {
  const text = await waitFor(`a process id in ${file}`, () => {
    if (!existsSync(file)) return null;
    const content = readFileSync(file, 'utf8');
    return content.endsWith('\n') ? content : null;
  });
  return Number(text);
}

/** A command that ignores TERM and writes down until when it ran, in seconds of uptime. */
function stubborn(folder: string): string {
  return (
    `trap "" TERM; read now rest < /proc/uptime; echo $now > ${folder}/seen; ` +
    `echo $$ > ${folder}/pid; ` +
    `while :; do sleep 0.02; read now rest < /proc/uptime; echo $now >> ${folder}/seen; done`
  );
}

function lastUptime(folder: string): number {
  const lines = readFileSync(path.join(folder, 'seen'), 'utf8').trim().split('\n');
  return Number(lines.at(-1));
}

t.test('the command gets lock, token, lease id and endpoints in its environment', async (t) => {
  const file = path.join(t.testdir({}), 'env');
  const { run, lease } = scene(
    `echo "$HOLDFAST_LOCK|$HOLDFAST_TOKEN|$HOLDFAST_LEASE_ID|$HOLDFAST_ENDPOINTS" > ${file}`,
  );
  t.equal(await runUnderLock(run), 0);
  t.equal(
    readFileSync(file, 'utf8'),
    'jobs/nightly|41|00112233445566778899aabbccddeeff|127.0.0.1:7401\n',
  );
  t.equal(lease.released, 1);
});

t.test('the status of the command is passed on', async (t) => {
  t.equal(await runUnderLock(scene('exit 7').run), 7);
  t.equal(await runUnderLock(scene('kill -9 $$').run), 128 + 9);
});

t.test(
  'a command that cannot be started has its own status, and the lock is released',
  async (t) => {
    const { run, lease, failed } = scene('');
    t.equal(await runUnderLock({ ...run, command: 'no-such-command' }), ExitCode.NotFound);
    t.equal(await runUnderLock({ ...run, command: '/nowhere/at/all' }), ExitCode.NotFound);
    const folder = t.testdir({ plain: 'not a program' });
    const plain = path.join(folder, 'plain');
    t.equal(await runUnderLock({ ...run, command: plain }), ExitCode.NotExecutable);
    t.equal(lease.released, 3);
    t.same(failed, [
      ['COMMAND_NOT_FOUND', 'cannot start no-such-command: not found in PATH'],
      ['COMMAND_NOT_FOUND', 'cannot start /nowhere/at/all: no such file, or no interpreter'],
      ['COMMAND_NOT_STARTED', `cannot start ${plain}: it is not executable`],
    ]);
  },
);

t.test('a refusal to grant is the caller’s error, and no watchdog stays behind', async (t) => {
  const busy = Object.assign(new Error('busy'), { code: 'LOCK_BUSY' });
  const { run } = scene('exit 0', async () => Promise.reject(busy));
  await t.rejects(runUnderLock(run), { code: 'LOCK_BUSY' });
});

t.test(
  'a signal before the grant: the command never starts, the late grant is released',
  async (t) => {
    const file = path.join(t.testdir({}), 'ran');
    const lease = new TestLease();
    const { run } = scene(`touch ${file}`, async (signal) => {
      process.kill(process.pid, 'SIGTERM');
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return lease;
    });
    t.equal(await runUnderLock(run), 128 + 15);
    t.equal(lease.released, 1);
    t.notOk(existsSync(file));
  },
);

t.test('a signal while the command runs is passed on to its whole group', async (t) => {
  const folder = t.testdir({});
  const { run, lease } = scene(
    `trap "wait; exit 5" TERM; ` +
      `sh -c 'trap "echo inner > ${folder}/inner; exit 3" TERM; echo $$ > ${folder}/pid; ` +
      `while :; do sleep 0.05; done' & wait`,
  );
  const status = runUnderLock(run);
  await pidIn(path.join(folder, 'pid'));
  process.kill(process.pid, 'SIGTERM');
  t.equal(await status, 5);
  t.equal(readFileSync(path.join(folder, 'inner'), 'utf8'), 'inner\n');
  t.equal(lease.released, 1);
});

t.test('a lost lease ends the command: TERM first', async (t) => {
  const folder = t.testdir({});
  const { run, lease, failed } = scene(
    `trap "echo term > ${folder}/term; exit 0" TERM; echo $$ > ${folder}/pid; ` +
      'while :; do sleep 0.02; done',
  );
  const status = runUnderLock(run);
  const pid = await pidIn(path.join(folder, 'pid'));
  lease.lossController.abort();
  t.equal(await status, ExitCode.Lost);
  t.equal(readFileSync(path.join(folder, 'term'), 'utf8'), 'term\n');
  t.notOk(isAlive(pid));
  t.match(failed, [['LEASE_EXPIRED', /^the lease of jobs\/nightly is lost \(lost\)/]]);
});

t.test('a lost lease ends a command that ignores TERM, and its children: KILL', async (t) => {
  const folder = t.testdir({});
  const { run, lease } = scene(
    `trap "" TERM; sh -c 'echo $$ > ${folder}/inner; while :; do sleep 0.02; done' & ` +
      `echo $$ > ${folder}/pid; while :; do sleep 0.02; done`,
  );
  const status = runUnderLock(run);
  const pid = await pidIn(path.join(folder, 'pid'));
  const inner = await pidIn(path.join(folder, 'inner'));
  lease.lossController.abort();
  t.equal(await status, ExitCode.Lost);
  t.notOk(isAlive(pid));
  t.notOk(isAlive(inner));
});

t.test('without renewals the command is gone before the safe deadline', async (t) => {
  const folder = t.testdir({});
  const { run, lease } = scene(stubborn(folder));
  const status = runUnderLock(run);
  const pid = await pidIn(path.join(folder, 'pid'));
  lease.stopRenewing();
  const deadline = uptime() + lease.ttlMs / 1_000;
  t.equal(await status, ExitCode.Lost);
  t.notOk(isAlive(pid));
  const lastSeen = lastUptime(folder);
  t.ok(lastSeen < deadline, `seen at ${lastSeen}, the deadline was ${deadline}`);
  t.ok(lastSeen > deadline - lease.ttlMs / 2_000, 'not long before either: TERM was ignored');
});

t.test('a lease with no time left starts nothing', async (t) => {
  const file = path.join(t.testdir({}), 'ran');
  const { run, lease } = scene(`touch ${file}`);
  lease.remainingMs = () => 50;
  t.equal(await runUnderLock(run), ExitCode.Lost);
  t.notOk(existsSync(file));
  t.equal(lease.released, 1);
});

t.test('what the command leaves behind is ended before the release', async (t) => {
  const folder = t.testdir({});
  const { run, lease } = scene(
    `sh -c 'trap "" TERM HUP; echo $$ > ${folder}/pid; while :; do sleep 0.02; done' & ` +
      `while [ ! -s ${folder}/pid ]; do sleep 0.02; done; exit 0`,
  );
  let aliveAtRelease = true;
  lease.onRelease = () => {
    aliveAtRelease = isAlive(Number(readFileSync(path.join(folder, 'pid'), 'utf8')));
  };
  t.equal(await runUnderLock(run), 0);
  t.notOk(aliveAtRelease);
});

t.test('a child in a process group of its own is ended with the session', async (t) => {
  const folder = t.testdir({});
  const { run, lease } = scene(
    `set -m; sh -c 'trap "" TERM HUP; echo $$ > ${folder}/pid; ` +
      `while :; do sleep 0.02; done' & wait`,
  );
  const status = runUnderLock({ ...run, command: '/bin/bash' });
  const pid = await pidIn(path.join(folder, 'pid'));
  const place = parsePlace(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  t.not(place.group, place.session, 'its group is not that of the watchdog');
  lease.lossController.abort();
  t.equal(await status, ExitCode.Lost);
  await waitFor('the stray to end', () => !isAlive(pid));
});

t.test('a stopped command is ended too', async (t) => {
  const folder = t.testdir({});
  const { run, lease } = scene(`echo $$ > ${folder}/pid; while :; do sleep 0.02; done`);
  const status = runUnderLock(run);
  const pid = await pidIn(path.join(folder, 'pid'));
  process.kill(pid, 'SIGSTOP');
  await waitFor('the command to stop', () => stateOf(pid) === 'T');
  lease.lossController.abort();
  t.equal(await status, ExitCode.Lost);
  t.notOk(isAlive(pid));
});

t.test('a killed watchdog: the CLI ends the command', async (t) => {
  const folder = t.testdir({});
  const { run, lease, failed } = scene(
    `echo $PPID > ${folder}/watchdog; echo $$ > ${folder}/pid; while :; do sleep 0.02; done`,
  );
  const status = runUnderLock(run);
  const watchdog = await pidIn(path.join(folder, 'watchdog'));
  const pid = await pidIn(path.join(folder, 'pid'));
  process.kill(watchdog, 'SIGKILL');
  t.equal(await status, ExitCode.Fault);
  t.match(failed, [['WATCHDOG_KILLED', /the command was ended/]]);
  await waitFor('the command to end', () => !isAlive(pid));
  t.equal(lease.released, 1);
});

function startProcess(ttlMs: number, script: string): ChildProcess {
  const file = compiledFile('test/unit/cli/lock-run-process.ts');
  return spawn(process.execPath, [file, String(ttlMs), '/bin/sh', '-c', script], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
}

t.test('kill -9 of the CLI ends the command at once', async (t) => {
  const folder = t.testdir({});
  const cli = startProcess(60_000, `echo $$ > ${folder}/pid; while :; do sleep 0.02; done`);
  const pid = await pidIn(path.join(folder, 'pid'));
  const killed = performance.now();
  cli.kill('SIGKILL');
  await waitFor('the command to end', () => !isAlive(pid));
  t.ok(performance.now() - killed < 30_000, 'long before the lease ends');
});

t.test('a stopped CLI: the command is gone when the last deadline comes', async (t) => {
  const folder = t.testdir({});
  const cli = startProcess(3_000, stubborn(folder));
  const pid = await pidIn(path.join(folder, 'pid'));
  cli.kill('SIGSTOP');
  const deadline = uptime() + 3;
  await waitFor('the command to end', () => !isAlive(pid));
  const status = new Promise((resolve) => cli.once('exit', resolve));
  cli.kill('SIGCONT');
  const lastSeen = lastUptime(folder);
  t.ok(lastSeen < deadline, `seen at ${lastSeen}, the deadline was ${deadline}`);
  t.equal(await status, ExitCode.Lost);
});

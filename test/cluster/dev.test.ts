import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { Cli } from './cli.js';
import { freePorts } from './harness.js';
import { childrenOf, isAlive } from './process-state.js';
import { waitFor } from './wait-for.js';

/** A base port whose ten ports are probably free: below the range that the system gives away. */
async function basePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return 20_000 + (port % 10_000);
}

function readyLines(cli: Cli): string[] {
  return cli.out.split('\n').filter((line) => line.startsWith('holdfast: cluster ready'));
}

function nodePids(cli: Cli): number[] {
  return childrenOf(cli.child.pid ?? 0);
}

async function startDev(test: Test, folder: string, port: number): Promise<Cli> {
  const cli = new Cli(test, ['dev', '--data', folder, '--base-port', String(port)]);
  await waitFor(
    'the ready line',
    () => readyLines(cli).length > 0 || cli.child.exitCode !== null,
    120_000,
  );
  return cli;
}

t.test('one ready line, Ctrl-C ends all five, a restart founds nothing', async (t) => {
  const folder = path.join(t.testdir({}), 'data');
  const port = await basePort();
  const first = await startDev(t, folder, port);
  t.equal(first.out.trim().split('\n').length, 1, first.err);
  const addresses = [1, 2, 3, 4, 5].map((id) => `127.0.0.1:${port + id}`).join(',');
  t.match(
    first.out,
    new RegExp(`^holdfast: cluster ready {2}leader [1-5] {2}clients ${addresses} `),
  );
  t.notOk(existsSync(path.join(folder, 'founding')));
  const pids = nodePids(first);
  t.equal(pids.length, 5);
  first.signal('SIGINT');
  t.equal((await first.ended).status, 0, first.err);
  for (const pid of pids) t.notOk(isAlive(pid));

  const clusterOf = (nodeId: number): string | undefined => {
    const log = readFileSync(path.join(folder, 'logs', `node-${nodeId}.log`), 'utf8');
    return [...log.matchAll(/"cluster":"([0-9a-f]{32})"/g)].at(-1)?.[1];
  };
  const before = clusterOf(1);
  const second = await startDev(t, folder, port);
  t.equal(readyLines(second).length, 1, second.err);
  t.equal(clusterOf(1), before);

  const [victim = 0] = nodePids(second);
  process.kill(victim, 'SIGKILL');
  await waitFor('the report', () => second.err.includes('ended by SIGKILL'));
  t.match(
    second.err,
    /NODE_ENDED: node [1-5] ended by SIGKILL\. It is not restarted: .* Its log: .*node-[1-5]\.log/,
  );
  second.signal('SIGTERM');
  t.equal((await second.ended).status, ExitCode.Refused, 'a dead node is not hidden');
});

t.test('kill -9 of the supervisor ends the nodes', async (t) => {
  const folder = path.join(t.testdir({}), 'data');
  const cli = await startDev(t, folder, await basePort());
  t.equal(readyLines(cli).length, 1, cli.err);
  const pids = nodePids(cli);
  t.equal(pids.length, 5);
  cli.signal('SIGKILL');
  await waitFor('all nodes to end', () => !pids.some(isAlive));
});

t.test('too many empty folders: refused, and nothing is started', async (t) => {
  const folder = path.join(t.testdir({}), 'data');
  mkdirSync(path.join(folder, 'node-1', 'something'), { recursive: true });
  const port = String(await basePort());
  const cli = new Cli(t, ['dev', '--data', folder, '--base-port', port]);
  const { status, err } = await cli.ended;
  t.equal(status, ExitCode.Configuration);
  t.match(err, /FOLDER_WIPED: restore node-2, .*no majority/);
  t.notOk(existsSync(path.join(folder, 'logs')));
});

t.test('what can be found wrong before a node starts is said by dev itself', async (t) => {
  const folder = path.join(t.testdir({ file: '' }), 'data');
  const port = String(await basePort());
  const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
    [
      ['--data', `${folder}/../file/x`],
      ExitCode.Configuration,
      /FOLDER_UNUSABLE: --data: .*ENOTDIR/,
    ],
    [['--data', '/proc/nc'], ExitCode.Configuration, /FOLDER_UNUSABLE: --data: .*\/proc\/nc/],
    [['--data', folder, '--setting', 'foo=1'], ExitCode.Usage, /USAGE: --setting: .*Names: lease/],
  ];
  for (const [words, wanted, message] of cases) {
    const { status, err } = await new Cli(t, ['dev', '--base-port', port, ...words]).ended;
    t.equal(status, wanted, err);
    t.match(err, message);
    t.equal(err.trim().split('\n').length, 1, 'one line');
  }
});

t.test('a lost state record and an emptied folder: the others serve, both are told', async (t) => {
  const folder = path.join(t.testdir({}), 'data');
  const port = await basePort();
  const first = await startDev(t, folder, port);
  t.equal(readyLines(first).length, 1, first.err);
  const busy = new Cli(t, ['dev', '--data', folder, '--base-port', String(port + 1_000)]);
  t.match((await busy.ended).err, /FOLDER_IN_USE: stop process \d+ first/);
  first.signal('SIGINT');
  // The second one comes at once, as from npm.
  first.signal('SIGINT');
  const end = await first.ended;
  t.equal(end.status, 0, end.err);
  rmSync(path.join(folder, 'node-3', 'state'), { recursive: true });
  rmSync(path.join(folder, 'node-4'), { recursive: true });
  const second = await startDev(t, folder, port);
  t.equal(readyLines(second).length, 1, second.err);
  t.match(second.err, /NODE_ENDED: node 4 is not started: .*a wiped node cannot return/);
  t.match(second.err, /NODE_ENDED: node 3 ended with status 74: .*cannot replace a member/);
  t.equal(nodePids(second).length, 3);
  second.signal('SIGINT');
  t.equal((await second.ended).status, ExitCode.Refused, 'a lost node is not hidden');
});

t.test('a node whose log is damaged throughout is told, and the others serve', async (t) => {
  const folder = path.join(t.testdir({}), 'data');
  const port = await basePort();
  const first = await startDev(t, folder, port);
  first.signal('SIGINT');
  await first.ended;
  const log = path.join(folder, 'node-4', 'log');
  const [segment = ''] = readdirSync(log);
  const file = path.join(log, segment, 'data.mdb');
  const bytes = readFileSync(file);
  // Beyond the two meta pages, which are checked before the file is mapped.
  for (let at = 8_192; at < 122_880; at += 64) bytes.fill(0xa5, at, at + 16);
  writeFileSync(file, bytes);
  const second = await startDev(t, folder, port);
  t.equal(readyLines(second).length, 1, second.err);
  await waitFor('the report', () => second.err.includes('NODE_ENDED: node 4'));
  t.match(second.err, /node 4 ended .*cannot replace a member/);
  second.signal('SIGINT');
  await second.ended;
});

t.test('a port that is taken is 78, and nothing is started', async (t) => {
  const folder = path.join(t.testdir({}), 'data');
  const server = createServer();
  t.teardown(() => server.close());
  const port = await basePort();
  await new Promise<void>((resolve) => {
    server.listen(port + 203, '127.0.0.1', () => resolve());
  });
  const cli = new Cli(t, ['dev', '--data', folder, '--base-port', String(port)]);
  const { status, out, err } = await cli.ended;
  t.equal(status, ExitCode.Configuration, err);
  t.equal(out, '');
  t.match(err, new RegExp(`PORT_TAKEN: cannot listen on 127.0.0.1:${port + 203} `));
  t.notOk(existsSync(folder));
});

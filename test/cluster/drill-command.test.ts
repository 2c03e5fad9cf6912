/**
 * The command around the drills: its story, what it refuses, how a signal ends it, and the canary
 * on a cluster that somebody else uses.
 */

import { readdirSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { Cli, runCli } from './cli.js';
import { recordsIn, scratch } from './drill-run.js';
import { Cluster } from './harness.js';
import { childrenOf, isAlive } from './process-state.js';
import { waitFor } from './wait-for.js';

t.test('a drill tells a story for people', async (t) => {
  const { environment } = scratch(t);
  const { status, out, err } = await runCli(t, ['drill', 'paused-owner'], environment);
  t.equal(status, ExitCode.Ok, err);
  t.match(out, /^paused-owner: an old owner resumes after a long pause\n/);
  t.match(out, /revision \d+ +token \d+ +A holds the lock/);
  t.match(out, /the guard refuses A: STALE_TOKEN, \d+ was shown, \d+ was seen/);
  t.match(out, /ended: expired, by time/);
  t.match(out, /last durable revision +\d+/);
  t.match(out, /\ncomplete, in [\d.]+ s\n$/);
});

t.test('a drill that the machine does not permit is refused by a code', async (t) => {
  const { folder, environment } = scratch(t);
  // Without a PATH there is no `mount` to be found, as there is none to be used without root.
  const end = await runCli(t, ['drill', 'full-disk'], { ...environment, PATH: folder });
  t.equal(end.status, ExitCode.Forbidden, end.err);
  t.match(end.err, /^holdfast: DRILL_NOT_PERMITTED: run this drill as root/);
  t.equal(end.out, '');
  t.same(readdirSync(folder), [], 'nothing is left behind');
});

t.test('a signal ends a drill, its nodes and its folder', async (t) => {
  const { folder, environment } = scratch(t);
  const cli = new Cli(t, ['drill', 'paused-owner'], environment);
  const pids = await waitFor('five nodes and the program', () => {
    const children = childrenOf(cli.child.pid ?? 0);
    return children.length >= 6 ? children : null;
  });
  cli.signal('SIGINT');
  t.equal((await cli.ended).status, 128 + 2, cli.err);
  await waitFor('every process to end', () => !pids.some(isAlive));
  t.same(readdirSync(folder), [], 'nothing is left behind');
});

t.test('--keep leaves data and logs, and says where', async (t) => {
  const { folder, environment } = scratch(t);
  const end = await runCli(t, ['drill', 'lost-lease', '--keep'], environment);
  t.equal(end.status, ExitCode.Ok, end.err);
  const [name = ''] = readdirSync(folder);
  t.ok(end.out.includes(`kept in ${path.join(folder, name)}\n`), end.out);
  t.same(readdirSync(path.join(folder, name, 'logs')).length, 5);
});

t.test('the canary plays on a cluster that others use', async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3 });
  const endpoints = { HOLDFAST_ENDPOINTS: cluster.endpointList };
  const holder = new Cli(t, ['lock', 'of-others', '--', 'sleep', '120'], endpoints);
  await waitFor('somebody else’s lock', async () => {
    return (await runCli(t, ['get', 'of-others'], endpoints)).out.includes('held');
  });

  await t.test('once, for a timer', async (t) => {
    const { folder, environment } = scratch(t);
    const words = ['drill', '--canary', '--once', '--json'];
    const end = await runCli(t, words, { ...endpoints, ...environment });
    t.equal(end.status, ExitCode.Ok, end.err);
    const [record] = recordsIn(end.out);
    t.match(record, { drill: 'canary', complete: true, lock: /^holdfast-drill\/canary\// });
    t.same(readdirSync(folder), [], 'nothing is left behind');
  });

  await t.test('again and again, until a signal', async (t) => {
    const words = ['drill', '--canary', '--every', '1s', '--json'];
    const cli = new Cli(t, words, { ...endpoints, ...scratch(t).environment });
    await waitFor('a record', () => cli.out.includes('\n'), 60_000);
    cli.signal('SIGTERM');
    const end = await cli.ended;
    t.equal(end.status, ExitCode.Ok, end.err);
    t.match(end.err, /"remark":"\d+ runs, 0 failed"/);
    t.ok(recordsIn(end.out).every(({ complete }) => complete));
  });

  for (const [mode, fault] of [
    ['unprotected', /no write is done under a token below an earlier one: A, late wrote/],
    ['gap', /was acknowledged at \d+, and is not/],
  ] as const) {
    await t.test(`it fails under ${mode}`, async (t) => {
      const words = ['drill', '--canary', '--once', '--json'];
      const environment = { ...endpoints, ...scratch(t).environment, HOLDFAST_DRILL_TEST: mode };
      const end = await runCli(t, words, environment);
      t.equal(end.status, ExitCode.Refused, end.err);
      t.match(end.err, fault);
    });
  }

  await t.test('it leaves no lock of its own, and those of others as they were', async (t) => {
    const mine = await runCli(t, ['ls', 'holdfast-drill/', '--json'], endpoints);
    t.same(JSON.parse(mine.out).locks, []);
    t.match((await runCli(t, ['get', 'of-others'], endpoints)).out, /held/);
    holder.signal('SIGINT');
    await holder.ended;
  });

  await t.test('without a leader it says so', async (t) => {
    const words = ['drill', '--canary', '--once', '--endpoints', '127.0.0.1:1'];
    const end = await runCli(t, [...words, '--timeout', '500ms']);
    t.equal(end.status, ExitCode.Unavailable, end.err);
    t.match(end.err, /NO_QUORUM/);
  });
});

/**
 * `holdfast guard …` over the real servers, run inside this process.
 *
 * Owns: the cases, and what stands for the program's output. Used by: guards.test.ts.
 */
import path from 'node:path';
import type { Test } from 'tap';
import { guardCommands } from '../../src/cli/commands/guard.js';
import { guardProxyCommands } from '../../src/cli/commands/guard-proxy.js';
import { Program } from '../../src/cli/program.js';
import { connect } from '../../src/client/index.js';
import { openDatabase } from '../../src/guards/open-guard.js';
import { FlightLog } from '../../src/guards/proxy/flight-log.js';
import { refusalOf } from './conformance.js';
import type { Kind, Place, Resource } from './resource.js';
import { openDoor } from './resources/open.js';
import { marksFileOf } from './resources/proxy-resource.js';
import { S3_ACCESS, S3_SECRET } from './servers/s3-server.js';

interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

async function run(words: readonly string[]): Promise<Ran> {
  let out = '';
  let err = '';
  const program = new Program([...guardCommands, ...guardProxyCommands], {
    standardOutput: { write: (text) => (out += text) },
    standardError: { write: (text) => (err += text) },
    version: '0',
  });
  const status = await program.run(['guard', ...words]);
  return { status, out, err };
}

/** The option that names a resource. */
function storeWords({ kind, port, folder }: Place, cell: string): string[] {
  const words: Readonly<Record<Kind, string[]>> = {
    postgres: ['--postgres', `postgres://postgres@127.0.0.1:${port}/postgres`],
    redis: ['--redis', `redis://127.0.0.1:${port}`],
    s3: ['--s3', `http://127.0.0.1:${port}/guarded/cells/${cell}`],
    sqlite: ['--sqlite', path.join(folder, 'guarded.sqlite')],
    proxy: ['--sqlite', marksFileOf(folder)],
  };
  return words[kind];
}

/** Looks at a mark, raises it, looks again; a stale writer is shut out. */
export async function commandCases(t: Test, { place }: Resource): Promise<void> {
  await t.test('guard show and guard raise', async (t) => {
    process.env['AWS_ACCESS_KEY_ID'] = S3_ACCESS;
    process.env['AWS_SECRET_ACCESS_KEY'] = S3_SECRET;
    process.env['HOLDFAST_S3_UNQUOTED_ETAGS'] = '1';
    const store = storeWords(place, 'cli');
    const lock = 'cli/mark';
    t.equal((await run(['migrate', ...store])).status, 0);
    t.match(await run(['show', lock, ...store]), { status: 0, out: /no token was seen yet/ });
    const raised = await run(['raise', lock, '--token', '42', '--json', ...store]);
    t.equal(raised.status, 0, raised.err);
    t.match(JSON.parse(raised.out), { lock, fencing_token: 42 });
    const door = await openDoor(place, 'cli');
    t.ok(await refusalOf(door.write({ lock, token: 41 }, 'late')));
    await door.close();
    t.match(await run(['show', lock, ...store]), { status: 0, out: /below 42 are refused/ });
    const bad = await run(['raise', lock, '--token', '0', ...store]);
    t.equal(bad.status, 64, bad.err);
  });
}

/** What needs no store: usage, unreachable stores, the quarantine, the printed migration. */
export async function plainCommandCases(t: Test, folder: string): Promise<void> {
  t.match(await run(['show', 'x']), { status: 64, err: /name one store/ });
  const two = ['--redis', 'redis://127.0.0.1:1', '--sqlite', 'x'];
  t.match(await run(['show', 'x', ...two]), { status: 64, err: /name one store/ });
  for (const words of [
    ['--redis', 'redis://127.0.0.1:1'],
    ['--postgres', 'postgres://127.0.0.1:1/x'],
    ['--s3', 'http://127.0.0.1:1/bucket/key'],
  ]) {
    t.match(await run(['show', 'x', ...words]), { status: 69, err: /GUARD_FAILED/ }, String(words));
  }
  t.match(await run(['migrate', '--print']), { status: 0, out: /holdfast\.guard/ });
  const marks = path.join(folder, 'lifted.sqlite');
  const database = await openDatabase(marks);
  const flights = new FlightLog(database);
  flights.start({ lock: 'jobs/7', token: 41 }, 'PUT /value');
  flights.recover();
  const lift = ['lift', 'jobs/7', '--marks', marks];
  t.match(await run([...lift, '--barrier', '42']), { status: 0, out: /token 41 is over/ });
  t.match(await run(lift), { status: 0, out: /in no quarantine/ });
  t.equal((await flights.mark('jobs/7')).token, 42);
  database.close();
  t.equal((await run(['lift', 'x'])).status, 64);
  const proxy = ['proxy', '--marks', marks, '--upstream', 'ftp://x'];
  t.match(await run(proxy), { status: 64, err: /--upstream/ });
}

/** Without --token the cluster is asked. */
export async function barrierCases(
  t: Test,
  { place }: Resource,
  endpoints: readonly string[],
): Promise<void> {
  const lock = `cli/barrier/${place.kind}`;
  const words = ['--endpoints', endpoints.join(','), '--json', ...storeWords(place, 'barrier')];
  t.equal((await run(['raise', lock, ...words])).status, 64, 'nobody has held it');
  const client = await connect({ endpoints });
  const lease = await client.acquire(lock);
  const held = await run(['raise', lock, ...words]);
  t.equal(JSON.parse(held.out).fencing_token, lease.token, 'the holder passes');
  const { revision } = await lease.release();
  const free = await run(['raise', lock, ...words]);
  t.equal(JSON.parse(free.out).fencing_token, revision, 'the last holder does not');
  const next = await client.acquire(lock);
  t.ok(next.token > revision, 'the next one does');
  await client.close();
}

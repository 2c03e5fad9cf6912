/**
 * The examples of docs/examples, each run as a reader runs it: a process of its own, against the
 * real servers, importing the built package by its name.
 *
 * Owns: the environment and what each must print. Used by: guards.test.ts.
 */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { projectFile, projectRoot } from '../gate/paths.js';
import type { Resource } from './resource.js';
import { S3_ACCESS, S3_SECRET } from './servers/s3-server.js';

/** What a run prints, and a second one where that is not the same again. */
const PRINTS: Readonly<Record<string, readonly string[]>> = {
  'cron-job.mjs': ['made the report', 'the report of today is there'],
  'migration-runner.mjs': ['applied 3 of 3 steps', 'applied 0 of 3 steps'],
  'postgres-worker.mjs': ['refused purses: true\nbalances 90 and 10'],
  's3-writer.mjs': ['run 1', 'run 2'],
  'shard-owner.mjs': ['shard 0 is at 10\nshard 1 is at 10\nshard 2 is at 10'],
};

/** Runs until it is ended: test/cluster/lock-page.test.ts. */
const IN_A_BROWSER = 'lock-page.mjs';

export async function exampleCases(
  t: Test,
  resources: readonly Resource[],
  endpoints: readonly string[],
): Promise<void> {
  const portOf = (kind: string): number =>
    resources.find(({ place }) => place.kind === kind)?.place.port ?? 0;
  const env = {
    ...process.env,
    HOLDFAST_ENDPOINTS: endpoints.join(','),
    DATABASE_URL: `postgres://postgres@127.0.0.1:${portOf('postgres')}/postgres`,
    REDIS_URL: `redis://127.0.0.1:${portOf('redis')}`,
    S3_URL: `http://127.0.0.1:${portOf('s3')}`,
    S3_BUCKET: 'guarded',
    AWS_ACCESS_KEY_ID: S3_ACCESS,
    AWS_SECRET_ACCESS_KEY: S3_SECRET,
    HOLDFAST_S3_UNQUOTED_ETAGS: '1',
  };
  const run = async (name: string): Promise<string> => {
    const words = [projectFile(`docs/examples/${name}`)];
    const options = { cwd: projectRoot, env, timeout: 60_000 };
    return (await promisify(execFile)(process.execPath, words, options)).stdout.trim();
  };
  const names = readdirSync(projectFile('docs/examples')).filter((each) => each.endsWith('.mjs'));
  const isRun = names.filter((name) => name !== IN_A_BROWSER);
  t.same(isRun.sort(), Object.keys(PRINTS), 'every example is run');
  const runAll = async (name: string): Promise<void> => {
    const wanted = PRINTS[name] ?? [];
    const printed: string[] = [];
    for (const _ of wanted) printed.push(await run(name));
    t.same(printed, wanted, name);
  };
  await Promise.all(isRun.map(runAll));
}

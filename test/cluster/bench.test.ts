/** `npm run bench` in small, against real nodes: fields that scripts rely on, and its checks. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t from 'tap';
import { compiledFile } from '../gate/paths.js';
import { Cluster } from './harness.js';

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-bench-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

interface Ran {
  readonly status: number | null;
  readonly report: Record<string, unknown>;
  readonly words: string;
}

function bench(...words: string[]): Ran {
  const json = path.join(folder, 'report.json');
  const script = compiledFile('loadtest/main.ts');
  const ran = spawnSync(process.execPath, [script, ...words, '--json', json], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  const report = ran.status === 0 || ran.status === 1 ? readFileSync(json, 'utf8') : '{}';
  return { status: ran.status, report: JSON.parse(report), words: ran.stderr };
}

/** Every path of a JSON value that leads to no object. */
function paths(value: unknown, before = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [before];
  return Object.entries(value).flatMap(([name, each]) => {
    return paths(each, before === '' ? name : `${before}.${name}`);
  });
}

const FIELDS = [
  'profile commit machine.cpu machine.cores machine.kernel machine.node cluster.nodes',
  'cluster.durable load.connections load.inflight load.rate load.duration_s ops ops_per_second',
  'errors latency_ms.p50 latency_ms.p90 latency_ms.p99 latency_ms.p999 latency_ms.max',
  'cpu_us_per_op.leader cpu_us_per_op.follower cpu_us_per_op.client cpu_us_per_op.total',
  'bytes_per_op.client bytes_per_op.peer commits_per_second ops_per_commit',
].flatMap((line) => line.split(' '));

t.test('a closed loop: every field, a distribution, a page, and nothing wrong', async (t) => {
  const hgrm = path.join(folder, 'run.hgrm');
  const plot = path.join(folder, 'run.html');
  const words = ['--profile', 'headline', '--duration', '1', '--inflight', '64'];
  const ran = bench(...words, '--hgrm', hgrm, '--plot', plot);
  t.equal(ran.status, 0, ran.words);
  const found = paths(ran.report);
  for (const field of FIELDS) t.ok(found.includes(field), field);
  t.match(ran.words, /ok log of node 5 +\d+ operations/, 'every log was counted');
  t.match(readFileSync(hgrm, 'utf8'), /Percentile/);
  const page = readFileSync(plot, 'utf8');
  t.match(page, /new uPlot/);
  t.notMatch(page, /(src|href)=["']?http/, 'the page loads nothing');
});

t.test('the interview load in small: renewals in the log, no lease lost', async (t) => {
  const ran = bench('--profile', 'interview', '--duration', '1', '--rate', '300');
  t.equal(ran.status, 0, ran.words);
  const renewals = ran.report['renewals'] as Record<string, number>;
  t.equal(renewals['lost_leases'], 0);
  t.equal(ran.report['renewals_logged'], renewals['acknowledged']);
});

t.test('a running cluster of somebody else: what cannot be seen is null and said', async (t) => {
  const cluster = await Cluster.start({ nodes: 3, test: t });
  const words = ['--profile', 'latency', '--duration', '1', '--endpoints', cluster.endpointList];
  const ran = bench(...words);
  t.equal(ran.status, 0, ran.words);
  t.match(ran.report, { cluster: { nodes: 3 }, cpu_us_per_op: { leader: null } });
  t.match(ran.words, /\?\? log +SKIPPED/);
});

t.test('HTTP by autocannon, in small: every answer looked at, all of it in the log', async (t) => {
  const ran = bench('--profile', 'http', '--duration', '1', '--connections', '4');
  t.equal(ran.status, 0, ran.words);
  t.ok(Number(ran.report['ops']) > 10);
  t.match(ran.words, /ok statuses +autocannon counted 0/);
});

t.test('watchers in small: every event told to each of them, once, in order', async (t) => {
  const words = ['--profile', 'watch-fanout', '--duration', '1', '--rate', '50'];
  const ran = bench(...words, '--connections', '10');
  t.equal(ran.status, 0, ran.words);
  const { deliveries, watchers } = ran.report['watch_fanout'] as Record<string, number>;
  t.equal(watchers, 5_000);
  t.ok(Number(deliveries) >= 50 * 20, `${deliveries} deliveries`);
});

t.test('profiles to come, and wrong words, end with a status of their own', async (t) => {
  t.equal(bench('--profile', 'snapshot').status, 69);
  t.equal(bench('--profile', 'none').status, 64);
});

/**
 * npm run bench: drives a cluster with real lock operations and reports what it did.
 *
 *     npm run bench -- --profile headline --duration 60
 *
 * Owns: profiles, options, the report. Starts its own five nodes in a scratch folder unless
 * --endpoints is given. The durability setting is the product's only one and is printed.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { parseArgs } from 'node:util';
import { build } from 'hdr-histogram-js';
import { Cluster } from '../test/cluster/harness.js';
import { SlotLoad } from './slots.js';

/** Closed-loop profiles: connections and requests in flight over all of them. */
const PROFILES: Readonly<Record<string, { connections: number; inflight: number }>> = {
  headline: { connections: 8, inflight: 2_048 },
  saturated: { connections: 16, inflight: 8_192 },
  'inflight-1024': { connections: 8, inflight: 1_024 },
  latency: { connections: 1, inflight: 1 },
  unpipelined: { connections: 256, inflight: 256 },
};
const NAMES = 100_000;
const CLOCK_TICKS_PER_SECOND = 100;
const WARM_UP_MS = 3_000;

const { values } = parseArgs({
  options: {
    profile: { type: 'string', default: 'headline' },
    duration: { type: 'string', default: '10' },
    connections: { type: 'string' },
    inflight: { type: 'string' },
    json: { type: 'string' },
    hgrm: { type: 'string' },
  },
});
const profile = PROFILES[values.profile];
if (profile === undefined) {
  process.stderr.write(`--profile: one of ${Object.keys(PROFILES).join(', ')}\n`);
  process.exit(64);
}
const connections = Number(values.connections ?? profile.connections);
const inflight = Number(values.inflight ?? profile.inflight);
const durationS = Number(values.duration);

/** CPU time of a process so far, all its threads, in µs. */
function cpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / CLOCK_TICKS_PER_SECOND;
}

const cluster = await Cluster.start();
try {
  const leader = await cluster.leader();
  const [host, port] = cluster.endpoint(leader).split(':');
  const latencyUs = build({ lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000 });
  const load = new SlotLoad(
    { host: String(host), port: Number(port), connections, inflight, names: NAMES },
    latencyUs,
  );
  await load.open();
  load.start();
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
  const before = await cluster.status(leader);
  const cpuBefore = new Map(cluster.nodeIds.map((id) => [id, cpuUs(cluster.pid(id))]));
  const ownBefore = process.cpuUsage();
  const bytesBefore = load.bytes;
  const startedMs = performance.now();
  load.isRecording = true;
  const ticker = setInterval(() => {
    const seconds = (performance.now() - startedMs) / 1_000;
    const rate = Math.round(load.operations / seconds);
    process.stderr.write(`${seconds.toFixed(0)} s  ${rate} ops/s\n`);
  }, 2_000);
  await new Promise((resolve) => setTimeout(resolve, durationS * 1_000));
  load.isRecording = false;
  clearInterval(ticker);
  const seconds = (performance.now() - startedMs) / 1_000;
  const own = process.cpuUsage(ownBefore);
  const clientUs = own.user + own.system;
  const nodeUs = (id: number): number => cpuUs(cluster.pid(id)) - (cpuBefore.get(id) ?? 0);
  const perOp = (us: number): number => Number((us / load.operations).toFixed(2));
  const all = cluster.nodeIds.map(nodeUs);
  const totalNodesUs = all.reduce((sum, us) => sum + us, 0);
  const leaderUs = nodeUs(leader);
  const bytes = load.bytes - bytesBefore;
  const after = await cluster.status(leader);
  await load.stop();
  const settled = await cluster.settled(60_000);
  const digests = new Set(settled.map((status) => status.digest));
  const entries = after.appliedIndex - before.appliedIndex;
  const percentile = (share: number): number => latencyUs.getValueAtPercentile(share) / 1_000;
  const errors = [...load.errors.values()].reduce((sum, count) => sum + count, 0);
  const cpu = os.cpus()[0]?.model ?? 'unknown';
  const report = {
    profile: values.profile,
    machine: { cpu, cores: os.cpus().length, kernel: os.release(), node: process.version },
    cluster: { nodes: cluster.nodeIds.length, durable: true },
    load: { connections, inflight, duration_s: durationS },
    ops: load.operations,
    ops_per_second: Math.round(load.operations / seconds),
    errors,
    errors_by_code: Object.fromEntries(load.errors),
    latency_ms: {
      p50: percentile(50),
      p90: percentile(90),
      p99: percentile(99),
      p999: percentile(99.9),
      max: latencyUs.maxValue / 1_000,
    },
    cpu_us_per_op: {
      leader: perOp(leaderUs),
      follower: perOp((totalNodesUs - leaderUs) / (all.length - 1)),
      client: perOp(clientUs),
      total: perOp(totalNodesUs + clientUs),
    },
    bytes_per_op: { client: Math.round(bytes / load.operations) },
    commits_per_second: Math.round(entries / seconds),
    ops_per_commit: Number((load.operations / entries).toFixed(1)),
    digests_agree: digests.size === 1,
  };
  const text = JSON.stringify(report, null, 2);
  process.stdout.write(`${text}\n`);
  if (values.json !== undefined) writeFileSync(values.json, `${text}\n`);
  if (values.hgrm !== undefined) {
    writeFileSync(values.hgrm, latencyUs.outputPercentileDistribution(5, 1_000));
  }
  process.exitCode = errors === 0 && digests.size === 1 ? 0 : 1;
} finally {
  await cluster.close();
}

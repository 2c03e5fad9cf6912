/**
 * npm run chaos -- --minutes M: five real nodes under fire, and recorded clients that are judged.
 *
 * Owns: the cluster and its devices, the clients, the time without service, and the verdict: the
 * checkers of the simulator on the recorded history, and the digests of all nodes at the end.
 * Called by: main.ts.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Cluster } from '../cluster/harness.js';
import { projectFile } from '../gate/paths.js';
import { hasShim, Shim } from '../shim/fsync-shim.js';
import { checkTokens } from '../sim/checkers/exclusion.js';
import { checkPlaces } from '../sim/checkers/fifo.js';
import { checkIdempotency } from '../sim/checkers/idempotency.js';
import { checkBeliefs } from '../sim/checkers/lease-bounds.js';
import { checkLinearizability } from '../sim/checkers/linearizability.js';
import { History } from '../sim/history.js';
import { ChaosClient } from './chaos-client.js';
import { Namespaces } from './namespaces.js';
import { RealFaults } from './real-faults.js';
import { SmallDisk } from './small-disk.js';

const NODES = [1, 2, 3, 4, 5];
const CLIENTS = 16;
const LOCKS = 6;
const MINUTE_MS = 60_000;
/** Longer than any run: no request id is forgotten while somebody asks by it. */
const RETENTION_MS = 6 * 3_600_000;
/** A pause between two acknowledgements that counts as time without service. */
const GAP_MS_MIN = 250;
const SMALL_DISK_NODE = 5;

const SETTINGS = { leaseTtlMsLeast: 100, resultRetentionMs: RETENTION_MS };

export interface ChaosPlan {
  readonly minutes: number;
  readonly seed: number;
  readonly say: (line: string) => void;
}

/** When anything was acknowledged, over all clients. */
class Service {
  longestMs = 0;
  withoutMs = 0;
  private lastMs = performance.now();

  note(): void {
    const nowMs = performance.now();
    const gapMs = nowMs - this.lastMs;
    this.lastMs = nowMs;
    if (gapMs < GAP_MS_MIN) return;
    this.longestMs = Math.max(this.longestMs, gapMs);
    this.withoutMs += gapMs;
  }
}

/** What this machine permits beside killing and stopping. */
class Site {
  readonly namespaces: Namespaces | null;
  readonly shims = new Map<number, Shim>();
  smallDisk: { nodeId: number; disk: SmallDisk } | null = null;
  private readonly disks: SmallDisk[] = [];

  constructor(private readonly say: (line: string) => void) {
    const opened = Namespaces.open(NODES);
    this.namespaces = typeof opened === 'string' ? null : opened;
    if (typeof opened === 'string') say(`SKIPPED: cut links, not permitted here: ${opened}`);
    if (!hasShim()) say('SKIPPED: held and failing disks, there is no C compiler');
  }

  start(): Promise<Cluster> {
    const { namespaces, shims } = this;
    return Cluster.start({
      settings: SETTINGS,
      logLevel: 'warn',
      nodeEnvironment: (nodeId) => shims.get(nodeId)?.environment ?? {},
      prepareFolder: (nodeId, folder) => this.prepare(nodeId, folder),
      ...(namespaces === null
        ? {}
        : {
            nodeHost: (nodeId: number) => namespaces.host(nodeId),
            nodePrefix: (nodeId: number) => namespaces.prefix(nodeId),
          }),
    });
  }

  /** Before the nodes' folders are removed: a mount point cannot be. */
  unmount(): void {
    for (const disk of this.disks) disk.unmount();
  }

  /** After the nodes have ended. */
  close(): void {
    this.namespaces?.close();
  }

  private prepare(nodeId: number, folder: string): void {
    if (nodeId === SMALL_DISK_NODE) {
      const disk = SmallDisk.mount(folder);
      if (typeof disk === 'string') this.say(`SKIPPED: full disk, not permitted here: ${disk}`);
      else {
        this.disks.push(disk);
        this.smallDisk = { nodeId, disk };
      }
    }
    if (hasShim()) this.shims.set(nodeId, new Shim(folder));
  }
}

/** Runs it. Returns the exit status. */
export async function runChaos(plan: ChaosPlan): Promise<number> {
  const { say, minutes, seed } = plan;
  say(`chaos for ${minutes} minutes, seed ${seed}`);
  const site = new Site(say);
  let cluster: Cluster | null = null;
  try {
    cluster = await site.start();
    return await underFire(plan, site, cluster);
  } finally {
    site.unmount();
    await cluster?.close();
    site.close();
  }
}

async function underFire(plan: ChaosPlan, site: Site, cluster: Cluster): Promise<number> {
  const { say, minutes, seed } = plan;
  const history = new History();
  const service = new Service();
  const { endpoints } = cluster;
  const clients = Array.from({ length: CLIENTS }, (_, at) => {
    const options = { endpoints, locks: LOCKS };
    const client = new ChaosClient(at + 1, history, options, seed * 1_000 + at);
    client.onAcknowledged = () => service.note();
    return client;
  });
  const { namespaces, shims, smallDisk } = site;
  const devices = { cluster, clients, namespaces, shims, smallDisk };
  const faults = new RealFaults(devices, seed, (line) => say(`  ${line}`));
  faults.start();
  await new Promise((resolve) => setTimeout(resolve, minutes * MINUTE_MS));
  await faults.stop();
  await cluster.leader(60_000);
  await Promise.all(clients.map((client) => client.stop()));
  const statuses = await cluster.settled(60_000);
  const problems = judge(history, say);
  const digests = new Set(statuses.map(({ digest }) => digest));
  if (statuses.length !== NODES.length || digests.size !== 1) problems.push('digests differ');
  report(history, faults, service, say);
  keep(history, say);
  for (const problem of problems) say(`VIOLATION ${problem}`);
  say(`${problems.length} violations`);
  return problems.length === 0 ? 0 : 1;
}

/** The recorded history before the checkers of the simulator. */
function judge(history: History, say: (line: string) => void): string[] {
  const verdicts = [
    checkTokens(history),
    checkPlaces(history, RETENTION_MS),
    checkIdempotency(history, RETENTION_MS),
    checkBeliefs(history),
    checkLinearizability(history),
  ];
  const seen = verdicts.map((verdict) => `${verdict.checker} ${verdict.seen}`).join(', ');
  say(`looked at: ${seen}`);
  const problems = verdicts.flatMap((verdict) => verdict.problems);
  for (const { checker, seen: count } of verdicts) {
    if (count === 0) problems.push(`${checker} had nothing to look at`);
  }
  return problems;
}

function report(
  history: History,
  faults: RealFaults,
  service: Service,
  say: (line: string) => void,
): void {
  const counts = [...faults.counts].map(([name, count]) => `${name} ${count}`);
  const total = [...faults.counts.values()].reduce((sum, count) => sum + count, 0);
  say(`${history.operations.length} operations under ${total} faults: ${counts.join(', ')}`);
  const longest = Math.round(service.longestMs);
  const without = (service.withoutMs / 1_000).toFixed(1);
  say(`without service: ${without} s in gaps of ${GAP_MS_MIN} ms or more, longest ${longest} ms`);
}

function keep(history: History, say: (line: string) => void): void {
  const folder = projectFile('dist-test/chaos');
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'history.jsonl');
  writeFileSync(file, history.toLines());
  say(`history: ${path.relative(projectFile(''), file)}`);
}

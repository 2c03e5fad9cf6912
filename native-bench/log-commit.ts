/**
 * What one durable order costs: latency and CPU of the log on LMDB, all threads counted.
 *
 * `node test/gate/exec.mjs native-bench/log-commit.ts [orders] [bytes]` writes so many orders of so
 * many bytes (3,000 of 20,000) with one in flight and with eight, to a scratch folder in the
 * working directory, and prints a line for each. Run it on a quiet machine, more than once.
 */
import fs from 'node:fs';
import path from 'node:path';
import { Entry, EntryKind } from '../src/core/raft/message.js';
import { type LmdbLog, openLog } from '../src/io/log/log.js';

const WARM_UP_ORDERS = 200;

interface Figures {
  readonly ordersPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuUsPerOrder: number;
  readonly ordersPerNotice: number;
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

/** Keeps `inFlight` orders going until `orders` are durable. */
function run(log: LmdbLog, orders: number, bytes: number, inFlight: number): Promise<Figures> {
  const data = new Uint8Array(bytes).fill(7);
  const givenAtMs: number[] = [];
  const latenciesMs: number[] = [];
  let given = 0;
  let durable = 0;
  let notices = 0;
  let startedAtMs = 0;
  let cpu = process.cpuUsage();
  const give = () => {
    given += 1;
    givenAtMs[given] = performance.now();
    const entries = [new Entry(given, 1, EntryKind.Batch, data)];
    log.append({
      appendId: given,
      resetTo: 0,
      truncateFrom: 0,
      entries,
      hardState: null,
      commitIndex: durable,
    });
  };
  return new Promise((resolve) => {
    const onDurable = (appendId: number) => {
      const nowMs = performance.now();
      const isWarm = durable >= WARM_UP_ORDERS;
      if (!isWarm && appendId >= WARM_UP_ORDERS) {
        startedAtMs = nowMs;
        cpu = process.cpuUsage();
      }
      if (isWarm) notices += 1;
      for (let order = durable + 1; order <= appendId; order++) {
        if (isWarm) latenciesMs.push(nowMs - givenAtMs[order]!);
      }
      durable = appendId;
      while (given < orders && given - durable < inFlight) give();
      if (durable < orders) return;
      const { user, system } = process.cpuUsage(cpu);
      const count = latenciesMs.length;
      latenciesMs.sort((left, right) => left - right);
      resolve({
        ordersPerSecond: (count / (nowMs - startedAtMs)) * 1_000,
        p50Ms: quantile(latenciesMs, 0.5),
        p99Ms: quantile(latenciesMs, 0.99),
        cpuUsPerOrder: (user + system) / count,
        ordersPerNotice: count / notices,
      });
    };
    log.setEvents({ onDurable, onRead: () => undefined });
    for (let order = 0; order < inFlight; order++) give();
  });
}

async function main(): Promise<void> {
  const orders = Number(process.argv[2] ?? 3_000);
  const bytes = Number(process.argv[3] ?? 20_000);
  for (const inFlight of [1, 8]) {
    const folder = fs.mkdtempSync(path.join(process.cwd(), '.holdfast-log-'));
    const { log } = await openLog({ folder, nodeId: 1, onFatal: () => undefined });
    const figures = await run(log, orders, bytes, inFlight);
    await log.close();
    fs.rmSync(folder, { recursive: true });
    const words = Object.entries(figures).map(([name, value]) => `${name} ${value.toFixed(2)}`);
    console.log(`${bytes} bytes, ${inFlight} in flight: ${words.join(', ')}`);
  }
}

await main();

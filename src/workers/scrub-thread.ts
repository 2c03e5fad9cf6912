/**
 * The thread of one pass of the background check: reads at a bounded rate, then ends.
 *
 * Owns: the pace, and standing still while it is told to. Never: writes, opens LMDB, or decides
 * what follows from a fault. Started by: server/scrub.ts, for each pass.
 */
import { setPriority } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { ScrubFault } from '../io/scrub/fault.js';
import { SCRUB_REST, type ScrubResult, scrubPass } from '../io/scrub/scrub-pass.js';

export interface ScrubTask {
  readonly dataFolder: string;
  readonly bytesPerSecond: number;
  /** How long it waits before it looks again at what seems damaged. */
  readonly restMs: number;
}

/** What the thread is told: stand still, or go on. */
export interface ScrubOrder {
  readonly isPaused: boolean;
}

/** What it tells. */
export type ScrubReport =
  | { readonly kind: 'read'; readonly bytes: number }
  | { readonly kind: 'fault'; readonly fault: ScrubFault }
  | { readonly kind: 'done'; readonly result: ScrubResult };

/** The scheduler prefers the threads that serve; on Linux this is about the calling thread. */
const NICE = 10;
/** Bytes after which it looks at its orders, and tells how far it is. */
const SLICE_BYTES = 256 * 1_024;
const PAUSE_LOOK_MS = 50;
const MS_PER_S = 1_000;

const task = workerData as ScrubTask;
let isPaused = false;

function tell(report: ScrubReport): void {
  parentPort?.postMessage(report);
}

/** Returns when so many bytes may have been read, and nobody wants it to stand still. */
async function keepPace(bytes: number, sinceMs: number): Promise<void> {
  const dueMs = (bytes / task.bytesPerSecond) * MS_PER_S;
  await delay(Math.max(0, dueMs - (performance.now() - sinceMs)));
  while (isPaused) await delay(PAUSE_LOOK_MS);
}

async function run(): Promise<void> {
  const pass = scrubPass(task.dataFolder, (fault) => tell({ kind: 'fault', fault }));
  let slice = 0;
  let sinceMs = performance.now();
  for (let step = pass.next(); ; step = pass.next()) {
    if (step.done === true) {
      tell({ kind: 'read', bytes: slice });
      tell({ kind: 'done', result: step.value });
      return;
    }
    if (step.value === SCRUB_REST) await delay(task.restMs);
    else slice += step.value;
    if (slice < SLICE_BYTES) continue;
    tell({ kind: 'read', bytes: slice });
    await keepPace(slice, sinceMs);
    slice = 0;
    sinceMs = performance.now();
  }
}

parentPort?.on('message', (order: ScrubOrder) => {
  ({ isPaused } = order);
});
setPriority(NICE);
await run();
// The port keeps the thread alive while it listens.
parentPort?.close();

/**
 * How fast this machine is right now, beside which a figure of the same minute means something.
 *
 * Owns: two short measurements without any of the product: appended and flushed disk writes one
 * after another, and a checksum of memory on one core. Never: more than about a second. The full
 * set of ceilings is native-bench. Used by: main.ts before and after a run.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { crc32 } from 'node:zlib';

const SYNC_MS = 600;
const CRC_MS = 200;
const BLOCK_BYTES = 20_000;
const CRC_BYTES = 1 << 20;
const MS_PER_S = 1_000;

export interface Baseline {
  /** Appends of 20 kB, each flushed before the next, a second. */
  readonly append_fdatasync_per_second: number;
  /** MiB a second of CRC-32 on one core. */
  readonly crc32_mib_per_second: number;
}

function perSecond(work: () => void, forMs: number): number {
  const startedMs = performance.now();
  let count = 0;
  for (;;) {
    work();
    count += 1;
    const elapsedMs = performance.now() - startedMs;
    if (elapsedMs >= forMs) return (count * MS_PER_S) / elapsedMs;
  }
}

export function measureBaseline(): Baseline {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-baseline-'));
  const handle = openSync(path.join(folder, 'log'), 'a');
  try {
    const block = Buffer.alloc(BLOCK_BYTES, 7);
    const syncs = perSecond(() => {
      writeSync(handle, block);
      fdatasyncSync(handle);
    }, SYNC_MS);
    const memory = Buffer.alloc(CRC_BYTES, 7);
    const crcs = perSecond(() => crc32(memory), CRC_MS);
    return {
      append_fdatasync_per_second: Math.round(syncs),
      crc32_mib_per_second: Math.round(crcs),
    };
  } finally {
    closeSync(handle);
    rmSync(folder, { recursive: true, force: true });
  }
}

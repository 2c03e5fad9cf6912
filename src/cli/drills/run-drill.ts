/**
 * One drill on a fresh cluster of its own, in a temporary folder.
 *
 * Owns: folder, disk and cluster, from their making to their end, and the repair of nodes that the
 * scenario has left down. Never: touches a cluster that was there before. Used by:
 * commands/drill.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Backstage } from './backstage.js';
import type { Drill } from './drill.js';
import { DrillCluster } from './drill-cluster.js';
import type { RecoveryRecord } from './record.js';
import { rehearse } from './rehearse.js';
import type { TestMode } from './test-mode.js';

export interface DrillOptions {
  readonly test: TestMode;
  /** True: the folder with data and logs of the nodes stays. */
  readonly isKept: boolean;
  readonly backstage: Backstage;
}

/** A node that was killed may still be letting go of its files. */
const REMOVAL = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 } as const;

/**
 * Plays a drill. Rejects with DRILL_NOT_PERMITTED when the machine does not allow it, and with
 * DRILL_FAILED when its cluster does not start; everything else is in the record.
 */
export async function runDrill(drill: Drill, options: DrillOptions): Promise<RecoveryRecord> {
  const { test, isKept, backstage } = options;
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-drill-'));
  let cluster: DrillCluster | null = null;
  try {
    if (!isKept) backstage.add(() => rmSync(folder, REMOVAL));
    const isProtected = test !== 'unprotected';
    const { cluster: plan, disk } = drill.build?.(folder, isProtected) ?? {
      cluster: {},
      disk: null,
    };
    if (disk !== null) backstage.add(() => disk.unmount());
    const started = await DrillCluster.start(folder, plan, (made) => {
      cluster = made;
      backstage.add(() => made.killNow());
    });
    const { endpoints } = started;
    const rehearsal = { drill, endpoints, folder, isKept, isOwn: true, test, backstage };
    return await rehearse(rehearsal, async (stage) => {
      try {
        await drill.play(stage, started, disk);
      } finally {
        disk?.empty();
        await started.repair();
      }
    });
  } finally {
    await (cluster as DrillCluster | null)?.close();
    backstage.strike();
  }
}

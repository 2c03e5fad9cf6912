/**
 * `drill --canary`: the first drill on a cluster that others use, again and again, on a prefix of
 * its own.
 *
 * Owns: the rhythm. It takes locks below the reserved prefix alone, stops a program of its own, and
 * leaves no lock behind. Never: touches a node or anybody else's lock. Used by: commands/drill.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseEndpoint } from '../../server/options.js';
import { withClient } from '../client-holder.js';
import type { ClusterOptions } from '../cluster-options.js';
import { Backstage } from './backstage.js';
import type { RecoveryRecord } from './record.js';
import { rehearse } from './rehearse.js';
import { pausedOwner, playPausedOwner } from './scenarios/paused-owner.js';
import type { TestMode } from './test-mode.js';

const NAME = 'canary';

/** Plays it once. Rejects when the cluster cannot be reached. */
export async function runCanary(
  options: ClusterOptions,
  test: TestMode,
  backstage: Backstage,
): Promise<RecoveryRecord> {
  const members = await withClient(options, 'leader', (client) => client.members());
  const endpoints = members.map(({ address }) => parseEndpoint('members', address));
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-canary-'));
  const own = new Backstage();
  own.add(() => rmSync(folder, { recursive: true, force: true }));
  backstage.add(() => own.strike());
  const drill = { ...pausedOwner, name: NAME };
  const rehearsal = { drill, endpoints, folder, isKept: false, isOwn: false, test, backstage: own };
  try {
    return await rehearse(rehearsal, playPausedOwner);
  } finally {
    own.strike();
  }
}

/**
 * Plays it now and then every `everyMs`, counted from begin to begin, until the signal aborts.
 *
 * @param play one run, which tells what came of it; false when it failed.
 * @returns how many runs there were, and how many failed.
 */
export async function repeatCanary(
  everyMs: number,
  signal: AbortSignal,
  play: () => Promise<boolean>,
): Promise<{ readonly runs: number; readonly failed: number }> {
  let runs = 0;
  let failed = 0;
  while (!signal.aborted) {
    const begunMs = performance.now();
    runs += 1;
    if (!(await play())) failed += 1;
    const restMs = Math.max(0, everyMs - (performance.now() - begunMs));
    await delay(restMs, undefined, { signal }).catch(() => undefined); // aborted: the loop ends
  }
  return { runs, failed };
}

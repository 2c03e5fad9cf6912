/**
 * Runs a seed on the build that belongs to it: odd seeds on the product as it is, even ones on a
 * copy with limits so tight that windows close, batches split and entries leave memory.
 *
 * Owns: the copy, which is gone as soon as it is loaded. Used by: main.ts, chaos.test.ts.
 */
import { rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ChaosResult, runChaos } from './chaos.js';
import { buildImage, TIGHT_LIMITS } from './planted/image.js';

export type RunSeed = (seed: number) => ChaosResult;

/** Loads both builds. */
export async function openRunner(): Promise<RunSeed> {
  const image = buildImage(`tight-${process.pid}`, TIGHT_LIMITS);
  const url = pathToFileURL(path.join(image, 'test/sim/chaos.js')).href;
  const tight = (await import(url)) as { runChaos: RunSeed };
  rmSync(image, { recursive: true, force: true });
  return (seed) => (seed % 2 === 0 ? tight.runChaos(seed) : runChaos(seed));
}

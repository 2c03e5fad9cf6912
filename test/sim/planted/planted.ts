/**
 * npm run sim -- --planted [WORD…]: plants each bug and runs seeds until a checker sees it.
 *
 * Owns: the table: bug, seeds until it was caught, the checker, what it said. A bug that is not
 * caught within SEEDS_MAX seeds is a hole in the simulator. Called by: main.ts.
 */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { compiledFile } from '../../gate/paths.js';
import { buildImage, TIGHT_LIMITS } from './image.js';
import { PLANTS, type Plant, patchesOf } from './plants.js';

const SEEDS_MAX = 2_000;
const TIME_MS_MAX = Number(process.env['HOLDFAST_PLANT_MS'] ?? 900_000);
const WORDS_MAX = 110;

export interface Catch {
  readonly seeds: number;
  readonly checker: string;
  readonly said: string;
}

/** The first word of a problem names who found it; I5 and I10 are the ledger's. */
function checkerOf(problem: string): string {
  const name = problem.split(':')[0] ?? '';
  return /^I\d+$/.test(name) ? `ledger ${name}` : name;
}

/** Plants one bug in the image `name` and runs seeds against it. Null: not caught. */
export function hunt(plant: Plant, name: string): Catch | null {
  const image = buildImage(name, [...TIGHT_LIMITS, ...patchesOf(plant)]);
  const words = [compiledFile('test/sim/planted/plant-worker.ts'), image, '1', String(SEEDS_MAX)];
  const result = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: TIME_MS_MAX });
  rmSync(image, { recursive: true, force: true });
  if (result.signal !== null) return null;
  if (result.status !== 0) {
    return { seeds: 1, checker: 'process', said: result.stderr.trim().split('\n').at(-1) ?? '' };
  }
  const { seed, problem } = JSON.parse(result.stdout) as { seed: number; problem: string };
  if (seed === 0) return null;
  const said = problem.split('\n')[0] ?? '';
  return { seeds: seed, checker: checkerOf(problem), said };
}

/** Runs the plants whose names contain one of `words`, or all. Returns the exit status. */
export function runPlanted(words: readonly string[]): number {
  const plants = PLANTS.filter(
    ({ name }) => words.length === 0 || words.some((word) => name.includes(word)),
  );
  let caught = 0;
  for (const [at, plant] of plants.entries()) {
    const found = hunt(plant, `plant-${process.pid}-${at}`);
    if (found !== null) caught += 1;
    const seeds = found === null ? 'none' : `seed ${found.seeds}`;
    const line = `${plant.name.padEnd(76)} ${seeds.padEnd(12)} ${found?.checker ?? 'NOT CAUGHT'}`;
    process.stdout.write(`${line}\n`);
    if (found !== null) process.stdout.write(`    ${found.said.slice(0, WORDS_MAX)}\n`);
  }
  process.stdout.write(`${caught} of ${plants.length} caught\n`);
  return caught === plants.length && caught > 0 ? 0 : 1;
}

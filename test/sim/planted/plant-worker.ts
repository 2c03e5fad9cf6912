/**
 * Runs seeds of the simulator of one image until one fails: plant-worker.js IMAGE FIRST SEEDS.
 *
 * Owns: nothing. Prints one JSON line { seed, problem } or { seed: 0 }. A process of its own, since
 * a bug may as well loop for ever. Started by: planted.ts.
 */
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [image = '', first = '1', seeds = '100'] = process.argv.slice(2);
const url = pathToFileURL(path.join(image, 'test/sim/chaos.js')).href;
const { runChaos } = (await import(url)) as typeof import('../chaos.js');
let found = { seed: 0, problem: '' };
for (let seed = Number(first); seed < Number(first) + Number(seeds); seed += 1) {
  const [problem] = runChaos(seed).problems;
  if (problem === undefined) continue;
  found = { seed, problem };
  break;
}
process.stdout.write(`${JSON.stringify(found)}\n`);

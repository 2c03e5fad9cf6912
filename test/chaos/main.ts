/**
 * npm run chaos -- --minutes M [--seed S] [--paused-clients]: real processes under fire.
 *
 * Owns: the arguments and the exit status: 0 only when nothing was violated. Called by:
 * package.json.
 */
import { parseArgs } from 'node:util';
import { runChaos } from './chaos-run.js';
import { runPausedClients } from './paused-clients.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    'paused-clients': { type: 'boolean', default: false },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
if (!(minutes > 0) || !Number.isSafeInteger(seed) || seed < 0) {
  process.stderr.write('chaos: --minutes takes a number above 0, --seed a whole one from 0\n');
  process.exit(64);
}
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
const run = values['paused-clients'] ? runPausedClients : runChaos;
process.exitCode = await run({ minutes, seed, say });

/**
 * One bench in a process of its own: what another has left on the heap or in a cache is not here.
 *
 * Owns: the names of the benches. Prints its figures as JSON. Never: rounds. Started by main.ts.
 */
import { measure as apply } from './apply.js';
import { measure as codec } from './codec.js';
import { measure as disk } from './disk.js';
import type { Figure } from './figure.js';
import { measure as leases } from './leases.js';
import { measure as log } from './log.js';
import { measure as memory } from './memory.js';
import { measure as socket } from './socket.js';
import { measure as threads } from './threads.js';

const BENCHES: Readonly<Record<string, () => Promise<Figure[]>>> = {
  apply,
  codec,
  disk,
  leases,
  log,
  memory,
  socket,
  threads,
};

const name = process.argv[2] ?? '';
const bench = BENCHES[name];
if (bench === undefined) throw new Error(`no bench ${name}`);
console.log(JSON.stringify(await bench()));

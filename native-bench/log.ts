/**
 * What the product's own log costs for one durable order, its thread counted: log-commit.ts.
 *
 * Owns: running that program small and reading its lines. Used by: main.ts.
 */
import { spawnSync } from 'node:child_process';
import { compiledFile } from '../test/gate/paths.js';
import { cost, type Figure, rate } from './figure.js';

const ORDERS = '1500';
const BYTES = '20000';
const LINE = /(\d+) in flight: ordersPerSecond ([\d.]+), p50Ms ([\d.]+).*cpuUsPerOrder ([\d.]+)/g;
const US_PER_MS = 1_000;

export async function measure(): Promise<Figure[]> {
  const script = compiledFile('native-bench/log-commit.ts');
  const ran = spawnSync(process.execPath, [script, ORDERS, BYTES], { encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(`log-commit ended with ${ran.status}: ${ran.stderr}`);
  const figures: Figure[] = [];
  for (const [, inFlight, perSecond, p50Ms, cpuUs] of ran.stdout.matchAll(LINE)) {
    const name = `log order of 20 kB, ${inFlight} in flight`;
    figures.push(rate(name, '/s', Number(perSecond)));
    figures.push(cost(`${name}, median`, 'µs', Number(p50Ms) * US_PER_MS));
    figures.push(cost(`${name}, CPU of all threads`, 'µs', Number(cpuUs)));
  }
  if (figures.length === 0) throw new Error(`log-commit said: ${ran.stdout}`);
  return figures;
}

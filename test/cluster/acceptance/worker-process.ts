/**
 * Some counter workers as a process of their own:
 * `worker-process.js ENDPOINTS FOLDER WORKERS ROUNDS WORK_MS`.
 *
 * Owns: their one client. Prints `ready` when it is connected and begins when its standard input
 * ends; then prints the failures by code as one JSON line and ends with 0 when all writes are made.
 * Started by: counter-processes.ts.
 */
import { once } from 'node:events';
import { connect } from '../../../src/client/index.js';
import { CounterFile } from './counter-file.js';
import { addAll } from './counter-worker.js';

const [endpoints = '', folder = '', workers = '', rounds = '', workMs = ''] = process.argv.slice(2);
const client = await connect({ endpoints: endpoints.split(','), deadlineMs: 60_000 });
console.log('ready');
await once(process.stdin.resume(), 'end');
const file = new CounterFile(folder);
const work = { clients: [client], file, rounds: Number(rounds), workMs: Number(workMs) };
const failures = await addAll(work, Number(workers));
await client.close();
console.log(JSON.stringify(Object.fromEntries(failures)));

/**
 * One counter worker as a process of its own: `worker-process.js ENDPOINTS FOLDER ROUNDS WORK_MS`.
 *
 * Owns: its client. Prints its failures by code as one JSON line and ends with 0 when all its
 * writes are made. Started by: counter-processes.ts.
 */
import { connect } from '../../../src/client/index.js';
import { CounterFile } from './counter-file.js';
import { addRounds } from './counter-worker.js';

const [endpoints = '', folder = '', rounds = '', workMs = ''] = process.argv.slice(2);
const client = await connect({ endpoints: endpoints.split(','), deadlineMs: 60_000 });
const file = new CounterFile(folder);
const failures = await addRounds({ client, file, rounds: Number(rounds), workMs: Number(workMs) });
await client.close();
console.log(JSON.stringify(Object.fromEntries(failures)));

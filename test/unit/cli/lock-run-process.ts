/**
 * Runs a command under a pretended lease, as a process of its own that tests can kill or stop.
 *
 * Arguments: TTL in ms, then the command. The lease renews itself for ever while this process runs.
 */
import { runUnderLock } from '../../../src/cli/lock-run.js';

const [ttl = '', command = '', ...words] = process.argv.slice(2);
const ttlMs = Number(ttl);

process.exitCode = await runUnderLock({
  name: 'jobs/nightly',
  command,
  words,
  endpoints: '127.0.0.1:1',
  acquire: async () => ({
    token: 41,
    leaseId: 'abc',
    ttlMs,
    remainingMs: () => ttlMs,
    lost: new AbortController().signal,
    release: async () => {
      process.stderr.write('released\n');
    },
  }),
  say: (text) => process.stderr.write(`${text}\n`),
  fail: (code, text) => process.stderr.write(`${code}: ${text}\n`),
});

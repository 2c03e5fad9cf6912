/**
 * `holdfast lock NAME -- COMMAND…`: runs a command while holding a lock.
 *
 * Owns: the words and the lease's way from the client to lock-run.ts. Never: signals, the watchdog,
 * the order of things; lock-run.ts has them. Used by: commands/table.ts.
 */
import { hostname } from 'node:os';
import type { Client } from '../../client/client.js';
import { HoldfastError } from '../../client/errors.js';
import { formatEndpoint, OptionError } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { formatDuration, parseDuration } from '../duration.js';
import { type CommandLease, runUnderLock } from '../lock-run.js';

const WAIT_DEFAULT = '10s';
const TTL_DEFAULT = '30s';
/** Nobody is waited for longer than this when the command is done. */
const RELEASE_MS_MAX = 5_000;
/** A wait that took longer is worth a line. */
const TELL_WAIT_MS = 1_000;
/** Shown to those who find the lock busy. */
const METADATA_CHARACTERS_MAX = 200;

interface LockWords {
  readonly name: string;
  readonly command: string;
  readonly words: readonly string[];
  readonly waitMs: number;
  readonly ttlMs: number;
}

function readWords(input: CommandInput): LockWords {
  const [name = '', command, ...words] = input.words;
  if (command === undefined) {
    throw new OptionError('COMMAND', 'is required: holdfast lock NAME -- COMMAND…');
  }
  const waitMs = parseDuration('--wait', input.text('wait') ?? WAIT_DEFAULT);
  const ttlMs = parseDuration('--ttl', input.text('ttl') ?? TTL_DEFAULT);
  if (ttlMs < 1) throw new OptionError('--ttl', 'give more than 0ms');
  return { name, command, words, waitMs, ttlMs };
}

/** Says who holds the lock when that is why it was not granted. */
function explainBusy(error: unknown, name: string): unknown {
  if (!(error instanceof HoldfastError) || error.code !== 'LOCK_BUSY') return error;
  const { holder } = error.details;
  if (holder === undefined || holder.token === 0) return error;
  const metadata = new TextDecoder().decode(holder.metadata);
  const who = metadata === '' ? '' : ` by ${JSON.stringify(metadata)}`;
  const message = `${name} is held${who} with token ${holder.token}`;
  return new HoldfastError(error.number, { message, details: error.details });
}

async function acquire(
  client: Client,
  lock: LockWords,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<CommandLease> {
  const lease = await client.acquire(lock.name, {
    ttlMs: lock.ttlMs,
    waitMs: lock.waitMs,
    deadlineMs: timeoutMs,
    metadata: `${hostname()} pid ${process.pid}: ${lock.command}`.slice(0, METADATA_CHARACTERS_MAX),
    signal,
  });
  return {
    token: lease.token,
    leaseId: lease.leaseId,
    ttlMs: lease.ttlMs,
    remainingMs: () => lease.remainingMs(),
    lost: lease.signal,
    release: async () => {
      await lease.release(RELEASE_MS_MAX);
    },
  };
}

async function run(input: CommandInput): Promise<number> {
  const options = readClusterOptions(input);
  const lock = readWords(input);
  const started = performance.now();
  // Loaded here, so that a node process does not carry the client.
  const { ClientHolder } = await import('../client-holder.js');
  const connections = new ClientHolder(options);
  const acquireLease = async (signal: AbortSignal): Promise<CommandLease> => {
    try {
      const client = await connections.connect();
      const lease = await acquire(client, lock, options.timeoutMs, signal);
      const waitedMs = performance.now() - started;
      if (waitedMs > TELL_WAIT_MS) {
        input.output.note(`got ${lock.name} after ${formatDuration(waitedMs)}`);
      }
      return lease;
    } catch (error) {
      throw explainBusy(error, lock.name);
    }
  };
  try {
    return await runUnderLock({
      name: lock.name,
      command: lock.command,
      words: lock.words,
      endpoints: options.endpoints.map(formatEndpoint).join(','),
      acquire: acquireLease,
      say: (text) => input.output.note(text),
    });
  } finally {
    await connections.close();
  }
}

export const lockCommand: CommandSpec = {
  path: ['lock'],
  summary: 'run a command while holding a lock',
  details: [
    'The command starts when the lock is granted and gets HOLDFAST_LOCK, HOLDFAST_TOKEN (the',
    'fencing token: pass it to the guard of what you write), HOLDFAST_LEASE_ID and',
    'HOLDFAST_ENDPOINTS. Its status is passed on. It runs in a session and a process group of its',
    'own; signals sent to holdfast are passed on to the group. When the lease is lost, or this',
    'process dies, the group gets SIGTERM and then SIGKILL, before anybody else can be granted the',
    'lock. What the command leaves running is ended before the lock is released.',
  ].join('\n'),
  arguments: [
    { name: 'NAME', summary: 'the lock', isRequired: true },
    { name: 'COMMAND', summary: 'what to run, after --', isRequired: true, isVariadic: true },
  ],
  options: [
    {
      name: 'wait',
      kind: 'text',
      value: 'TIME',
      summary: 'how long to stand in the queue; 0s tries once',
      defaultText: WAIT_DEFAULT,
    },
    {
      name: 'ttl',
      kind: 'text',
      value: 'TIME',
      summary: 'how long the lease lives without a renewal',
      defaultText: TTL_DEFAULT,
    },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { words: 'lock jobs/nightly -- ./nightly.sh', says: 'one machine at a time runs the job' },
    {
      words:
        'lock jobs/nightly --wait 0s --ttl 1m -- sh -c \'echo "$HOLDFAST_TOKEN"; ./nightly.sh\'',
      says: 'gives up with status 75 when somebody holds the lock',
    },
  ],
  run,
};

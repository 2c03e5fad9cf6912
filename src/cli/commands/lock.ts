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
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec, type Output } from '../command.js';
import { formatDuration, parseDuration } from '../duration.js';
import { explainField, reworded } from '../explain.js';
import { type CommandLease, runUnderLock } from '../lock-run.js';

const WAIT_DEFAULT = '10s';
const TTL_DEFAULT = '30s';
/** Nobody is waited for longer than this when the command is done. */
const RELEASE_MS_MAX = 5_000;
/** A wait that takes longer is worth a line, and one when it is over. */
const TELL_WAIT_MS = 1_000;
/** Who holds is worth no longer wait than this. */
const ASK_MS_MAX = 1_000;
/** Shown to those who find the lock busy. */
const METADATA_CHARACTERS_MAX = 200;

interface LockWords {
  readonly name: string;
  readonly command: string;
  readonly words: readonly string[];
  readonly waitMs: number;
  readonly ttlMs: number;
  /** As they were given. */
  readonly waitText: string;
  readonly ttlText: string;
}

function readWords(input: CommandInput): LockWords {
  const [name = '', command, ...words] = input.words;
  if (command === undefined) {
    throw new OptionError('COMMAND', 'is required: holdfast lock NAME -- COMMAND…');
  }
  const waitText = input.text('wait') ?? WAIT_DEFAULT;
  const ttlText = input.text('ttl') ?? TTL_DEFAULT;
  const waitMs = parseDuration('--wait', waitText);
  const ttlMs = parseDuration('--ttl', ttlText);
  if (ttlMs < 1) throw new OptionError('--ttl', 'give more than 0ms');
  return { name, command, words, waitMs, ttlMs, waitText, ttlText };
}

/** `"vm pid 7: make" with token 37`. */
function whoHolds(token: number, metadata: Uint8Array | null): string {
  const text = metadata === null ? '' : new TextDecoder().decode(metadata);
  return text === '' ? `with token ${token}` : `by ${JSON.stringify(text)} with token ${token}`;
}

/** Who holds the lock now, '' when nobody does or nobody says so in time. */
async function askWhoHolds(client: Client, name: string): Promise<string> {
  try {
    const { holder } = await client.get(name, { deadlineMs: ASK_MS_MAX });
    return holder === null ? '' : whoHolds(holder.token, holder.metadata);
  } catch {
    return ''; // it is for a remark only
  }
}

/** After a while, tells the person who waits what for. Returns how to stop that. */
function tellOfWait(client: Client, lock: LockWords, output: Output): () => void {
  let isOver = false;
  const tell = async (): Promise<void> => {
    const who = await askWhoHolds(client, lock.name);
    if (!isOver) output.note(`waiting for ${lock.name}${who === '' ? '' : `, held ${who}`}`);
  };
  const timer = setTimeout(() => void tell(), TELL_WAIT_MS);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** Why the lock was not granted, in the words of the command line. */
async function explain(error: unknown, lock: LockWords, client: Client | null): Promise<unknown> {
  if (!(error instanceof HoldfastError)) return error;
  const { name, ttlText, waitText } = lock;
  const { holder } = error.details;
  if (error.code === 'LOCK_BUSY' && holder !== undefined && holder.token > 0) {
    const who = whoHolds(holder.token, holder.metadata);
    const left = formatDuration(holder.endsInMs);
    return reworded(error, `${name} is held ${who}; its lease ends in ${left} unless renewed`);
  }
  if (error.code === 'WAIT_TIMEOUT' && client !== null) {
    const who = await askWhoHolds(client, name);
    const held = who === '' ? '' : `, held ${who}`;
    return reworded(error, `${name} was not free within ${waitText}${held}; give a longer --wait`);
  }
  return explainField(error, {
    ttl_ms: { option: '--ttl', text: ttlText, range: ['leaseTtlMsLeast', 'leaseTtlMsGreatest'] },
    wait_ms: { option: '--wait', text: waitText, range: [null, 'waitMsGreatest'] },
  });
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
    let client: Client | null = null;
    let stopTelling = (): void => undefined;
    try {
      client = await connections.connect();
      stopTelling = tellOfWait(client, lock, input.output);
      const lease = await acquire(client, lock, options.timeoutMs, signal);
      stopTelling();
      const waitedMs = performance.now() - started;
      if (waitedMs > TELL_WAIT_MS) {
        input.output.note(`got ${lock.name} after ${formatDuration(waitedMs)}`);
      }
      return lease;
    } catch (error) {
      stopTelling();
      throw await explain(error, lock, client);
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
      fail: (code, text) => input.output.failure(code, text, {}),
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
    'lock. What the command leaves running is ended before the lock is released. A status of 70,',
    '71, 75, 126 or 127 may be the command’s own: only one of holdfast comes with a message of its',
    'own on standard error.',
  ].join(' '),
  arguments: [
    { name: 'NAME', summary: 'the lock', isRequired: true },
    { name: 'COMMAND', summary: 'what to run, after --', isRequired: true, isVariadic: true },
  ],
  options: [
    {
      name: 'wait',
      kind: 'text',
      value: 'TIME',
      summary: 'how long to stand in the queue, at most 1h; 0 tries once',
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

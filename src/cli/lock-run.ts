/**
 * Runs a command while a lock is held, and only then.
 *
 * Owns: the order of things. The watchdog starts first, the command only after the grant and never
 * after a signal; deadlines flow to the watchdog as renewals come; the lock is released when the
 * whole group of the command is gone, not before. Never: talks to the cluster itself (the lease is
 * a port) nor kills by itself (the watchdog does). Used by: commands/lock.ts.
 */
import { constants } from 'node:os';
import { type CliCode, EXIT_SIGNAL_BASE, ExitCode } from './exit-codes.js';
import { deadlineFrom, readInstant } from './watchdog/deadline.js';
import { type CommandEnd, WatchdogProcess } from './watchdog/watchdog-process.js';

/** A granted lease, as running a command needs it. */
export interface CommandLease {
  /** Fencing token. */
  readonly token: number;
  readonly leaseId: string;
  readonly ttlMs: number;
  /** Milliseconds for which the lease is certainly held; 0 or less when that is over. */
  remainingMs(): number;
  /** Aborts when the lease is lost. */
  readonly lost: AbortSignal;
  /** Resolves when the cluster has released the lease. */
  release(): Promise<void>;
}

export interface LockRun {
  /** Name of the lock. */
  readonly name: string;
  readonly command: string;
  readonly words: readonly string[];
  /** As the child gets it in HOLDFAST_ENDPOINTS. */
  readonly endpoints: string;
  /** Waits for the grant; rejects with the cluster's refusal, or when the signal aborts. */
  readonly acquire: (signal: AbortSignal) => Promise<CommandLease>;
  /** A remark that changes no status. */
  readonly say: (text: string) => void;
  /** Why the run failed; the status says it too. */
  readonly fail: (code: LockFailure, text: string) => void;
}

/** How a run fails beside what the cluster refuses. */
export type LockFailure = CliCode | 'LEASE_EXPIRED';

/** Signals that are passed on to the command's group. */
const PASSED_ON: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** 128 + the signal's number, as a shell reports it. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return EXIT_SIGNAL_BASE + constants.signals[signal];
}

/** Passes signals on to the command once it runs, and remembers the first that came before. */
class SignalDesk {
  readonly aborted = new AbortController();
  first: NodeJS.Signals | null = null;
  private readonly handlers = new Map<NodeJS.Signals, () => void>();

  constructor(private readonly watchdog: WatchdogProcess) {
    for (const signal of PASSED_ON) {
      const handler = (): void => this.onSignal(signal);
      this.handlers.set(signal, handler);
      process.on(signal, handler);
    }
  }

  close(): void {
    for (const [signal, handler] of this.handlers) process.off(signal, handler);
  }

  private onSignal(signal: NodeJS.Signals): void {
    this.first ??= signal;
    this.aborted.abort();
    this.watchdog.send({ kind: 'signal', signal });
  }
}

/**
 * Acquires, runs, releases.
 *
 * @returns the status to exit with: the command's own, 128 + n when a signal ended it or came
 *   before it was started, or ExitCode.Lost, NotFound, NotExecutable, Fault. Rejects with what
 *   `acquire` rejected with, unless a signal was the reason.
 */
export async function runUnderLock(run: LockRun): Promise<number> {
  const watchdog = new WatchdogProcess();
  const desk = new SignalDesk(watchdog);
  try {
    let lease: CommandLease;
    try {
      lease = await run.acquire(desk.aborted.signal);
    } catch (error) {
      if (desk.first !== null) return exitCodeOfSignal(desk.first);
      throw error;
    }
    return await runHolding(run, lease, watchdog, desk);
  } finally {
    watchdog.hangUp();
    await watchdog.ended;
    desk.close();
  }
}

async function runHolding(
  run: LockRun,
  lease: CommandLease,
  watchdog: WatchdogProcess,
  desk: SignalDesk,
): Promise<number> {
  let end: CommandEnd | null = null;
  if (desk.first === null) {
    startCommand(run, lease, watchdog);
    const stopFeeding = feedDeadlines(lease, watchdog);
    end = await watchdog.ended;
    stopFeeding();
  }
  const lostTo = await release(run, lease, end);
  if (lostTo !== null && end?.kind !== 'lost') {
    const words = `the lease of ${run.name} had ended while the command ran (${lostTo})`;
    run.fail('LEASE_EXPIRED', words);
    return ExitCode.Lost;
  }
  if (end === null || end.kind === 'refused') {
    if (desk.first !== null) return exitCodeOfSignal(desk.first);
  }
  return exitCodeOfEnd(run, end);
}

function startCommand(run: LockRun, lease: CommandLease, watchdog: WatchdogProcess): void {
  const environment: Record<string, string> = {
    HOLDFAST_LOCK: run.name,
    HOLDFAST_TOKEN: String(lease.token),
    HOLDFAST_LEASE_ID: lease.leaseId,
    HOLDFAST_ENDPOINTS: run.endpoints,
  };
  const nodeOptions = process.env['NODE_OPTIONS'];
  if (nodeOptions !== undefined) environment['NODE_OPTIONS'] = nodeOptions;
  const now = readInstant();
  const deadline = deadlineFrom(now, lease.remainingMs(), lease.ttlMs);
  const { command, words } = run;
  watchdog.send({ kind: 'start', command, words, environment, deadline });
}

/** Tells the watchdog each deadline that renewals win, and the loss. Returns how to stop. */
function feedDeadlines(lease: CommandLease, watchdog: WatchdogProcess): () => void {
  const feed = (): void => {
    const now = readInstant();
    const deadline = deadlineFrom(now, lease.remainingMs(), lease.ttlMs);
    if (!lease.lost.aborted) watchdog.send({ kind: 'deadline', deadline });
  };
  const onLost = (): void => watchdog.send({ kind: 'lost' });
  const timer = setInterval(feed, Math.min(Math.max(lease.ttlMs / 20, 10), 250));
  lease.lost.addEventListener('abort', onLost, { once: true });
  if (lease.lost.aborted) onLost();
  return () => {
    clearInterval(timer);
    lease.lost.removeEventListener('abort', onLost);
  };
}

/**
 * The command is gone, so a failure to release costs others a wait and changes no result. One
 * answer does: the lease had ended already, by force or by time, so the command ran on without it.
 * Resolves with how it had ended, or null.
 */
async function release(
  run: LockRun,
  lease: CommandLease,
  end: CommandEnd | null,
): Promise<string | null> {
  try {
    await lease.release();
  } catch (error) {
    if (end?.kind === 'lost') return null;
    const { code, details } = Object(error) as { code?: string; details?: { leaseEnd?: string } };
    if (code === 'STALE_LEASE') return details?.leaseEnd ?? 'unknown';
    const leftMs = Math.max(0, Math.ceil(lease.remainingMs()));
    run.say(`${run.name} was not released (${String(error)}); it ends by itself in ${leftMs}ms`);
  }
  return null;
}

function exitCodeOfEnd(run: LockRun, end: CommandEnd | null): number {
  if (end === null) return ExitCode.Fault;
  if (end.kind === 'exited') return end.status;
  if (end.kind === 'signalled') return exitCodeOfSignal(end.signal);
  if (end.kind === 'lost') {
    const why = end.reason === 'deadline' ? 'not renewed in time' : end.reason;
    run.fail('LEASE_EXPIRED', `the lease of ${run.name} is lost (${why}): the command was ended`);
    return ExitCode.Lost;
  }
  if (end.kind === 'refused') {
    run.fail('LEASE_EXPIRED', `the command was not started: ${end.reason}`);
    return ExitCode.Lost;
  }
  if (end.kind === 'failed') return failedStart(run, end.code, end.message);
  run.fail('WATCHDOG_KILLED', 'the watchdog was killed: the command was ended');
  return ExitCode.Fault;
}

function failedStart(run: LockRun, code: string, message: string): number {
  const { command } = run;
  if (code === 'ENOENT') {
    const why = command.includes('/') ? 'no such file, or no interpreter' : 'not found in PATH';
    run.fail('COMMAND_NOT_FOUND', `cannot start ${command}: ${why}`);
    return ExitCode.NotFound;
  }
  const why = code === 'EACCES' ? 'it is not executable' : message;
  run.fail('COMMAND_NOT_STARTED', `cannot start ${command}: ${why}`);
  return ExitCode.NotExecutable;
}

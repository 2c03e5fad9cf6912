/**
 * The watchdog of `holdfast lock`: a small process that runs the command and outlives the CLI.
 *
 * It leads a session and a process group of its own and starts the command inside them, so one
 * signal reaches the command, its children and, for SIGKILL, the watchdog itself. It believes only
 * the deadlines it reads from the CLI: when they stop coming, or the pipe ends because the CLI was
 * killed, the group is ended before the last deadline. Never: talks to the cluster. It is Node and
 * not sh, since a shell can neither wait for a pipe with a time-out nor read the uptime in
 * milliseconds. Started by watchdog-process.ts, while the CLI still connects.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import {
  type Instant,
  readInstant,
  remainingUntil,
  type SafeDeadline,
  sleepBeforeLook,
  whatIsDue,
} from './deadline.js';
import { type EndReason, encodeLine, LineSplitter, type Order, type Report } from './lines.js';
import { Session } from './session.js';

/** The pipes that the CLI holds the other ends of. */
const ORDERS_FD = 3;
const REPORTS_FD = 4;
/** Signals that may reach the whole group and must not end the watchdog before the command. */
const OUTLIVED: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPIPE'];

class Watchdog {
  private readonly session = new Session();
  private child: ChildProcess | null = null;
  private deadline: SafeDeadline | null = null;
  private terminatedAt: Instant | null = null;
  private signalled = false;
  private callerGone = false;

  onSignal(): void {
    this.signalled = true;
  }

  onOrder(order: Order): void {
    if (order.kind === 'start') this.start(order);
    else if (order.kind === 'deadline') this.onDeadline(order.deadline);
    else if (order.kind === 'lost') this.terminate('lost');
    else this.passOn(order.signal);
  }

  /** A deadline only ever moves back: the CLI knows more than it did before. */
  private onDeadline(deadline: SafeDeadline): void {
    if (this.terminatedAt === null) this.deadline = deadline;
  }

  onCallerGone(): void {
    this.callerGone = true;
    if (this.child === null) process.exit(0);
    this.terminate('caller gone');
  }

  private start(order: Order & { kind: 'start' }): void {
    this.deadline = order.deadline;
    const remainingMs = remainingUntil(order.deadline, readInstant());
    if (this.signalled) this.refuse('a signal came first');
    if (remainingMs <= order.deadline.terminateLeadMs) this.refuse('the lease is ending');
    const child = spawn(order.command, order.words, {
      stdio: 'inherit',
      env: { ...process.env, ...order.environment },
    });
    child.once('error', (error: NodeJS.ErrnoException) => this.onFailure(error));
    child.once('exit', (status, signal) => this.onEnded(status, signal));
    if (child.pid === undefined) return;
    this.child = child;
    this.report({ kind: 'started', pid: child.pid });
    this.look();
  }

  private refuse(reason: string): never {
    this.report({ kind: 'refused', reason });
    process.exit(0);
  }

  private onFailure(error: NodeJS.ErrnoException): void {
    this.report({ kind: 'failed', code: error.code ?? 'UNKNOWN', message: error.message });
    if (this.child === null) process.exit(0);
  }

  /** What the command left behind in its session goes with it: the lock is released next. */
  private onEnded(status: number | null, signal: NodeJS.Signals | null): void {
    this.report({ kind: 'ended', status, signal });
    this.kill();
  }

  private passOn(signal: NodeJS.Signals): void {
    if (this.child === null) this.signalled = true;
    else this.session.signal(signal);
  }

  private terminate(reason: EndReason): void {
    if (this.child === null || this.terminatedAt !== null) return;
    this.terminatedAt = readInstant();
    this.report({ kind: 'terminating', reason });
    this.session.signal('SIGTERM');
    // A stopped command would not see it.
    this.session.signal('SIGCONT');
  }

  /** Ends the group, this process included. Without a SIGTERM before, strays were not sought. */
  private kill(): never {
    if (this.terminatedAt === null) {
      this.child?.kill('SIGKILL');
      this.session.look();
    }
    this.session.kill();
    process.kill(process.pid, 'SIGKILL');
    process.exit(1);
  }

  /** Looks at the clocks, acts, and comes back. */
  private look(): void {
    if (this.deadline === null) return;
    const now = readInstant();
    const due = whatIsDue(this.deadline, this.terminatedAt, now);
    if (due === 'kill') {
      if (this.terminatedAt === null) this.report({ kind: 'terminating', reason: 'deadline' });
      this.kill();
    }
    if (due === 'terminate') this.terminate('deadline');
    setTimeout(() => this.look(), sleepBeforeLook(this.deadline, now));
  }

  /** At once and in one piece: the next thing may be the end of this process. */
  private report(report: Report): void {
    if (this.callerGone) return;
    try {
      writeSync(REPORTS_FD, encodeLine(report));
    } catch (error) {
      // The CLI is gone or stuck with a full pipe. The end of the pipe and the deadline decide.
      process.stderr.write(`holdfast: watchdog cannot report: ${(error as Error).message}\n`);
    }
  }

  /** The last resort for a fault in this program: nothing may run on unwatched. */
  onFault(error: unknown): never {
    process.stderr.write(`holdfast: watchdog fault: ${String(error)}\n`);
    this.kill();
  }
}

const watchdog = new Watchdog();
const splitter = new LineSplitter();
process.on('uncaughtException', (error) => watchdog.onFault(error));
for (const signal of OUTLIVED) process.on(signal, () => watchdog.onSignal());
const orders = new Socket({ fd: ORDERS_FD, readable: true, writable: false });
orders.setEncoding('utf8');
orders.on('data', (text: string) => {
  splitter.push(text, (line) => watchdog.onOrder(JSON.parse(line) as Order));
});
orders.on('error', () => watchdog.onCallerGone());
orders.on('close', () => watchdog.onCallerGone());

/**
 * The CLI's end of its watchdog: starts it, gives it orders, and learns how the command ended.
 *
 * Owns: the watchdog's process and the pipe. If the watchdog itself is killed, the rest of its
 * group is ended from here: one of the two always watches. Never: decides when to start or to end.
 * Used by: lock-run.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type EndReason, encodeLine, LineSplitter, type Order, type Report } from './lines.js';

/** How a command under a lock came to its end. */
export type CommandEnd =
  | { readonly kind: 'exited'; readonly status: number }
  | { readonly kind: 'signalled'; readonly signal: NodeJS.Signals }
  /** Ended by the watchdog, since the lease was lost or near its end. */
  | { readonly kind: 'lost'; readonly reason: EndReason }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  /** The watchdog vanished; the group was ended from here. */
  | { readonly kind: 'unwatched' };

/** A small heap and no worker threads: it starts while the CLI connects and then sleeps. */
const NODE_FLAGS = ['--max-old-space-size=32', '--max-semi-space-size=1', '--v8-pool-size=0'];

export class WatchdogProcess {
  /** Resolves once the watchdog, and with it its group, is gone. */
  readonly ended: Promise<CommandEnd>;
  /** Process id of the watchdog and id of its group and session. */
  readonly pid: number;
  private readonly child: ChildProcess;
  /** Two pipes: a write to a watchdog that is gone must not cost what it said before. */
  private readonly orders: Writable;
  private readonly reports: Readable;
  private end: CommandEnd | null = null;
  private terminated: EndReason | null = null;

  /** Starts a watchdog; throws when the operating system refuses. */
  constructor() {
    const script = fileURLToPath(new URL('./main.js', import.meta.url));
    this.child = spawn(process.execPath, [...NODE_FLAGS, script], {
      detached: true,
      stdio: ['inherit', 'inherit', 'inherit', 'pipe', 'pipe'],
      env: withoutNodeOptions(),
    });
    if (this.child.pid === undefined) throw new Error('cannot start the watchdog process');
    this.pid = this.child.pid;
    this.orders = this.child.stdio[3] as Writable;
    this.reports = this.child.stdio[4] as Readable;
    this.ended = new Promise((resolve) => {
      this.child.once('close', () => resolve(this.onGone()));
    });
    this.listen();
  }

  send(order: Order): void {
    if (this.orders.writable) this.orders.write(encodeLine(order));
  }

  /** No more orders: a watchdog that has started nothing ends, another one ends its command. */
  hangUp(): void {
    this.orders.end();
  }

  private listen(): void {
    const splitter = new LineSplitter();
    this.reports.setEncoding('utf8');
    this.reports.on('data', (text: string) => {
      splitter.push(text, (line) => this.onReport(JSON.parse(line) as Report));
    });
    // A write to a watchdog that is just ending: its end is what counts, and `close` tells it.
    this.orders.on('error', () => this.orders.destroy());
    this.reports.on('error', () => this.reports.destroy());
    this.child.once('error', () => this.orders.destroy());
  }

  private onReport(report: Report): void {
    if (report.kind === 'terminating') this.terminated ??= report.reason;
    else if (report.kind === 'ended') this.end ??= endOf(report);
    else if (report.kind === 'refused' || report.kind === 'failed') this.end ??= report;
  }

  private onGone(): CommandEnd {
    if (this.end === null) this.endGroup();
    if (this.terminated !== null) return { kind: 'lost', reason: this.terminated };
    return this.end ?? { kind: 'unwatched' };
  }

  /** What is still there of the group goes too. */
  private endGroup(): void {
    try {
      process.kill(-this.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

function endOf(report: Report & { kind: 'ended' }): CommandEnd {
  if (report.signal !== null) return { kind: 'signalled', signal: report.signal };
  return { kind: 'exited', status: report.status ?? 1 };
}

/** Options meant for the user's own Node programs, an inspector say, are not for the watchdog. */
function withoutNodeOptions(): NodeJS.ProcessEnv {
  const environment = { ...process.env };
  delete environment['NODE_OPTIONS'];
  return environment;
}

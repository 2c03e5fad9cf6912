/**
 * The five node processes of `holdfast dev`.
 *
 * Owns: starting them, their log files, and their end. Each holds the other end of its standard
 * input, so that they end by themselves when this process dies, however it dies. Never: hides a
 * node that ended by itself; its status is said at once, with its last words.
 * Used by: commands/dev.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Output } from './command.js';
import { lastWordsIn } from './last-words.js';
import { type LocalNode, NODE_ENVIRONMENT, NODE_FLAGS, serveWords } from './local-cluster.js';

/** A log larger than this is set aside at the next start, as .old; one older generation is kept. */
const LOG_BYTES_MAX = 16 << 20;
/** Children get this long to end in order; the bound of serve itself is shorter. */
const END_MS_MAX = 10_000;
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/**
 * A signal that comes this soon after the first is the same wish: npm passes SIGINT on to a child
 * that the terminal has told already.
 */
const SAME_WISH_MS = 1_000;
/** Ends of a process whose native code met what it cannot read. */
const CRASH_SIGNALS: ReadonlySet<string> = new Set(['SIGABRT', 'SIGSEGV', 'SIGBUS']);

interface Child {
  readonly process: ChildProcess;
  /** Bytes that its log had before it started. */
  readonly logFrom: number;
}

const DAMAGED =
  'its data folder seems to be damaged. `holdfast verify --folder` says where, `holdfast repair` ' +
  'brings it back; the cluster runs on while a majority of its members does';

/** True when a signal, `sinceFirstMs` after the first, is to kill what does not stop. */
export function isSecondWish(sinceFirstMs: number): boolean {
  return sinceFirstMs >= SAME_WISH_MS;
}

/** How a node ended and why, by its last words; '' when it said none. */
export function describeEnd(
  status: number | null,
  signal: NodeJS.Signals | null,
  lastWords: string,
): string {
  const how = signal === null ? `ended with status ${status}` : `ended by ${signal}`;
  if (signal !== null && CRASH_SIGNALS.has(signal)) return `${how}: ${DAMAGED}`;
  if (lastWords !== '') return `${how}: ${lastWords.replace(/\.$/, '')}`;
  return `${how}. It is not restarted: Ctrl-C and start again to get it back`;
}

export class DevChildren {
  /** Resolves when no child is left. */
  readonly allEnded: Promise<void>;
  private readonly children = new Map<number, Child>();
  /** When the children were told to end, in ms of the monotonic clock; -1 before. */
  private endingSinceMs = -1;
  private killing = false;
  private failed = 0;
  private onAllEnded: () => void = () => undefined;

  constructor(
    private readonly logFolder: string,
    private readonly output: Output,
  ) {
    this.allEnded = new Promise((resolve) => {
      this.onAllEnded = resolve;
    });
    for (const signal of STOP_SIGNALS) process.on(signal, () => this.onStopSignal(signal));
  }

  /** True once the children were told to end. */
  get isEnding(): boolean {
    return this.endingSinceMs >= 0;
  }

  /** True when a child ended without being told to, was not started, or had to be killed. */
  get hasFailed(): boolean {
    return this.failed > 0;
  }

  /** How many children have not ended. */
  get runningCount(): number {
    return this.children.size;
  }

  /** Reports a node that is not started, as one that ended. */
  skip(nodeId: number, reason: string): void {
    this.fail(nodeId, `node ${nodeId} is not started: ${reason}`);
  }

  /**
   * Starts `started`, which know all of `nodes` as members.
   *
   * @param settings for the founding record; only with `isFounding`.
   */
  start(
    nodes: readonly LocalNode[],
    started: readonly LocalNode[],
    isFounding: boolean,
    settings: readonly string[],
  ): void {
    mkdirSync(this.logFolder, { recursive: true });
    const extra = isFounding ? settings.flatMap((setting) => ['--setting', setting]) : [];
    const script = fileURLToPath(new URL('./main.js', import.meta.url));
    for (const node of started) {
      const words = serveWords(nodes, node, isFounding && node.nodeId === 1);
      const log = this.openLog(node.nodeId);
      const child = spawn(process.execPath, [...NODE_FLAGS, script, ...words, ...extra], {
        stdio: ['pipe', log.handle, log.handle],
        env: { ...process.env, ...NODE_ENVIRONMENT },
      });
      closeSync(log.handle);
      // Its end is told by 'exit'; a write to it never happens.
      child.stdin?.on('error', () => undefined);
      child.once('error', (error) => this.onNotStarted(node.nodeId, error));
      child.once('exit', (status, signal) => this.onExit(node.nodeId, status, signal));
      this.children.set(node.nodeId, { process: child, logFrom: log.from });
    }
  }

  /** Tells every child to end, once; those that do not are killed after END_MS_MAX. */
  end(reason: string): void {
    if (this.isEnding) return;
    this.endingSinceMs = performance.now();
    this.output.note(`stopping: ${reason}`);
    for (const child of this.children.values()) child.process.kill('SIGTERM');
    setTimeout(() => this.killAll(`did not stop in ${END_MS_MAX} ms`), END_MS_MAX).unref();
  }

  private killAll(reason: string): void {
    this.killing = true;
    const nodes = [...this.children.keys()].join(', ');
    this.output.note(`killing node ${nodes}: ${reason}`);
    for (const child of this.children.values()) child.process.kill('SIGKILL');
  }

  private onStopSignal(signal: string): void {
    if (!this.isEnding) this.end(signal);
    else if (!this.killing && isSecondWish(performance.now() - this.endingSinceMs)) {
      this.killAll(`second ${signal}`);
    }
  }

  private onExit(nodeId: number, status: number | null, signal: NodeJS.Signals | null): void {
    const child = this.children.get(nodeId);
    if (child === undefined) return;
    this.children.delete(nodeId);
    if (!this.isEnding) this.fail(nodeId, this.describe(nodeId, child, status, signal));
    // What this process stopped is no news; that it had to be killed has been said.
    else if (this.killing) this.failed += 1;
    else if (status !== 0 && signal === null) {
      this.fail(nodeId, this.describe(nodeId, child, status, signal));
    }
    if (this.children.size === 0) this.onAllEnded();
  }

  private describe(
    nodeId: number,
    child: Child,
    status: number | null,
    signal: NodeJS.Signals | null,
  ): string {
    const log = this.logFile(nodeId);
    const end = describeEnd(status, signal, lastWordsIn(log, child.logFrom));
    return `node ${nodeId} ${end}. Its log: ${log}`;
  }

  private onNotStarted(nodeId: number, error: Error): void {
    if (!this.children.delete(nodeId)) return;
    this.fail(nodeId, `node ${nodeId} could not start: ${error.message}`);
    if (this.children.size === 0) this.onAllEnded();
  }

  private fail(nodeId: number, message: string): void {
    this.failed += 1;
    this.output.failure('NODE_ENDED', message, { node: nodeId });
  }

  private logFile(nodeId: number): string {
    return path.join(this.logFolder, `node-${nodeId}.log`);
  }

  private openLog(nodeId: number): { handle: number; from: number } {
    const file = this.logFile(nodeId);
    const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > LOG_BYTES_MAX) renameSync(file, `${file}.old`);
    return { handle: openSync(file, 'a'), from: bytes > LOG_BYTES_MAX ? 0 : bytes };
  }
}

/**
 * The five node processes of `holdfast dev`.
 *
 * Owns: starting them, their log files, and their end. Each holds the other end of its standard
 * input, so that they end by themselves when this process dies, however it dies. Never: hides a
 * node that ended; its status is said at once. Used by: commands/dev.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Output } from './command.js';
import { type LocalNode, NODE_ENVIRONMENT, NODE_FLAGS, serveWords } from './local-cluster.js';

/** A log larger than this is set aside at the next start, as .old; one older generation is kept. */
const LOG_BYTES_MAX = 16 << 20;
/** Children get this long to end in order; the bound of serve itself is shorter. */
const END_MS_MAX = 10_000;
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export class DevChildren {
  /** Resolves when no child is left. */
  readonly allEnded: Promise<void>;
  private readonly children = new Map<number, ChildProcess>();
  private ending = false;
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
    return this.ending;
  }

  /** True when a child ended without being told to, or with a status other than 0. */
  get hasFailed(): boolean {
    return this.failed > 0;
  }

  start(nodes: readonly LocalNode[], isFounding: boolean, settings: readonly string[]): void {
    mkdirSync(this.logFolder, { recursive: true });
    const extra = isFounding ? settings.flatMap((setting) => ['--setting', setting]) : [];
    const script = fileURLToPath(new URL('./main.js', import.meta.url));
    for (const node of nodes) {
      const words = serveWords(nodes, node, isFounding && node.nodeId === 1);
      const log = this.openLog(node.nodeId);
      const child = spawn(process.execPath, [...NODE_FLAGS, script, ...words, ...extra], {
        stdio: ['pipe', log, log],
        env: { ...process.env, ...NODE_ENVIRONMENT },
      });
      closeSync(log);
      // Its end is told by 'exit'; a write to it never happens.
      child.stdin?.on('error', () => undefined);
      child.once('error', (error) =>
        this.onEnded(node.nodeId, `could not start: ${error.message}`),
      );
      child.once('exit', (status, signal) => this.onExit(node.nodeId, status, signal));
      this.children.set(node.nodeId, child);
    }
  }

  /** Tells every child to end, once; those that do not are killed after END_MS_MAX. */
  end(reason: string): void {
    if (this.ending) return;
    this.ending = true;
    this.output.note(`stopping: ${reason}`);
    for (const child of this.children.values()) child.kill('SIGTERM');
    setTimeout(() => this.killAll(), END_MS_MAX).unref();
  }

  private killAll(): void {
    for (const [nodeId, child] of this.children) {
      this.output.note(`node ${nodeId} did not stop in ${END_MS_MAX} ms: killing it`);
      child.kill('SIGKILL');
    }
  }

  private onStopSignal(signal: string): void {
    if (this.ending) this.killAll();
    else this.end(signal);
  }

  private onExit(nodeId: number, status: number | null, signal: NodeJS.Signals | null): void {
    const how = signal === null ? `with status ${status}` : `by ${signal}`;
    const isFine = this.ending && status === 0;
    this.onEnded(nodeId, isFine ? '' : `ended ${how}`);
  }

  /** `problem` is empty for a child that ended as it was told. */
  private onEnded(nodeId: number, problem: string): void {
    if (!this.children.delete(nodeId)) return;
    if (problem !== '') {
      this.failed += 1;
      const log = this.logFile(nodeId);
      this.output.failure('NODE_ENDED', `node ${nodeId} ${problem}; its log: ${log}`, {
        node: nodeId,
      });
    }
    if (this.children.size === 0) this.onAllEnded();
  }

  private logFile(nodeId: number): string {
    return path.join(this.logFolder, `node-${nodeId}.log`);
  }

  private openLog(nodeId: number): number {
    const file = this.logFile(nodeId);
    const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > LOG_BYTES_MAX) renameSync(file, `${file}.old`);
    return openSync(file, 'a');
  }
}

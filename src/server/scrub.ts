/**
 * The background check of a node's disk: pass after pass, at a low rate, on a thread of its own.
 *
 * Owns: when a pass begins (now and then, or asked for), that it stands still while the node is
 * behind, and what is known to be damaged. Never: on the way of a commit; never writes, repairs or
 * ends the node: a fault is told by name, in the log, the metrics and over HTTP, and the node goes
 * on, since its memory is whole. Made by: node.ts.
 */
import { Worker } from 'node:worker_threads';
import { FAULT_ROWS, type ScrubFault } from '../io/scrub/fault.js';
import type { ScrubResult } from '../io/scrub/scrub-pass.js';
import type { ScrubDesk, ScrubStatus } from '../io/scrub/scrub-status.js';
import {
  SCRUB_FAULTS_KEPT,
  SCRUB_LOOK_MS,
  SCRUB_REST_MS,
  SCRUB_SPACING_MS,
  SCRUB_START_MS,
} from '../limits.js';
import type { Logger } from '../observe/logger.js';
import type { ScrubOrder, ScrubReport, ScrubTask } from '../workers/scrub-thread.js';

export interface NodeScrubOptions {
  readonly dataFolder: string;
  /** Bytes that a pass reads in a second; 0: there are no passes. */
  readonly bytesPerSecond: number;
  /** From the end of a pass to the next. */
  readonly pauseMs: number;
  /** Everything ordered so far lies in segments that are written no more, when this resolves. */
  readonly seal: () => Promise<void>;
  /** True while the node has more urgent things to do. */
  readonly isBehind: () => boolean;
  readonly logger: Logger;
  /** SCRUB_START_MS, SCRUB_SPACING_MS, SCRUB_LOOK_MS and SCRUB_REST_MS by default. */
  readonly startMs?: number;
  readonly spacingMs?: number;
  readonly lookMs?: number;
  readonly restMs?: number;
}

const NOTHING: ScrubResult = { segments: 0, snapshots: 0, faults: [] };

export class NodeScrub implements ScrubDesk {
  private worker: Worker | null = null;
  private timer: NodeJS.Timeout | null = null;
  private look: NodeJS.Timeout | null = null;
  private isRunning = false;
  private isPaused = false;
  private isClosed = false;
  /** Somebody has asked for a pass that begins after the present one. */
  private isAsked = false;
  private passes = 0;
  private passesFailed = 0;
  private failure = '';
  private bytes = 0;
  private passBytes = 0;
  private wholeAtMs = performance.now();
  private startedAtMs = Number.NEGATIVE_INFINITY;
  private last = NOTHING;
  /** Found by the pass that runs. */
  private found: ScrubFault[] = [];

  constructor(private readonly options: NodeScrubOptions) {}

  /** The node serves: the first pass comes a while later. */
  start(): void {
    this.schedule(this.options.startMs ?? SCRUB_START_MS);
  }

  /** Begins a pass now, or as soon as the present one has ended: see ScrubDesk. */
  begin(): number {
    if (this.options.bytesPerSecond === 0 || this.isClosed) return 0;
    if (this.isRunning) {
      this.isAsked = true;
      return this.passes + 2;
    }
    this.scheduleNext();
    return this.passes + 1;
  }

  get status(): ScrubStatus {
    const { isRunning, isPaused, passes, passesFailed, failure, bytes, last, found } = this;
    const known = new Set(last.faults.map(({ file, index }) => `${file} ${index}`));
    const fresh = found.filter(({ file, index }) => !known.has(`${file} ${index}`));
    return {
      isEnabled: this.options.bytesPerSecond > 0,
      isRunning,
      isPaused: isRunning && isPaused,
      passes,
      passesFailed,
      failure,
      bytes,
      ageMs: performance.now() - this.wholeAtMs,
      segments: last.segments,
      snapshots: last.snapshots,
      faults: [...last.faults, ...fresh].slice(0, SCRUB_FAULTS_KEPT),
    };
  }

  close(): void {
    this.isClosed = true;
    this.clearTimers();
    void this.worker?.terminate();
    this.worker = null;
  }

  /** As soon as may be: a pass seals the log, so whoever may ask must not do so all the time. */
  private scheduleNext(): void {
    const { spacingMs = SCRUB_SPACING_MS } = this.options;
    this.schedule(Math.max(0, spacingMs - (performance.now() - this.startedAtMs)));
  }

  private schedule(ms: number): void {
    if (this.options.bytesPerSecond === 0 || this.isClosed) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      void this.run();
    }, ms);
    this.timer.unref();
  }

  private async run(): Promise<void> {
    const { dataFolder, bytesPerSecond, restMs = SCRUB_REST_MS, seal } = this.options;
    this.isRunning = true;
    this.isAsked = false;
    this.found = [];
    this.passBytes = 0;
    this.startedAtMs = performance.now();
    await seal();
    if (this.isClosed) return;
    const workerData: ScrubTask = { dataFolder, bytesPerSecond, restMs };
    const file = new URL('../workers/scrub-thread.js', import.meta.url);
    const worker = new Worker(file, { workerData });
    this.worker = worker;
    worker.on('message', (report: ScrubReport) => this.onReport(report));
    worker.on('error', (error) => this.endPass(null, error.message));
    this.watchLoad();
  }

  /** Stands still while the node is behind. */
  private watchLoad(): void {
    const { isBehind, lookMs = SCRUB_LOOK_MS } = this.options;
    this.isPaused = false;
    const look = (): void => {
      const isPaused = isBehind();
      if (isPaused === this.isPaused) return;
      this.isPaused = isPaused;
      const order: ScrubOrder = { isPaused };
      this.worker?.postMessage(order);
    };
    look();
    this.look = setInterval(look, lookMs);
    this.look.unref();
  }

  private onReport(report: ScrubReport): void {
    if (this.isClosed) return;
    if (report.kind === 'read') {
      this.bytes += report.bytes;
      this.passBytes += report.bytes;
    } else if (report.kind === 'fault') {
      this.onFault(report.fault);
    } else {
      this.endPass(report.result, '');
    }
  }

  private onFault(fault: ScrubFault): void {
    const { kind, file, index, found } = fault;
    const { means, remedy } = FAULT_ROWS[kind];
    if (this.found.length < SCRUB_FAULTS_KEPT) this.found.push(fault);
    this.options.logger.error({ kind, file, index, found, means, remedy }, 'the disk is damaged');
  }

  private endPass(result: ScrubResult | null, failure: string): void {
    if (this.isClosed || !this.isRunning) return;
    const { logger, pauseMs } = this.options;
    this.isRunning = false;
    this.worker = null;
    this.passes += 1;
    this.failure = failure;
    this.clearTimers();
    const ms = Math.round(performance.now() - this.startedAtMs);
    if (result === null) {
      this.passesFailed += 1;
      logger.warn({ reason: failure }, 'the disk could not be checked');
    } else {
      const { segments, snapshots, faults } = result;
      this.last = { segments, snapshots, faults: faults.slice(0, SCRUB_FAULTS_KEPT) };
      this.wholeAtMs = performance.now();
      const bytes = this.passBytes;
      logger.info({ segments, snapshots, bytes, faults: faults.length, ms }, 'checked the disk');
    }
    this.found = [];
    if (this.isAsked) this.scheduleNext();
    else this.schedule(pauseMs);
  }

  private clearTimers(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.look !== null) clearInterval(this.look);
    this.timer = null;
    this.look = null;
  }
}

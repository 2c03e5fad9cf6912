/**
 * Snapshots of a simulated node: the production jobs, on media that take their time and can fail.
 *
 * Owns: when a step of a job ends, and what a crash leaves of the one that is under way; the
 * connection on which a snapshot is fetched. Which steps there are, what is written and what is
 * believed is decided by server/snapshot-jobs.ts, workers, and io/snapshots. Never: a real file.
 * Used by: sim-cluster.ts.
 */
import type { Settings } from '../../src/core/locks/settings.js';
import { FailedWrite } from '../../src/io/failed-write.js';
import { checksum } from '../../src/io/peers/peer-socket.js';
import { type FetchResult, fetchSteps, type Question } from '../../src/io/peers/snapshot-fetch.js';
import type { SnapshotEvents, SnapshotPort } from '../../src/replica/ports.js';
import {
  discardDraft,
  fetchNewest,
  type Job,
  type JobOptions,
  keepDraft,
  makeDraft,
  type Step,
} from '../../src/server/snapshot-jobs.js';
import { OutBuffer } from '../../src/wire/out-buffer.js';
import { isPeerFrameIntact, PEER_HEADER_BYTES } from '../../src/wire/peer.js';
import {
  type CompactionResult,
  type CompactionTask,
  compactLog,
} from '../../src/workers/compaction.js';
import {
  discardFetched,
  discardDraft as discardFolder,
  publishDraft,
  publishFetched,
  removeBefore,
} from '../../src/workers/jobs.js';
import { DeviceError, PowerCut } from './devices/media.js';
import type { SimDisk } from './sim-disk.js';
import type { SimLender } from './sim-lender.js';
import type { SimLog } from './sim-log.js';
import type { World } from './world.js';

const FOLDER_JOBS = {
  publishDraft,
  publishFetched,
  discardDraft: discardFolder,
  discardFetched,
  removeBefore,
} as const;

/** µs that a step takes, least and most. */
const COMPACT_US = [1_000, 60_000] as const;
const FOLDER_US = [100, 3_000] as const;
const REST_US = [1, 200] as const;
const CONNECT_US = [200, 3_000] as const;
const ANSWER_US_MAX = 300_000;
const HELD_POLL_US = 1_000;
/** Steps of the media, of those that a job takes at once, after which the power may go. */
const STEPS_MAX = 6;

const SILENT = {
  logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
  onInstalled: () => undefined,
};

/** What a node's snapshots need of the room they are in. */
export interface SnapshotHost {
  readonly world: World;
  readonly disk: SimDisk;
  readonly log: SimLog;
  readonly clusterId: Uint8Array;
  readonly settings: Settings;
  readonly hashSeeds: Uint32Array;
  readonly chunkBytes: number;
  readonly lender: SimLender;
  readonly events: SnapshotEvents;
  /** Carries a frame to a node and its answer back; null stands for none. */
  ask(nodeId: number, frame: Uint8Array, onAnswer: (frame: Uint8Array) => void): void;
  isAlive(): boolean;
  whenAwake(handle: () => void): void;
  /** A job failed where none may fail: the node ends. */
  onFatal(reason: string): void;
  /** Something that a sound node never does. */
  onProblem(text: string): void;
  /** A step on the media begins. */
  onStep(kind: Step['kind']): void;
}

export class SimSnapshots implements SnapshotPort {
  private readonly jobs: JobOptions;
  /** The step that is under way on the media: a crash leaves half of it. */
  private underWay: (() => unknown) | null = null;
  private lastFetch = 0;

  constructor(private readonly host: SnapshotHost) {
    const { disk, hashSeeds, lender, events } = host;
    this.jobs = { ...SILENT, dataFolder: disk.folder, hashSeeds, lender, events };
  }

  get isLent(): boolean {
    return this.host.lender.isLent;
  }

  make(index: number): void {
    this.step(makeDraft(this.jobs, index), (job) => job.next());
  }

  keep(index: number, logFrom: number): void {
    this.step(keepDraft(this.jobs, index, logFrom), (job) => job.next());
  }

  discard(index: number, digest: string): void {
    this.host.onProblem(`made a draft at ${index} that is not its state`);
    this.step(discardDraft(this.jobs, index, digest), (job) => job.next());
  }

  fetch(nodeId: number, index: number): void {
    this.step(fetchNewest(this.jobs, nodeId, index), (job) => job.next());
  }

  /** The process ends: of a step on the media that was under way, so much had happened. */
  crash(): void {
    const { underWay } = this;
    this.underWay = null;
    if (underWay === null) return;
    const { world, disk } = this.host;
    const { media } = disk;
    media.clearFaults();
    if (world.chance(0.3)) return;
    // Mostly the first: what is written and not synced is what a later life may take for whole.
    media.stepsLeft = world.chance(0.5) ? 0 : world.between(1, STEPS_MAX);
    try {
      underWay();
    } catch {
      // The power is gone, or the step fails for another reason: nobody hears of it any more.
    }
    media.stepsLeft = Number.POSITIVE_INFINITY;
  }

  /** Goes on with a job, and carries out the step that it asks for next. */
  private step(job: Job, go: (job: Job) => IteratorResult<Step, void>): void {
    let next: IteratorResult<Step, void>;
    try {
      next = go(job);
    } catch (error) {
      if (!isOfDevice(error)) throw error;
      this.host.onFatal(`a snapshot job failed: ${(error as Error).message}`);
      return;
    }
    if (next.done !== true) this.carryOut(job, next.value);
  }

  private carryOut(job: Job, step: Step): void {
    const { host } = this;
    const { log, disk } = host;
    const onDone = (value: unknown): void => this.step(job, (at) => at.next(value));
    switch (step.kind) {
      case 'seal':
        log.seal(() => host.whenAwake(() => onDone(undefined)));
        break;
      case 'drop':
        host.onStep('drop');
        log.dropBefore(step.before, (first) => host.whenAwake(() => onDone(first)));
        break;
      case 'compact': {
        const { index, baseIndex } = step;
        const { clusterId, settings, chunkBytes } = host;
        const task = { dataFolder: disk.folder, index, baseIndex, clusterId, settings, chunkBytes };
        this.later(job, step.kind, COMPACT_US, () => this.compact(task));
        break;
      }
      case 'folder': {
        const name = { dataFolder: disk.folder, index: step.index };
        this.later(job, step.kind, FOLDER_US, () => FOLDER_JOBS[step.job](name));
        break;
      }
      case 'retire': {
        const name = { dataFolder: disk.folder, index: step.index };
        this.later(job, step.kind, FOLDER_US, () => removeBefore(name));
        break;
      }
      case 'rest':
        this.later(job, step.kind, REST_US, () => undefined);
        break;
      case 'fetch':
        this.download(job, step.nodeId, step.leastIndex);
        break;
    }
  }

  /** A sound disk holds what the log promised: only a device may fail here. */
  private compact(task: CompactionTask): CompactionResult {
    try {
      return compactLog(task, () => 0);
    } catch (error) {
      if (!isOfDevice(error)) this.host.onProblem(`could not compact: ${(error as Error).message}`);
      throw error;
    }
  }

  /** `work` on the media, some time from now; a crash until then leaves half of it. */
  private later(
    job: Job,
    kind: Step['kind'],
    takesUs: readonly [number, number],
    work: () => unknown,
  ): void {
    const { host } = this;
    const { world, disk } = host;
    this.underWay = work;
    host.onStep(kind);
    const end = (): void => {
      if (!host.isAlive()) return;
      if (disk.isHeld) {
        world.after(HELD_POLL_US, end);
        return;
      }
      this.underWay = null;
      const go = this.outcomeOf(work);
      host.whenAwake(() => this.step(job, go));
    };
    world.after(world.between(...takesUs), end);
  }

  private outcomeOf(work: () => unknown): (job: Job) => IteratorResult<Step, void> {
    try {
      const value = work();
      return (job) => job.next(value);
    } catch (error) {
      return (job) => job.throw(error);
    }
  }

  /** A fetch on a connection of its own: one question after the other, each answered or not. */
  private download(job: Job, nodeId: number, leastIndex: number): void {
    const { host } = this;
    const { world, disk, clusterId } = host;
    const fetch = fetchSteps({ dataFolder: disk.folder, clusterId, leastIndex });
    this.lastFetch += 1;
    const number = this.lastFetch;
    const fail = (reason: Error): void => {
      if (this.lastFetch !== number) return;
      this.lastFetch += 1;
      host.whenAwake(() => this.step(job, (at) => at.throw(reason)));
    };
    const goOn = (answer: Uint8Array | null): void => {
      if (this.lastFetch !== number) return;
      let next: IteratorResult<Question, FetchResult>;
      try {
        next = answer === null ? fetch.next() : fetch.next(answer);
      } catch (error) {
        const reason = error as Error;
        const isReason = reason.name === 'Error' || isOfDevice(reason);
        // A reason to give up is a plain Error; anything else is a fault of who fetches.
        if (!isReason) host.onProblem(`fetches badly: ${reason.message}`);
        fail(reason);
        return;
      }
      if (next.done === true) {
        const { value } = next;
        this.lastFetch += 1;
        host.whenAwake(() => this.step(job, (at) => at.next(value)));
      } else put(next.value);
    };
    const put = (question: Question): void => {
      let isOpen = true;
      const end = (handle: () => void): void => {
        if (!isOpen) return;
        isOpen = false;
        this.underWay = null;
        handle();
      };
      const out = new OutBuffer();
      question.encode(out);
      host.ask(nodeId, out.bytes.slice(0, out.length), (frame) => {
        const answer = answerIn(frame, question);
        if (answer === null) {
          end(() => fail(new Error('what came is no answer')));
          return;
        }
        if (!isOpen) return;
        this.underWay = () => fetch.next(answer);
        host.onStep('fetch');
        world.after(world.between(...disk.fsyncUs), () => {
          if (host.isAlive()) end(() => goOn(answer));
        });
      });
      world.after(ANSWER_US_MAX, () => {
        if (host.isAlive()) end(() => fail(new Error('no answer')));
      });
    };
    world.after(world.between(...CONNECT_US), () => {
      if (host.isAlive()) goOn(null);
    });
  }
}

function isOfDevice(error: unknown): boolean {
  if (error instanceof FailedWrite || error instanceof DeviceError) return true;
  return error instanceof PowerCut;
}

function answerIn(frame: Uint8Array, question: Question): Uint8Array | null {
  if (!isPeerFrameIntact(frame, 0, frame.length, checksum)) return null;
  return question.decode(frame, PEER_HEADER_BYTES, frame.length);
}

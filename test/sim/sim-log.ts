/**
 * The log of a simulated node: the loop of the log thread, on a disk that takes its time.
 *
 * Owns: when a group of orders ends, and how it can go wrong. What is written, in which order, and
 * what is told is decided by src/io/log, which runs on the simulated media. Never: a real file.
 * Used by: sim-cluster.ts. Passes the conformance suite of the log on LMDB.
 */
import {
  GroupCommit,
  type GroupEvents,
  type OpenedFolder,
  type OrderSource,
  openFolder,
} from '../../src/io/log/group-commit.js';
import { LogError } from '../../src/io/log/log-error.js';
import {
  type LogRequest,
  OrderReader,
  orderBytes,
  unpackEntries,
  writeOrder,
} from '../../src/io/log/protocol.js';
import type { LogBase } from '../../src/io/log/verify.js';
import { LOG_APPENDS_MAX } from '../../src/limits.js';
import type { AppendOrder, LogEvents, LogPort, LogState } from '../../src/replica/ports.js';
import { DeviceError, PowerCut } from './devices/media.js';
import type { SimDisk } from './sim-disk.js';
import type { World } from './world.js';

const HELD_POLL_US = 1_000;
/** Steps of the media that a group of orders can take before it is surely done. */
const STEPS_MAX = 8;

/** What a start found. */
export interface OpenedSimLog {
  readonly log: SimLog;
  readonly state: LogState;
  readonly diskId: Uint8Array;
}

type Item = OrderReader | LogRequest;

/** Told by a log beside its LogEvents. */
export interface SimLogOwner {
  /** The device failed: the node ends at once (I10). */
  onFatal(reason: string): void;
  /** These entries are on the disk now. */
  onStored(fromIndex: number, toIndex: number): void;
}

const NO_OWNER: SimLogOwner = {
  onFatal: (reason) => {
    throw new Error(reason);
  },
  onStored: () => undefined,
};

/**
 * Opens the log on `disk`, behind `snapshot` if there is one. Throws LogError when what is there is
 * not whole.
 */
export function openSimLog(
  world: World,
  disk: SimDisk,
  nodeId: number,
  snapshot: LogBase | null = null,
): OpenedSimLog {
  const { folder, segmentBytesMax } = disk;
  const options = { folder, nodeId, segmentBytesMax, snapshot };
  const opened = openFolder(options, { onProgress: () => undefined });
  const { log, termStarts, commitIndex } = opened;
  const { term, votedFor, diskId } = opened.state.current;
  const { firstIndex, lastIndex } = log;
  const tail = unpackEntries(opened.tail);
  const hardState = { term, votedFor };
  const state = { hardState, firstIndex, lastIndex, termStarts, tail, commitIndex };
  return { log: new SimLog(world, disk, opened), state, diskId };
}

/** One group of orders and requests, and what is to be told when it is carried out. */
class Group implements OrderSource, GroupEvents {
  readonly tell: (() => void)[] = [];
  private orders = 0;
  /** First index written since the last commit, 0 for none. */
  private fromIndex = 0;
  private at = 0;

  constructor(
    private readonly items: readonly Item[],
    private readonly log: SimLog,
  ) {}

  next(): Item | null {
    const item = this.items[this.at];
    if (item === undefined) return null;
    this.at += 1;
    if (item instanceof OrderReader) {
      this.orders += 1;
      if (item.count > 0) {
        const { firstIndex } = item;
        this.fromIndex = this.fromIndex === 0 ? firstIndex : Math.min(this.fromIndex, firstIndex);
      }
    }
    return item;
  }

  release(): void {
    this.orders = 0;
    this.fromIndex = 0;
  }

  beforeWrite(): void {
    // A full disk is a matter of real ones.
  }

  onDurable(appendId: number): void {
    const { log, orders } = this;
    if (this.fromIndex > 0) log.noteStored(this.fromIndex);
    this.tell.push(() => log.tellDurable(appendId, orders));
  }

  onRead(readId: number, records: OpenedFolder['tail']): void {
    this.tell.push(() => this.log.events?.onRead(readId, unpackEntries(records)));
  }

  onDone(callId: number, firstIndex: number): void {
    this.tell.push(() => this.log.tellDone(callId, firstIndex));
  }
}

export class SimLog implements LogPort {
  events: LogEvents | null = null;
  owner: SimLogOwner = NO_OWNER;
  private queue: Item[] = [];
  private writing: readonly Item[] = [];
  private writingSinceUs = 0;
  private isDead = false;
  private outstanding = 0;
  private lastCallId = 0;
  private readonly calls = new Map<number, (firstIndex: number) => void>();

  constructor(
    private readonly world: World,
    private readonly disk: SimDisk,
    private readonly folder: OpenedFolder,
  ) {}

  append(order: AppendOrder): void {
    this.outstanding += 1;
    if (this.outstanding > LOG_APPENDS_MAX) throw new Error('the log has too many orders');
    const bytes = new Uint8Array(orderBytes(order));
    writeOrder(bytes, new DataView(bytes.buffer), 0, order);
    this.put(new OrderReader(bytes));
  }

  read(readId: number, from: number, to: number, bytesMax: number): void {
    this.put({ kind: 'read', readId, from, to, bytesMax });
  }

  /** As LmdbLog.seal, with a call in place of a promise. */
  seal(done: () => void): void {
    this.put({ kind: 'seal', callId: this.call(done) });
  }

  /** As LmdbLog.dropBefore. */
  dropBefore(before: number, done: (firstIndex: number) => void): void {
    this.put({ kind: 'drop', callId: this.call(done), before });
  }

  noteStored(fromIndex: number): void {
    this.owner.onStored(fromIndex, this.folder.log.lastIndex);
  }

  tellDurable(appendId: number, orders: number): void {
    this.outstanding -= orders;
    this.events?.onDurable(appendId);
  }

  tellDone(callId: number, firstIndex: number): void {
    this.calls.get(callId)?.(firstIndex);
    this.calls.delete(callId);
  }

  private call(done: (firstIndex: number) => void): number {
    this.lastCallId += 1;
    this.calls.set(this.lastCallId, done);
    return this.lastCallId;
  }

  private put(item: Item): void {
    this.queue.push(item);
    this.writeNext();
  }

  /** Group commit: what has come meanwhile is carried out together. */
  private writeNext(): void {
    if (this.writing.length > 0 || this.queue.length === 0 || this.isDead) return;
    this.writing = this.queue;
    this.queue = [];
    this.writingSinceUs = this.world.nowUs;
    this.world.after(this.world.between(...this.disk.fsyncUs), () => this.finish());
  }

  private finish(): void {
    if (this.isDead) return;
    if (this.disk.isHeld) {
      const silentUs = this.world.nowUs - this.writingSinceUs;
      if (silentUs > this.disk.silenceUsMax) this.owner.onFatal('the log has not answered');
      else this.world.after(HELD_POLL_US, () => this.finish());
      return;
    }
    const { writing } = this;
    this.writing = [];
    let tell: readonly (() => void)[] = [];
    try {
      tell = this.carryOut(writing);
    } catch (error) {
      // Anything else is a fault of the program, which no disk explains.
      if (!(error instanceof DeviceError)) throw error;
      this.owner.onFatal(error.message);
      return;
    }
    for (const say of tell) if (!this.isDead) say();
    this.writeNext();
  }

  /** What the log thread does with what came together. Returns what is to be told. */
  private carryOut(items: readonly Item[]): readonly (() => void)[] {
    const group = new Group(items, this);
    new GroupCommit(group, group, this.folder.state, this.folder.log).run();
    return group.tell;
  }

  /**
   * The node died. Of the group that was being written some sync points had succeeded; what waited
   * behind it is lost.
   */
  crash(): void {
    if (this.isDead) return;
    this.isDead = true;
    const { media } = this.disk;
    media.clearFaults();
    const { writing } = this;
    this.writing = [];
    this.queue = [];
    if (writing.length === 0) return;
    media.stepsLeft = this.world.between(0, STEPS_MAX);
    try {
      this.carryOut(writing);
    } catch (error) {
      // A cut of the log's beginning or a damaged record is no matter of the power.
      if (!(error instanceof PowerCut || error instanceof LogError)) throw error;
    }
    media.stepsLeft = Number.POSITIVE_INFINITY;
  }

  /** Carries out what was ordered, as the real one does, and ends. */
  close(): Promise<void> {
    if (!this.isDead) this.carryOut([...this.writing, ...this.queue, { kind: 'close' }]);
    this.isDead = true;
    return Promise.resolve();
  }
}

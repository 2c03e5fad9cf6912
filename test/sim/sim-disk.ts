/**
 * A simulated disk and the log on it: what is durable survives a crash, what is on its way may not.
 *
 * Owns: when a write ends, and how it can go wrong. What is written, in which order, and what is
 * believed at the next start is decided by the production files of src/io/log, which run on the
 * simulated media. Never: a real file. Used by: sim-cluster.ts. Passes the conformance suite of the
 * log on LMDB.
 */
import { Entry, type EntryKind } from '../../src/core/raft/message.js';
import { LogError } from '../../src/io/log/log-error.js';
import {
  OrderReader,
  orderBytes,
  packRecords,
  unpackEntries,
  writeOrder,
} from '../../src/io/log/protocol.js';
import { listSegments } from '../../src/io/log/segment-files.js';
import type { SegmentedLog } from '../../src/io/log/segmented-log.js';
import { StateStore } from '../../src/io/log/state-store.js';
import { openSegmentedLog } from '../../src/io/log/verify.js';
import { LOG_APPENDS_MAX, LOG_WINDOW_ENTRIES } from '../../src/limits.js';
import type { AppendOrder, LogEvents, LogPort, LogState } from '../../src/replica/ports.js';
import { Media, PowerCut, type StoredEnvironment } from './devices/media.js';
import type { World } from './world.js';

const SEGMENT_BYTES_MAX = 64 << 20;
const SILENCE_US_MAX = 20_000_000;
const HELD_POLL_US = 1_000;
/** Sync points that a group of orders can take before it is surely done. */
const SYNC_POINTS_MAX = 8;
/** Offsets in a stored record: term, kind, then the entry's data. */
const TERM_OFFSET = 8;
const KIND_OFFSET = 24;

/** What survives a crash. */
export class SimDisk {
  readonly media = new Media();
  /** How long a durable commit takes, µs, least and most. */
  fsyncUs: readonly [number, number] = [100, 500];
  /** While true nothing becomes durable; the node ends when it lasts too long. */
  isHeld = false;
  silenceUsMax = SILENCE_US_MAX;
  segmentBytesMax = SEGMENT_BYTES_MAX;
  readonly folder = `${this.media.root}/data`;

  readonly logFolder = `${this.folder}/log`;
  /** The environment in which a record was found last: the next one is mostly there, too. */
  private lastFound = '';

  /** The record of `index` as it is durable now; read past every production rule. */
  private storedRecord(index: number): Uint8Array | undefined {
    const { logFolder, lastFound, media } = this;
    const near = media.environments.get(lastFound)?.values.get(index);
    if (near !== undefined) return near;
    for (const [folder, stored] of media.environments) {
      const record = folder.startsWith(logFolder) ? stored.values.get(index) : undefined;
      if (record === undefined) continue;
      this.lastFound = folder;
      return record;
    }
    return undefined;
  }

  /** Term of the entry that is durable at `index`, 0 when none is. */
  storedTerm(index: number): number {
    const record = this.storedRecord(index);
    return record === undefined ? 0 : termIn(record);
  }

  /** The entry that is durable at `index`. */
  storedEntry(index: number): Entry | undefined {
    const record = this.storedRecord(index);
    if (record === undefined) return undefined;
    const kind = record[KIND_OFFSET] as EntryKind;
    return new Entry(index, termIn(record), kind, record.subarray(KIND_OFFSET + 1));
  }

  /** Flips one bit of what is stored. Returns where, '' when nothing is. */
  flipBit(world: World): string {
    const found: { place: string; stored: StoredEnvironment; key: number }[] = [];
    for (const [place, stored] of this.media.environments) {
      for (const key of stored.values.keys()) found.push({ place, stored, key });
    }
    const isState = world.chance(0.2);
    const kind = found.filter(({ place }) => place.endsWith('/state') === isState);
    const from = kind.length > 0 ? kind : found;
    if (from.length === 0) return '';
    const { place, stored, key } = from[world.prng.below(from.length)] as (typeof found)[number];
    const bytes = (stored.values.get(key) as Uint8Array).slice();
    const bit = world.prng.below(bytes.length * 8);
    bytes[bit >>> 3] = (bytes[bit >>> 3] as number) ^ (1 << (bit & 7));
    stored.values.set(key, bytes);
    return `bit ${bit} of key ${key} in ${place.slice(this.media.root.length)}`;
  }

  /** Damages more than a bit: a record lost or out of place, a file cut. '' when nothing fits. */
  damage(world: World): string {
    const segments = [...this.media.environments].filter(([place]) =>
      place.startsWith(this.logFolder),
    );
    const [place, stored] = segments[world.prng.below(Math.max(1, segments.length))] ?? [];
    if (place === undefined || stored === undefined) return '';
    const keys = [...stored.values.keys()].sort((left, right) => left - right);
    const where = place.slice(this.media.root.length);
    switch (world.prng.below(3)) {
      case 0: {
        stored.missingBytes = 1 + world.prng.below(8_192);
        return `${stored.missingBytes} bytes cut off ${where}`;
      }
      case 1: {
        // Not the last: a log that ends earlier cannot be told from one that never had it.
        const isNewest = segments.every(([other]) => other <= place);
        const last = isNewest ? keys.length - 1 : keys.length;
        if (last < 1) return '';
        const key = keys[world.prng.below(last)] as number;
        stored.values.delete(key);
        return `key ${key} lost in ${where}`;
      }
      default: {
        if (keys.length < 2) return '';
        const at = 1 + world.prng.below(keys.length - 1);
        const [before, key] = [keys[at - 1] as number, keys[at] as number];
        stored.values.set(key, (stored.values.get(before) as Uint8Array).slice());
        return `key ${key} has the record of ${before} in ${where}`;
      }
    }
  }
}

function termIn(record: Uint8Array): number {
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  return view.getUint32(TERM_OFFSET) * 2 ** 32 + view.getUint32(TERM_OFFSET + 4);
}

/** What a start found. */
export interface OpenedSimLog {
  readonly log: SimLog;
  readonly state: LogState;
  readonly diskId: Uint8Array;
}

interface Order {
  readonly bytes: Uint8Array;
  readonly appendId: number;
}

interface Read {
  readonly readId: number;
  readonly from: number;
  readonly to: number;
  readonly bytesMax: number;
}

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

/** Opens the log on `disk`. Throws LogError when what is there is not whole. */
export function openSimLog(world: World, disk: SimDisk, nodeId: number): OpenedSimLog {
  const { logFolder } = disk;
  const store = StateStore.open(disk.folder, nodeId, listSegments(logFolder).length > 0);
  const segmentBytesMax = disk.segmentBytesMax;
  const verified = openSegmentedLog(logFolder, segmentBytesMax, null, {
    onProgress: () => undefined,
  });
  const { log, termStarts, commitIndex } = verified;
  const { term, votedFor, diskId } = store.current;
  const { firstIndex, lastIndex } = log;
  const from = Math.max(firstIndex, lastIndex + 1 - LOG_WINDOW_ENTRIES);
  const tail = unpackEntries(readRecords(log, from, lastIndex, Number.POSITIVE_INFINITY));
  const hardState = { term, votedFor };
  const state = { hardState, firstIndex, lastIndex, termStarts, tail, commitIndex };
  return { log: new SimLog(world, disk, store, log), state, diskId };
}

function readRecords(log: SegmentedLog, from: number, to: number, bytesMax: number) {
  const records: Uint8Array[] = [];
  let bytes = 0;
  log.read(from, to, (_index, record) => {
    if (records.length > 0 && bytes + record.length > bytesMax) return false;
    records.push(record.slice());
    bytes += record.length;
    return true;
  });
  return packRecords(from, records);
}

export class SimLog implements LogPort {
  events: LogEvents | null = null;
  owner: SimLogOwner = NO_OWNER;
  private queue: (Order | Read)[] = [];
  private writing: readonly (Order | Read)[] = [];
  private writingSinceUs = 0;
  private isDead = false;
  private outstanding = 0;

  constructor(
    private readonly world: World,
    private readonly disk: SimDisk,
    private readonly store: StateStore,
    private readonly log: SegmentedLog,
  ) {}

  append(order: AppendOrder): void {
    this.outstanding += 1;
    if (this.outstanding > LOG_APPENDS_MAX) throw new Error('the log has too many orders');
    const bytes = new Uint8Array(orderBytes(order));
    writeOrder(bytes, new DataView(bytes.buffer), 0, order);
    this.queue.push({ bytes, appendId: order.appendId });
    this.writeNext();
  }

  read(readId: number, fromIndex: number, toIndex: number, bytesMax: number): void {
    this.queue.push({ readId, from: fromIndex, to: toIndex, bytesMax });
    this.writeNext();
  }

  /** Group commit: everything queued becomes durable together. */
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
    const group = this.writing;
    this.writing = [];
    const tell: (() => void)[] = [];
    try {
      this.carryOut(group, tell);
    } catch (error) {
      this.owner.onFatal(error instanceof Error ? error.message : String(error));
      return;
    }
    for (const say of tell) if (!this.isDead) say();
    this.writeNext();
  }

  /** What the log thread does with the orders and reads that came together. */
  private carryOut(group: readonly (Order | Read)[], tell: (() => void)[]): void {
    let last = 0;
    let orders = 0;
    let fromIndex = 0;
    const commit = (): void => {
      if (orders === 0) return;
      this.log.commit();
      if (fromIndex > 0) this.owner.onStored(fromIndex, this.log.lastIndex);
      const [appendId, count] = [last, orders];
      tell.push(() => {
        this.outstanding -= count;
        this.events?.onDurable(appendId);
      });
      orders = 0;
      fromIndex = 0;
    };
    for (const item of group) {
      if ('bytes' in item) {
        const order = new OrderReader(item.bytes);
        this.addOrder(order);
        last = order.appendId;
        orders += 1;
        if (order.count > 0) {
          fromIndex = fromIndex === 0 ? order.firstIndex : Math.min(fromIndex, order.firstIndex);
        }
        continue;
      }
      commit();
      const records = readRecords(this.log, item.from, item.to, item.bytesMax);
      tell.push(() => this.events?.onRead(item.readId, unpackEntries(records)));
    }
    commit();
  }

  private addOrder(order: OrderReader): void {
    if (order.hasHardState) this.store.saveHardState(order.term, order.votedFor);
    if (order.truncateFrom !== 0) this.log.truncate(order.truncateFrom);
    for (let i = 0; i < order.count; i += 1) {
      this.log.append(order.firstIndex + i, order.nextRecord());
    }
  }

  /**
   * The node died. Of the group that was being written some sync points had succeeded; what waited
   * behind it is lost.
   */
  crash(): void {
    if (this.isDead) return;
    this.isDead = true;
    const { media } = this.disk;
    media.nextFault = 'none';
    const group = this.writing;
    this.writing = [];
    this.queue = [];
    if (group.length === 0) return;
    media.syncsLeft = this.world.between(0, SYNC_POINTS_MAX);
    try {
      this.carryOut(group, []);
    } catch (error) {
      // A cut of the log's beginning or a damaged record is no matter of the power.
      if (!(error instanceof PowerCut || error instanceof LogError)) throw error;
    }
    media.syncsLeft = Number.POSITIVE_INFINITY;
  }

  /** Carries out what was ordered, as the real one does, and ends. */
  close(): Promise<void> {
    if (!this.isDead) this.carryOut([...this.writing, ...this.queue], []);
    this.isDead = true;
    return Promise.resolve();
  }
}

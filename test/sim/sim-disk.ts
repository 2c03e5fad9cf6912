/**
 * A simulated disk and the log on it: what is durable survives a crash, what is on its way may not.
 *
 * Owns: durable entries and hard state of one node. Never: real bytes on a real disk.
 * Used by: sim-cluster.ts. Passes the same conformance suite as the LMDB log.
 */
import type { HardState } from '../../src/core/raft/effects.js';
import type { Entry } from '../../src/core/raft/message.js';
import { LOG_APPENDS_MAX, LOG_WINDOW_ENTRIES } from '../../src/limits.js';
import type { AppendOrder, LogEvents, LogPort, LogState } from '../../src/replica/ports.js';
import type { World } from './world.js';

/** What survives a crash. */
export class SimDisk {
  hardState: HardState = { term: 0, votedFor: 0 };
  entries: Entry[] = [];
  commitIndex = 0;
  /** How long a durable commit takes, µs, least and most. */
  fsyncUs: readonly [number, number] = [100, 500];
  /** While true nothing becomes durable. */
  isHeld = false;

  state(): LogState {
    const termStarts: { index: number; term: number }[] = [];
    let term = 0;
    for (const entry of this.entries) {
      if (entry.term === term) continue;
      term = entry.term;
      termStarts.push({ index: entry.index, term });
    }
    return {
      hardState: this.hardState,
      firstIndex: 1,
      lastIndex: this.entries.length,
      termStarts,
      tail: this.entries.slice(-LOG_WINDOW_ENTRIES),
      commitIndex: this.commitIndex,
    };
  }

  write(order: AppendOrder): void {
    if (order.hardState !== null) this.hardState = order.hardState;
    if (order.truncateFrom !== 0) this.entries.length = order.truncateFrom - 1;
    for (const entry of order.entries) {
      if (entry.index !== this.entries.length + 1) throw new Error('the log has no holes');
      this.entries.push(entry);
    }
    this.commitIndex = Math.max(this.commitIndex, order.commitIndex);
  }
}

export class SimLog implements LogPort {
  private readonly queue: AppendOrder[] = [];
  private isWriting = false;
  private isDead = false;
  private outstanding = 0;
  events: LogEvents | null = null;

  constructor(
    private readonly world: World,
    private readonly disk: SimDisk,
  ) {}

  append(order: AppendOrder): void {
    this.outstanding += 1;
    if (this.outstanding > LOG_APPENDS_MAX) throw new Error('the log has too many orders');
    this.queue.push(order);
    this.writeNext();
  }

  /** Group commit: everything queued becomes durable together. */
  private writeNext(): void {
    if (this.isWriting || this.queue.length === 0 || this.isDead) return;
    this.isWriting = true;
    const orders = this.queue.splice(0);
    this.world.after(this.world.between(...this.disk.fsyncUs), () => this.finish(orders));
  }

  private finish(orders: readonly AppendOrder[]): void {
    if (this.isDead) return;
    if (this.disk.isHeld) {
      this.world.after(1_000, () => this.finish(orders));
      return;
    }
    for (const order of orders) this.disk.write(order);
    this.isWriting = false;
    this.outstanding -= orders.length;
    const last = orders[orders.length - 1] as AppendOrder;
    this.events?.onDurable(last.appendId);
    this.writeNext();
  }

  read(readId: number, fromIndex: number, toIndex: number, bytesMax: number): void {
    this.world.after(this.world.between(20, 200), () => {
      if (this.isDead) return;
      const entries: Entry[] = [];
      let bytes = 0;
      for (let index = fromIndex; index <= toIndex; index += 1) {
        const entry = this.disk.entries[index - 1];
        if (entry === undefined || (entries.length > 0 && bytes >= bytesMax)) break;
        entries.push(entry);
        bytes += entry.data.length;
      }
      this.events?.onRead(readId, entries);
    });
  }

  /**
   * The node died: of what was on its way a prefix may have reached the disk, whole orders only.
   */
  crash(): void {
    this.isDead = true;
    if (this.disk.isHeld) return;
    const survivors = this.world.between(0, this.queue.length);
    if (!this.isWriting) for (const order of this.queue.slice(0, survivors)) this.disk.write(order);
  }

  close(): Promise<void> {
    this.isDead = true;
    return Promise.resolve();
  }
}

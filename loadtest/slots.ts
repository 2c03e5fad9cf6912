/**
 * The closed loop: each slot acquires a lock of its own, releases it, and begins again.
 *
 * Owns: one session a slot, its sequence, what it holds, the latency of each operation. Operations
 * are real: distinct names, request ids, checked replies; a wrong or missing reply is counted and
 * makes the figure invalid. Never: retries. Used by: main.ts.
 */
import type { Histogram } from 'hdr-histogram-js';
import { CommandKind } from '../src/core/locks/command.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import type { ReplyReader } from '../src/wire/reply-reader.js';
import { encodeAcquire, encodeRelease } from '../src/wire/request.js';
import { RawConnection } from './raw-connection.js';

const DEADLINE_MS = 10_000;
const LEASE_TTL_MS = 30_000;
const SESSION_TTL_MS = 600_000;
const HELLO = 1;
const US_PER_MS = 1_000;

class Slot {
  session = new Uint8Array(16);
  readonly lease = new Uint8Array(16);
  isHolding = false;
  sequence = 0;
  /** performance.now() of its request, ms. */
  sentMs = 0;

  constructor(
    /** Unique among all slots. */
    readonly index: number,
    /** Place among the slots of its connection: its correlation, less 2. */
    readonly at: number,
  ) {}
}

export interface SlotOptions {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly inflight: number;
  readonly names: number;
}

export class SlotLoad {
  operations = 0;
  readonly errors = new Map<number, number>();
  isRecording = false;
  private readonly lanes: Lane[] = [];
  private readonly names: Uint8Array[] = [];
  private nextName = 0;

  constructor(
    private readonly options: SlotOptions,
    readonly latencyUs: Histogram,
  ) {
    for (let i = 0; i < options.names; i += 1) this.names.push(Buffer.from(`load/${i}`));
  }

  /** Opens connections and sessions; resolves when every slot may send. */
  async open(): Promise<void> {
    const { connections, inflight } = this.options;
    const opened: Promise<void>[] = [];
    for (let c = 0; c < connections; c += 1) {
      const slots: Slot[] = [];
      for (let i = c; i < inflight; i += connections) slots.push(new Slot(i, slots.length));
      const lane = new Lane(this.options, slots, this);
      this.lanes.push(lane);
      opened.push(lane.opened);
    }
    await Promise.all(opened);
  }

  start(): void {
    for (const lane of this.lanes) lane.start();
  }

  /** Sends nothing more; resolves when every request has been answered. */
  async stop(): Promise<void> {
    await Promise.all(this.lanes.map((lane) => lane.stop()));
    for (const lane of this.lanes) lane.close();
  }

  get bytes(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.bytes, 0);
  }

  /** Names go round: an acquire never meets the name of another slot's lease. */
  takeName(): Uint8Array {
    this.nextName = (this.nextName + 1) % this.names.length;
    return this.names[this.nextName] as Uint8Array;
  }

  note(code: number, latencyUs: number): void {
    if (code !== OutcomeCode.Ok) this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
    if (!this.isRecording) return;
    this.operations += 1;
    this.latencyUs.recordValue(latencyUs);
  }
}

class Lane {
  readonly opened: Promise<void>;
  private readonly connection: RawConnection;
  private resolveOpened: () => void = () => undefined;
  private resolveStopped: (() => void) | null = null;
  private waiting = 0;
  private greeted = 0;

  constructor(
    options: SlotOptions,
    private readonly slots: readonly Slot[],
    private readonly load: SlotLoad,
  ) {
    this.opened = new Promise((resolve) => {
      this.resolveOpened = resolve;
    });
    this.connection = new RawConnection(options.host, options.port, {
      onReply: (reader, bytes) => this.onReply(reader, bytes),
      onClose: () => undefined,
    });
  }

  get bytes(): number {
    return this.connection.bytesSent + this.connection.bytesReceived;
  }

  start(): void {
    for (const slot of this.slots) this.send(slot);
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.resolveStopped = resolve;
      if (this.waiting === 0) resolve();
    });
  }

  close(): void {
    this.connection.close();
  }

  private onReply(reader: ReplyReader, bytes: Uint8Array): void {
    const { correlation, code } = reader;
    if (correlation === HELLO) this.openSessions();
    else if (correlation === 0) this.load.note(code, 0);
    else {
      const slot = this.slots[correlation - 2] as Slot;
      if (this.greeted < this.slots.length) this.onOpened(slot, reader, bytes);
      else this.onAnswer(slot, reader, bytes);
    }
  }

  private openSessions(): void {
    for (const [at, slot] of this.slots.entries()) {
      this.connection.begin();
      const id = `load-${process.pid}-${Date.now()}-${slot.index}`;
      const operation = [CommandKind.SessionOpen, id, null, null, null, SESSION_TTL_MS];
      this.connection.send(at + 2, DEADLINE_MS, operation);
      this.connection.end();
    }
  }

  private onOpened(slot: Slot, reader: ReplyReader, bytes: Uint8Array): void {
    if (reader.code !== OutcomeCode.Ok) throw new Error(`session open answered ${reader.code}`);
    slot.session.set(bytes.subarray(reader.fieldsStart + 2, reader.fieldsStart + 18));
    this.greeted += 1;
    if (this.greeted === this.slots.length) this.resolveOpened();
  }

  private send(slot: Slot): void {
    const out = this.connection.begin();
    slot.sequence += 1;
    const correlation = slot.at + 2;
    const { session, sequence } = slot;
    const mark = sequence - 1;
    if (slot.isHolding) {
      encodeRelease(out, correlation, DEADLINE_MS, session, sequence, mark, slot.lease);
    } else {
      const name = this.load.takeName();
      encodeAcquire(out, correlation, DEADLINE_MS, session, sequence, mark, name, LEASE_TTL_MS, 0);
    }
    this.connection.end();
    this.waiting += 1;
    slot.sentMs = performance.now();
  }

  private onAnswer(slot: Slot, reader: ReplyReader, bytes: Uint8Array): void {
    this.waiting -= 1;
    const latencyUs = (performance.now() - slot.sentMs) * US_PER_MS;
    this.load.note(reader.code, Math.max(1, Math.round(latencyUs)));
    if (reader.code === OutcomeCode.Ok) {
      if (!slot.isHolding) {
        for (let i = 0; i < 16; i += 1) {
          slot.lease[i] = bytes[reader.fieldsStart + 2 + i] as number;
        }
      }
      slot.isHolding = !slot.isHolding;
    }
    if (this.resolveStopped === null) this.send(slot);
    else if (this.waiting === 0) this.resolveStopped();
  }
}

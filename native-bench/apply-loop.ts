/**
 * The closed loop of the load generator without disk, network or clock: encode, decode, apply.
 *
 * Owns: seats with a session each that acquire and release in turn, one entry of a fixed number of
 * operations at a time, by the codecs and the lock machine of the product. Every answer is looked
 * at. Never: a measurement. Used by: apply.ts, the gate's check that nothing got dearer.
 */
import { Command, CommandKind } from '../src/core/locks/command.js';
import { LockMachine } from '../src/core/locks/lock-machine.js';
import { Outcome, OutcomeCode } from '../src/core/locks/outcome.js';
import { defaultSettings } from '../src/core/locks/settings.js';
import { ENTROPY_BYTES, EntryReader, EntryWriter } from '../src/wire/entry.js';
import { beginFrame, endFrame, FRAME_HEADER_BYTES, FrameReader } from '../src/wire/frame.js';
import { decodeOperation } from '../src/wire/operation.js';
import { OutBuffer } from '../src/wire/out-buffer.js';
import { encodeOutcome } from '../src/wire/reply.js';
import { encodeAcquire, encodeRelease, encodeRequest } from '../src/wire/request.js';

const PRINCIPAL = 1;
const STAMP_STEP_MS = 5;
const TTL_MS = 30_000;
const SESSION_TTL_MS = 3_600_000;
const DEADLINE_MS = 10_000;

class Seat {
  readonly session = new Uint8Array(16);
  readonly lease = new Uint8Array(16);
  isHolding = false;
  sequence = 0;
}

function putId(target: Uint8Array, outcome: Outcome): void {
  putWord(target, 0, outcome.id0);
  putWord(target, 4, outcome.id1);
  putWord(target, 8, outcome.id2);
  putWord(target, 12, outcome.id3);
}

function putWord(target: Uint8Array, at: number, word: number): void {
  target[at] = word >>> 24;
  target[at + 1] = word >>> 16;
  target[at + 2] = word >>> 8;
  target[at + 3] = word;
}

export class ApplyLoop {
  readonly machine = new LockMachine(defaultSettings(), new Uint32Array(4).fill(7));
  private readonly seats: Seat[] = [];
  private readonly names: Uint8Array[] = [];
  private readonly requests = new OutBuffer();
  private readonly replies = new OutBuffer();
  private readonly frames = new FrameReader();
  private readonly writer = new EntryWriter();
  private readonly entries = new EntryReader();
  private readonly command = new Command();
  private readonly outcome = new Outcome();
  private readonly entropy = new Uint8Array(ENTROPY_BYTES);
  private index = 0;
  private nextName = 0;
  private nextSeat = 0;
  private entry: Uint8Array = new Uint8Array(0);

  /** @param seats at least `operations`, so that no seat is twice in one entry */
  constructor(
    seats: number,
    names: number,
    private readonly operations: number,
  ) {
    for (let i = 0; i < seats; i += 1) this.seats.push(new Seat());
    for (let i = 0; i < names; i += 1) this.names.push(Buffer.from(`load/${i}`));
    this.writer.open();
    for (let i = 0; i < seats; i += operations) this.openSessions(i, operations);
  }

  /** The client's part of the next entry: requests of the seats whose turn it is, in one frame. */
  encode(): void {
    const { requests } = this;
    requests.length = 0;
    const position = beginFrame(requests);
    for (let i = 0; i < this.operations; i += 1) {
      const seat = this.seats[(this.nextSeat + i) % this.seats.length] as Seat;
      this.encodeNext(seat, i + 1);
    }
    endFrame(requests, position, this.operations);
  }

  /** The leader's part before the log: the frame's requests, validated and copied into an entry. */
  admit(): void {
    const { frames, requests, writer, command } = this;
    const { bytes } = requests;
    frames.open(bytes, FRAME_HEADER_BYTES, requests.length);
    while (frames.next()) {
      const { operationStart, operationEnd } = frames;
      if (decodeOperation(bytes, operationStart, operationEnd, command) !== 0) {
        throw new Error('a request was refused');
      }
      writer.addOperation(PRINCIPAL, 1, bytes, operationStart, operationEnd);
    }
    this.entropy[0] = this.index & 0xff;
    this.entropy[1] = (this.index >> 8) & 0xff;
    this.entry = writer.close(this.index * STAMP_STEP_MS, 1, this.entropy);
  }

  /** What every replica does: decode and apply; the leader encodes a reply to each as well. */
  apply(): void {
    this.applyEntry(true);
    this.nextSeat = (this.nextSeat + this.operations) % this.seats.length;
  }

  /** encode, admit and apply: the whole of one entry. */
  step(): void {
    this.encode();
    this.admit();
    this.apply();
  }

  /** Bytes of the last entry and of what was sent for it, both ways, frames included. */
  get entryBytes(): number {
    return this.entry.length;
  }

  get requestBytes(): number {
    return this.requests.length;
  }

  get replyBytes(): number {
    return this.replies.length;
  }

  private encodeNext(seat: Seat, correlation: number): void {
    const { requests } = this;
    const { session, lease } = seat;
    seat.sequence += 1;
    const mark = seat.sequence - 1;
    if (seat.isHolding) {
      encodeRelease(requests, correlation, DEADLINE_MS, session, seat.sequence, mark, lease);
      return;
    }
    const name = this.names[this.nextName] as Uint8Array;
    this.nextName = this.nextName + 1 === this.names.length ? 0 : this.nextName + 1;
    encodeAcquire(
      requests,
      correlation,
      DEADLINE_MS,
      session,
      seat.sequence,
      mark,
      name,
      TTL_MS,
      0,
    );
  }

  private applyEntry(isTurn: boolean): void {
    const { machine, entries, command, outcome, replies } = this;
    this.index += 1;
    if (!entries.open(this.entry)) throw new Error('an entry that is none');
    machine.beginEntry(
      this.index,
      entries.stampMs,
      entries.entropy0,
      entries.entropy1,
      entries.entropy2,
      entries.entropy3,
    );
    replies.length = 0;
    let position = 0;
    while (entries.next()) {
      decodeOperation(this.entry, entries.start, entries.end, command);
      command.principal = entries.principal;
      machine.apply(command, outcome);
      if (outcome.code !== OutcomeCode.Ok) throw new Error(`answered ${outcome.code}`);
      encodeOutcome(replies, position + 1, outcome);
      const seat = this.seats[(this.nextSeat + position) % this.seats.length] as Seat;
      if (isTurn) {
        if (!seat.isHolding) putId(seat.lease, outcome);
        seat.isHolding = !seat.isHolding;
      } else {
        putId(seat.session, outcome);
      }
      position += 1;
    }
    machine.endEntry();
  }

  private openSessions(from: number, count: number): void {
    const { requests } = this;
    const end = Math.min(from + count, this.seats.length);
    requests.length = 0;
    const position = beginFrame(requests);
    for (let i = from; i < end; i += 1) {
      const open = [CommandKind.SessionOpen, `open-${i}`, null, null, null, SESSION_TTL_MS];
      encodeRequest(requests, i + 1, DEADLINE_MS, open);
    }
    endFrame(requests, position, end - from);
    this.admit();
    this.nextSeat = from;
    this.applyEntry(false);
    this.nextSeat = 0;
  }
}

/**
 * Connections, sessions and seats of one load, and the checks that every reply has to pass.
 *
 * Owns: who may send (a seat has one request out at a time), the sequences of the sessions, what
 * each seat holds. A load says what a seat does next and gets its answers. A seat is made once;
 * nothing is made for an operation. Never: retries; which code is good, meter.ts knows.
 * Used by: every load but failover, whose connections come and go.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import { integerBytes, unsignedAt } from '../src/wire/msgpack-reader.js';
import type { PackValue } from '../src/wire/msgpack-writer.js';
import type { ReplyReader } from '../src/wire/reply-reader.js';
import { encodeAcquire, encodeRelease, encodeRenew } from '../src/wire/request.js';
import type { Meter } from './meter.js';
import { HELLO, RawConnection } from './raw-connection.js';

const ID_BYTES = 16;
/** A packed id: bin8 header, then its bytes. */
const PACKED_ID_BYTES = ID_BYTES + 2;
/** Correlations: 1 is hello, seats follow, sessions from here on. */
const FIRST_SEAT = 2;
const FIRST_SESSION = 1 << 24;
const OPEN_MS_MAX = 60_000;
/** Fields of a good reply. */
const GRANT_FIELDS = 5;
const RELEASE_FIELDS = 1;
const RENEW_FIELDS = 3;

export interface FleetOptions {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  /** Seats over all connections: requests that can be out at once. */
  readonly seats: number;
  /** Sessions over all connections; seat i belongs to session i modulo this. */
  readonly sessions: number;
  readonly sessionTtlMs: number;
  /** Time that a request has, ms. */
  readonly deadlineMs: number;
}

/** What a load does with an answer; the seat is free again. */
export interface FleetHandler {
  /** Any final answer; `code` is Ok when the operation was carried out. */
  onAnswer(seat: Seat, kind: number, code: number): void;
  /** An acquire stands in its queue, at seat.place: the final answer comes later. */
  onQueued(seat: Seat): void;
}

export class Session {
  readonly id = new Uint8Array(ID_BYTES);
  sequence = 0;
  /** Every sequence up to here has been answered: replies of one connection come in order. */
  answered = 0;
}

/** One place from which requests are sent, one at a time. */
export class Seat {
  readonly lease = new Uint8Array(ID_BYTES);
  token = 0;
  isHolding = false;
  /** The place of its last acquire in a queue, 0 when it was decided at once. */
  place = 0;
  /** Command of the request that is out, 0 for none. */
  kind = 0;
  sequence = 0;
  /** Latency counts from here, performance.now(): the sending, or the intended moment. */
  beganMs = 0;
  /** Cluster time of the entry that answered last, and the deadline it gave, ms. */
  entryMs = 0;
  deadlineMs = 0;

  constructor(
    readonly index: number,
    readonly lane: Lane,
    /** Its correlation on its connection. */
    readonly correlation: number,
    readonly session: Session,
  ) {}
}

export class Fleet {
  readonly seats: Seat[] = [];
  readonly sessions: Session[] = [];
  /** Requests that are out. */
  waiting = 0;
  private readonly lanes: Lane[] = [];
  private onIdle: (() => void) | null = null;

  constructor(
    readonly options: FleetOptions,
    readonly meter: Meter,
    readonly handler: FleetHandler,
  ) {}

  /** Connects and opens every session; resolves when every seat may send. */
  async open(): Promise<void> {
    const { connections, seats, sessions } = this.options;
    for (let c = 0; c < connections; c += 1) this.lanes.push(new Lane(this, c));
    for (let s = 0; s < sessions; s += 1) {
      const session = new Session();
      this.sessions.push(session);
      (this.lanes[s % connections] as Lane).sessions.push(session);
    }
    for (let index = 0; index < seats; index += 1) {
      const at = index % sessions;
      const lane = this.lanes[at % connections] as Lane;
      const correlation = FIRST_SEAT + lane.seats.length;
      const seat = new Seat(index, lane, correlation, this.sessions[at] as Session);
      this.seats.push(seat);
      lane.seats.push(seat);
    }
    await Promise.all(this.lanes.map((lane) => lane.open()));
  }

  get bytes(): number {
    let sum = 0;
    for (const lane of this.lanes) sum += lane.bytes;
    return sum;
  }

  /** Resolves when nothing is out any more, or after `timeoutMs`: what is out then is missing. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.waiting > 0) {
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, timeoutMs);
        this.onIdle = () => {
          clearTimeout(late);
          resolve();
        };
      });
      this.onIdle = null;
    }
    this.meter.missing += this.waiting;
  }

  /** Closes every session, which releases its leases, then every connection. */
  async close(): Promise<void> {
    await Promise.all(this.lanes.map((lane) => lane.closeSessions()));
    for (const lane of this.lanes) lane.connection.close();
  }

  onSent(): void {
    this.waiting += 1;
  }

  onDone(): void {
    this.waiting -= 1;
  }

  /** After the load has seen an answer, and may have sent something new. */
  tellIdle(): void {
    if (this.waiting === 0 && this.onIdle !== null) this.onIdle();
  }
}

/** One connection and the seats that send on it. */
export class Lane {
  readonly connection: RawConnection;
  readonly seats: Seat[] = [];
  readonly sessions: Session[] = [];
  private readonly meter: Meter;
  private lastToken = 0;
  /** Sessions of which the answer is due, and who waits for them. */
  private due = 0;
  private onSessions: (() => void) | null = null;
  private readonly greeted: Promise<void>;
  private onGreeted: () => void = () => undefined;
  private isClosing = false;

  constructor(
    private readonly fleet: Fleet,
    readonly number: number,
  ) {
    this.meter = fleet.meter;
    this.greeted = new Promise((resolve) => {
      this.onGreeted = resolve;
    });
    const { host, port } = fleet.options;
    this.connection = new RawConnection(host, port, {
      onReply: (reader, bytes) => this.onReply(reader, bytes),
      onClose: () => this.onClose(),
    });
  }

  get bytes(): number {
    return this.connection.bytesSent + this.connection.bytesReceived;
  }

  async open(): Promise<void> {
    await within(this.greeted, OPEN_MS_MAX, 'hello');
    const ttlMs = this.fleet.options.sessionTtlMs;
    const stem = `load-${process.pid}-${Date.now()}-${this.number}`;
    await this.forSessions((at) => {
      this.meter.onSent(CommandKind.SessionOpen);
      return [CommandKind.SessionOpen, `${stem}-${at}`, null, null, null, ttlMs];
    });
  }

  async closeSessions(): Promise<void> {
    this.isClosing = true;
    const { sessions } = this;
    await this.forSessions((at) => {
      this.meter.onSent(CommandKind.SessionClose);
      return [CommandKind.SessionClose, null, (sessions[at] as Session).id];
    });
  }

  /** Acquires `name` for a seat that has nothing out. `beganMs`: see Seat. */
  acquire(seat: Seat, name: Uint8Array, ttlMs: number, waitMs: number, beganMs: number): void {
    const { session, correlation } = seat;
    const out = this.connection.begin();
    this.begin(seat, CommandKind.Acquire, beganMs);
    seat.place = 0;
    session.sequence += 1;
    seat.sequence = session.sequence;
    const { deadlineMs } = this.fleet.options;
    const mark = session.answered;
    encodeAcquire(
      out,
      correlation,
      deadlineMs,
      session.id,
      seat.sequence,
      mark,
      name,
      ttlMs,
      waitMs,
    );
    this.connection.end();
  }

  /** Releases what the seat holds. */
  release(seat: Seat, beganMs: number): void {
    const { session, correlation } = seat;
    const out = this.connection.begin();
    this.begin(seat, CommandKind.Release, beganMs);
    session.sequence += 1;
    seat.sequence = session.sequence;
    const { deadlineMs } = this.fleet.options;
    const mark = session.answered;
    encodeRelease(out, correlation, deadlineMs, session.id, seat.sequence, mark, seat.lease);
    this.connection.end();
  }

  /** Renews what the seat holds, by its lease id. */
  renew(seat: Seat, beganMs: number): void {
    const out = this.connection.begin();
    this.begin(seat, CommandKind.Renew, beganMs);
    encodeRenew(out, seat.correlation, this.fleet.options.deadlineMs, seat.lease, -1);
    this.connection.end();
  }

  private begin(seat: Seat, kind: number, beganMs: number): void {
    seat.kind = kind;
    seat.beganMs = beganMs;
    this.meter.onSent(kind);
    this.fleet.onSent();
  }

  private onReply(reader: ReplyReader, bytes: Uint8Array): void {
    const { correlation } = reader;
    if (correlation >= FIRST_SESSION) this.onSession(reader, bytes);
    else if (correlation === HELLO) this.onGreeted();
    else if (correlation === 0) this.meter.onWrong(`a notice with code ${reader.code}`);
    else this.onSeat(reader, bytes);
  }

  private onSeat(reader: ReplyReader, bytes: Uint8Array): void {
    const seat = this.seats[reader.correlation - FIRST_SEAT];
    if (seat === undefined || seat.kind === 0) {
      this.meter.onWrong(`a reply to nothing, correlation ${reader.correlation}`);
      return;
    }
    const { handler } = this.fleet;
    if (reader.code === OutcomeCode.Queued) {
      this.onPlace(seat, reader, bytes);
      handler.onQueued(seat);
      return;
    }
    const { kind } = seat;
    const latencyMs = performance.now() - seat.beganMs;
    seat.kind = 0;
    if (kind !== CommandKind.Renew && seat.session.answered < seat.sequence) {
      seat.session.answered = seat.sequence;
    }
    if (reader.code === OutcomeCode.Ok) this.onGood(seat, kind, reader, bytes);
    this.meter.onAnswer(kind, reader.code, latencyMs);
    this.fleet.onDone();
    handler.onAnswer(seat, kind, reader.code);
    this.fleet.tellIdle();
  }

  private onPlace(seat: Seat, reader: ReplyReader, bytes: Uint8Array): void {
    const place = unsignedAt(bytes, reader.fieldsStart, reader.fieldsEnd);
    if (seat.kind !== CommandKind.Acquire || seat.place !== 0 || place <= 0) {
      this.meter.onWrong(`queued at ${place}, after ${seat.place}`);
    }
    seat.place = place;
  }

  /** Looks at every field of a good reply. */
  private onGood(seat: Seat, kind: number, reader: ReplyReader, bytes: Uint8Array): void {
    if (reader.isReplay) this.meter.onWrong('a reply that says replay to a first request');
    if (reader.clusterTimeMs < 0) this.meter.onWrong('a reply without cluster time');
    seat.entryMs = reader.clusterTimeMs;
    if (kind === CommandKind.Acquire) this.onGranted(seat, reader, bytes);
    else if (kind === CommandKind.Release) this.onReleased(seat, reader, bytes);
    else this.onRenewed(seat, reader, bytes);
  }

  private onGranted(seat: Seat, reader: ReplyReader, bytes: Uint8Array): void {
    const { lease } = seat;
    let at = reader.fieldsStart + 2;
    for (let i = 0; i < ID_BYTES; i += 1) lease[i] = bytes[at + i] as number;
    at = reader.fieldsStart + PACKED_ID_BYTES;
    const token = unsignedAt(bytes, at, reader.fieldsEnd);
    at += integerBytes(bytes[at] as number);
    const revision = unsignedAt(bytes, at, reader.fieldsEnd);
    at += integerBytes(bytes[at] as number);
    const deadline = unsignedAt(bytes, at, reader.fieldsEnd);
    if (reader.fieldCount !== GRANT_FIELDS || revision !== token || deadline <= seat.entryMs) {
      this.meter.onWrong(`a grant of ${reader.fieldCount} fields, token ${token}`);
    }
    if (token <= this.lastToken) this.meter.onWrong(`token ${token} after ${this.lastToken}`);
    if (seat.isHolding) this.meter.onWrong('a grant to a seat that holds');
    this.lastToken = token;
    seat.token = token;
    seat.deadlineMs = deadline;
    seat.isHolding = true;
  }

  private onReleased(seat: Seat, reader: ReplyReader, bytes: Uint8Array): void {
    const revision = unsignedAt(bytes, reader.fieldsStart, reader.fieldsEnd);
    if (reader.fieldCount !== RELEASE_FIELDS || revision <= seat.token) {
      this.meter.onWrong(`a release at revision ${revision} of token ${seat.token}`);
    }
    seat.isHolding = false;
  }

  private onRenewed(seat: Seat, reader: ReplyReader, bytes: Uint8Array): void {
    let at = reader.fieldsStart;
    const deadline = unsignedAt(bytes, at, reader.fieldsEnd);
    at += integerBytes(bytes[at] as number);
    at += integerBytes(bytes[at] as number);
    const token = unsignedAt(bytes, at, reader.fieldsEnd);
    if (reader.fieldCount !== RENEW_FIELDS || token !== seat.token || deadline < seat.deadlineMs) {
      this.meter.onWrong(`a renewal with token ${token} of token ${seat.token}`);
    }
    seat.deadlineMs = deadline;
  }

  /** Sends one operation for each session; resolves when all are answered. */
  private async forSessions(operation: (at: number) => PackValue[]): Promise<void> {
    const { sessions, connection } = this;
    if (sessions.length === 0) return;
    this.due = sessions.length;
    const done = new Promise<void>((resolve) => {
      this.onSessions = resolve;
    });
    for (let at = 0; at < sessions.length; at += 1) {
      connection.begin();
      connection.send(FIRST_SESSION + at, OPEN_MS_MAX, operation(at));
      connection.end();
    }
    await within(done, OPEN_MS_MAX, `${sessions.length} sessions`);
  }

  private onSession(reader: ReplyReader, bytes: Uint8Array): void {
    const { isClosing, meter } = this;
    const kind = isClosing ? CommandKind.SessionClose : CommandKind.SessionOpen;
    meter.onAnswer(kind, reader.code, 0);
    if (reader.code !== OutcomeCode.Ok) meter.onWrong(`a session answered ${reader.code}`);
    else if (!isClosing) {
      const session = this.sessions[reader.correlation - FIRST_SESSION] as Session;
      const at = reader.fieldsStart + 2;
      session.id.set(bytes.subarray(at, at + ID_BYTES));
    }
    this.due -= 1;
    if (this.due === 0) this.onSessions?.();
  }

  private onClose(): void {
    if (!this.isClosing) this.meter.onWrong('the node closed a connection');
  }
}

/** The promise, or an error that names what did not come in time. */
async function within<T>(promise: Promise<T>, timeoutMs: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const refuse = (): void => reject(new Error(`no answer to ${what} in ${timeoutMs} ms`));
    timer = setTimeout(refuse, timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

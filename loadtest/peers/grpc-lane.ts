/**
 * Unary gRPC calls over one HTTP/2 connection, as cheap as a load generator needs them.
 *
 * Owns: streams, flow control of what it sends, the frames it reads. Header blocks are made once,
 * without the dynamic table, and those that come are not decoded: a call that failed has no
 * message, and is told as such. Never: retries, large messages. Used by: etcd.ts.
 */
import { INVALID } from '../../src/wire/msgpack-reader.js';
import { Pipe } from './pipe.js';

const FrameType = { Data: 0, Headers: 1, Reset: 3, Settings: 4, Ping: 6, GoAway: 7, Window: 8 };
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const HEADER_BYTES = 9;
const FRAME_BYTES_MAX = 1 << 20;
/** Of gRPC: u8 compressed, u32 length. */
const MESSAGE_PREFIX_BYTES = 5;
const WINDOW_INITIAL = 65_535;
const WINDOW_OWN = 1 << 30;
/** What was received is given back to the sender in steps of this. */
const WINDOW_STEP = 1 << 24;
/** Streams that may be open at once; a power of two. */
const STREAMS_MAX = 1 << 16;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** Settings of ours: no dynamic table (1), no push (2), streams as wide as need be (4). */
const SETTINGS: readonly (readonly [number, number])[] = [
  [1, 0],
  [2, 0],
  [4, 1 << 24],
];

function frameBytesAt(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < 3) return 0;
  const high = ((bytes[start] as number) << 16) | ((bytes[start + 1] as number) << 8);
  const length = high | (bytes[start + 2] as number);
  return length > FRAME_BYTES_MAX ? INVALID : HEADER_BYTES + length;
}

function wordAt(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16);
  return high | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number);
}

/** Literals without indexing; names by their place in the static table (RFC 7541, appendix A). */
function headerBlock(path: string, authority: string): Uint8Array {
  const text = (value: string): number[] => [value.length, ...Buffer.from(value)];
  return Uint8Array.from([
    0x83, // :method POST
    0x86, // :scheme http
    0x04, // :path
    ...text(path),
    0x01, // :authority
    ...text(authority),
    0x0f, // content-type, 31
    0x10,
    ...text('application/grpc'),
    0x00,
    ...text('te'),
    ...text('trailers'),
  ]);
}

/** Who made a call hears of it: `message` at start … end, or start -1 when it failed. */
export type OnCall = (tag: number, bytes: Uint8Array, start: number, end: number) => void;

export class GrpcLane {
  private nextStream = 1;
  private window = WINDOW_INITIAL;
  private received = 0;
  /** By stream: who called, and whether a message came. */
  private readonly tags = new Int32Array(STREAMS_MAX);
  private readonly hasMessage = new Uint8Array(STREAMS_MAX);
  /** Calls that wait for the server's window: their parts, oldest first. */
  private readonly held: { block: Uint8Array; message: Uint8Array; tag: number }[] = [];
  private pipe: Pipe | null = null;

  private constructor(
    private readonly authority: string,
    private readonly onCall: OnCall,
  ) {}

  static async open(port: number, onCall: OnCall): Promise<GrpcLane> {
    const lane = new GrpcLane(`127.0.0.1:${port}`, onCall);
    lane.pipe = await Pipe.open(port, frameBytesAt, (bytes, start, end) =>
      lane.onFrame(bytes, start, end),
    );
    lane.greet();
    return lane;
  }

  /** What call() wants for a method such as /etcdserverpb.KV/Txn; make it once. */
  block(method: string): Uint8Array {
    return headerBlock(method, this.authority);
  }

  /** Calls; `message` is copied. `tag` comes back with the answer. */
  call(block: Uint8Array, message: Uint8Array, length: number, tag: number): void {
    const cost = MESSAGE_PREFIX_BYTES + length;
    if (this.held.length > 0 || cost > this.window) {
      this.held.push({ block, message: message.slice(0, length), tag });
      return;
    }
    this.window -= cost;
    this.write(block, message, length, tag);
  }

  close(): void {
    this.pipe?.close();
  }

  private write(block: Uint8Array, message: Uint8Array, length: number, tag: number): void {
    const stream = this.nextStream;
    this.nextStream += 2;
    const place = (stream >> 1) & (STREAMS_MAX - 1);
    this.tags[place] = tag;
    this.hasMessage[place] = 0;
    this.putFrame(FrameType.Headers, END_HEADERS, stream, block, block.length);
    const { out } = this.pipe as Pipe;
    this.putHead(MESSAGE_PREFIX_BYTES + length, FrameType.Data, END_STREAM, stream);
    out.reserve(MESSAGE_PREFIX_BYTES + length);
    out.bytes[out.length] = 0;
    out.view.setUint32(out.length + 1, length);
    for (let i = 0; i < length; i += 1) {
      out.bytes[out.length + MESSAGE_PREFIX_BYTES + i] = message[i] as number;
    }
    out.length += MESSAGE_PREFIX_BYTES + length;
    (this.pipe as Pipe).touch();
  }

  private greet(): void {
    const { out } = this.pipe as Pipe;
    out.reserve(PREFACE.length);
    out.bytes.set(PREFACE, out.length);
    out.length += PREFACE.length;
    const settings = Buffer.alloc(6 * SETTINGS.length);
    for (const [at, [name, value]] of SETTINGS.entries()) {
      settings.writeUInt16BE(name, 6 * at);
      settings.writeUInt32BE(value, 6 * at + 2);
    }
    this.putFrame(FrameType.Settings, 0, 0, settings, settings.length);
    this.putWindow(WINDOW_OWN - WINDOW_INITIAL);
  }

  private putWindow(increment: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(increment);
    this.putFrame(FrameType.Window, 0, 0, bytes, 4);
    (this.pipe as Pipe).touch();
  }

  private putHead(length: number, type: number, flags: number, stream: number): void {
    const { out } = this.pipe as Pipe;
    out.reserve(HEADER_BYTES);
    const { bytes } = out;
    const at = out.length;
    bytes[at] = length >> 16;
    bytes[at + 1] = length >> 8;
    bytes[at + 2] = length;
    bytes[at + 3] = type;
    bytes[at + 4] = flags;
    out.view.setUint32(at + 5, stream);
    out.length = at + HEADER_BYTES;
  }

  private putFrame(
    type: number,
    flags: number,
    stream: number,
    payload: Uint8Array,
    length: number,
  ): void {
    this.putHead(length, type, flags, stream);
    const { out } = this.pipe as Pipe;
    out.reserve(length);
    for (let i = 0; i < length; i += 1) out.bytes[out.length + i] = payload[i] as number;
    out.length += length;
    (this.pipe as Pipe).touch();
  }

  private onFrame(bytes: Uint8Array, start: number, end: number): void {
    const type = bytes[start + 3] as number;
    const flags = bytes[start + 4] as number;
    const stream = wordAt(bytes, start + 5) & 0x7fff_ffff;
    const at = start + HEADER_BYTES;
    if (type === FrameType.Data) this.onData(stream, bytes, at, end);
    if ((type === FrameType.Data || type === FrameType.Headers) && (flags & END_STREAM) !== 0) {
      this.onEnd(stream, bytes);
    } else if (type === FrameType.Reset) this.onEnd(stream, bytes);
    else if (type === FrameType.Settings && (flags & ACK) === 0) {
      this.putFrame(FrameType.Settings, ACK, 0, bytes, 0);
    } else if (type === FrameType.Ping && (flags & ACK) === 0) {
      this.putFrame(FrameType.Ping, ACK, 0, bytes.slice(at, end), end - at);
    } else if (type === FrameType.Window && stream === 0) {
      this.window += wordAt(bytes, at);
      this.sendHeld();
    }
  }

  private onData(stream: number, bytes: Uint8Array, start: number, end: number): void {
    this.received += end - start;
    if (this.received >= WINDOW_STEP) {
      this.putWindow(this.received);
      this.received = 0;
    }
    const place = (stream >> 1) & (STREAMS_MAX - 1);
    if (end - start < MESSAGE_PREFIX_BYTES) return;
    this.hasMessage[place] = 1;
    this.onCall(this.tags[place] as number, bytes, start + MESSAGE_PREFIX_BYTES, end);
  }

  private onEnd(stream: number, bytes: Uint8Array): void {
    const place = (stream >> 1) & (STREAMS_MAX - 1);
    if (this.hasMessage[place] === 0) this.onCall(this.tags[place] as number, bytes, -1, -1);
    this.hasMessage[place] = 1;
  }

  private sendHeld(): void {
    for (;;) {
      const first = this.held[0];
      if (first === undefined) return;
      const cost = MESSAGE_PREFIX_BYTES + first.message.length;
      if (cost > this.window) return;
      this.held.shift();
      this.window -= cost;
      this.write(first.block, first.message, first.message.length, first.tag);
    }
  }
}

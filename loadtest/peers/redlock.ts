/**
 * Redlock over five Redis servers, each with appendfsync always.
 *
 * Owns: the algorithm at its cheapest: SET NX PX on all five at once, granted by three; release by
 * the script that deletes only its own value, done when three said so. No clock is looked at and no
 * retry is made, which flatters it. Never: a token; there is none. Used by: compare.ts.
 */
import { spawn } from 'node:child_process';
import type { OutBuffer } from '../../src/wire/out-buffer.js';
import { freePorts } from '../../test/cluster/harness.js';
import { firstLine, MEMBERS, Members, type OwnLoader, type Peer, type Tally } from './peer.js';
import { Pipe } from './pipe.js';
import { PeerLoop, type PeerSeat } from './seats.js';

const MAJORITY = 3;
const TTL_MS = '30000';
const RELEASE =
  'if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end';
const RELEASE_WORDS = Buffer.from(
  `*5\r\n$4\r\nEVAL\r\n$${RELEASE.length}\r\n${RELEASE}\r\n$1\r\n1\r\n`,
);
const SET_WORDS = Buffer.from('*6\r\n$3\r\nSET\r\n');
const SET_END = Buffer.from(`$2\r\nNX\r\n$2\r\nPX\r\n$${TTL_MS.length}\r\n${TTL_MS}\r\n`);
/** Replies that may be due on one connection at once; a power of two. */
const DUE_MAX = 1 << 16;
const OWN_CLIENTS = 64;
const CR = 13;
const LF = 10;
const PLUS = 43;
const COLON = 58;
const ONE = 49;
const ZERO = 48;

/** One line is one reply: OK, a nil bulk or an integer. */
function lineBytesAt(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at + 1 < end; at += 1) {
    if (bytes[at] === CR && bytes[at + 1] === LF) return at + 2 - start;
  }
  return 0;
}

function put(out: OutBuffer, bytes: Uint8Array): void {
  out.reserve(bytes.length);
  out.bytes.set(bytes, out.length);
  out.length += bytes.length;
}

/** A bulk string below 100 bytes. */
function putBulk(out: OutBuffer, text: Uint8Array): void {
  out.reserve(text.length + 8);
  const { bytes } = out;
  let at = out.length;
  bytes[at++] = 36;
  if (text.length >= 10) bytes[at++] = ZERO + Math.floor(text.length / 10);
  bytes[at++] = ZERO + (text.length % 10);
  bytes[at++] = CR;
  bytes[at++] = LF;
  bytes.set(text, at);
  at += text.length;
  bytes[at++] = CR;
  bytes[at++] = LF;
  out.length = at;
}

/** Replies of one server come in the order of its requests: whose they are is kept in a ring. */
class Due {
  private readonly seats = new Int32Array(DUE_MAX);
  private readonly rounds = new Int32Array(DUE_MAX);
  private head = 0;
  private tail = 0;
  seat = 0;
  round = 0;

  push(seat: number, round: number): void {
    const at = this.tail & (DUE_MAX - 1);
    this.seats[at] = seat;
    this.rounds[at] = round;
    this.tail = (this.tail + 1) | 0;
    if (((this.tail - this.head) | 0) > DUE_MAX) throw new Error('a Redis is too far behind');
  }

  take(): void {
    const at = this.head & (DUE_MAX - 1);
    this.seat = this.seats[at] as number;
    this.round = this.rounds[at] as number;
    this.head = (this.head + 1) | 0;
  }
}

export class Redlock implements Peer {
  readonly name = 'Redlock';
  readonly durability = 'fsync on three of five; no consensus, no token';
  readonly settings = 'five Redis, appendonly yes, appendfsync always, save ""';
  readonly inflights = [64, 4_096];
  private members: Members | null = null;
  private pipes: Pipe[] = [];
  private ports: number[] = [];
  private dues: Due[] = [];
  private readonly loop = new PeerLoop((seat) => this.send(seat));
  /** By seat: its value, its round (to know a late reply), and the answers to it. */
  private values: Uint8Array[] = [];
  private rounds = new Int32Array(0);
  private goods = new Uint8Array(0);
  private bads = new Uint8Array(0);

  version(): string | null {
    const line = firstLine('redis-server', '--version');
    return line === null ? null : `Redis ${/v=(\S+)/.exec(line)?.[1] ?? line}`;
  }

  async start(): Promise<void> {
    this.members = new Members();
    this.ports = await freePorts(MEMBERS);
    for (const [at, port] of this.ports.entries()) {
      const words = ['--port', String(port), '--bind', '127.0.0.1', '--save', ''];
      words.push('--appendonly', 'yes', '--appendfsync', 'always');
      words.push('--dir', this.members.folderOf(at));
      this.members.spawn(at, 'redis-server', words);
    }
    this.dues = this.ports.map(() => new Due());
    const opened = this.ports.map((port, at) =>
      Pipe.open(port, lineBytesAt, (bytes, start) => this.onLine(at, bytes, start)),
    );
    this.pipes = await Promise.all(opened);
  }

  drive(inflight: number, tally: Tally): void {
    this.values = Array.from({ length: inflight }, (_, index) => Buffer.from(`seat-${index}`));
    this.rounds = new Int32Array(inflight);
    this.goods = new Uint8Array(inflight);
    this.bads = new Uint8Array(inflight);
    this.loop.start(inflight, tally);
  }

  async stopDriving(): Promise<void> {
    await this.loop.stop();
  }

  /** The server's own loader, on all five at once: what three of five could at most be told. */
  async runOwnLoader(seconds: number): Promise<OwnLoader> {
    const requests = String(Math.round(seconds * 12_000));
    const runs = this.ports.map((port) => benchmark(port, requests));
    const rates = await Promise.all(runs);
    const sum = rates.reduce((total, rate) => total + rate, 0);
    return {
      perSecond: Math.round(sum / rates.length),
      note: `redis-benchmark SET NX PX, ${OWN_CLIENTS} clients × 16 pipelined, five at once, mean`,
    };
  }

  async stop(): Promise<void> {
    for (const pipe of this.pipes) pipe.close();
    await this.members?.end();
  }

  private send(seat: PeerSeat): void {
    const { index } = seat;
    const value = this.values[index] as Uint8Array;
    const round = ((this.rounds[index] as number) + 1) | 0;
    this.rounds[index] = round;
    this.goods[index] = 0;
    this.bads[index] = 0;
    for (let at = 0; at < MEMBERS; at += 1) {
      const pipe = this.pipes[at] as Pipe;
      const { out } = pipe;
      put(out, seat.isHolding ? RELEASE_WORDS : SET_WORDS);
      putBulk(out, seat.name);
      putBulk(out, value);
      if (!seat.isHolding) put(out, SET_END);
      pipe.touch();
      (this.dues[at] as Due).push(index, round);
    }
  }

  private onLine(at: number, bytes: Uint8Array, start: number): void {
    const due = this.dues[at] as Due;
    due.take();
    const { seat: index, round } = due;
    if (this.rounds[index] !== round) return; // decided by the others already
    const isGood = bytes[start] === PLUS || (bytes[start] === COLON && bytes[start + 1] === ONE);
    const counts = isGood ? this.goods : this.bads;
    const count = (counts[index] as number) + 1;
    counts[index] = count;
    if (count !== (isGood ? MAJORITY : MEMBERS - MAJORITY + 1)) return;
    this.rounds[index] = (round + 1) | 0;
    const seat = this.loop.seat(index);
    if (seat !== undefined) this.loop.onAnswer(seat, isGood);
  }
}

async function benchmark(port: number, requests: string): Promise<number> {
  const words = ['-p', String(port), '-n', requests, '-c', String(OWN_CLIENTS), '-P', '16', '-q'];
  words.push('-r', '100000', 'SET', 'lock/__rand_int__', 'seat', 'NX', 'PX', TTL_MS);
  const child = spawn('redis-benchmark', words, { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  await new Promise((resolve) => child.once('close', resolve));
  return Number(/([\d.]+) requests per second/.exec(text)?.[1] ?? Number.NaN);
}

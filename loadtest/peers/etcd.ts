/**
 * etcd as a lock service: a transaction that puts a key under a lease if it does not exist.
 *
 * Owns: five members, the messages of its v3 API that this needs, one lease a connection. An
 * acquire is Txn(create_revision = 0, put), a release DeleteRange; both are checked. Its revisions
 * can serve as tokens. Never: its lock or election helpers, which cost more. Used by: compare.ts.
 */
import { spawn } from 'node:child_process';
import { freePorts } from '../../test/cluster/harness.js';
import { GrpcLane } from './grpc-lane.js';
import {
  firstLine,
  LOOPBACK,
  MEMBERS,
  Members,
  type OwnLoader,
  type Peer,
  type Tally,
} from './peer.js';
import { PeerLoop, type PeerSeat } from './seats.js';

const CONNECTIONS = 8;
const LEASE_TTL_S = 600;
/** Tags of calls: seats from 0 on; this is the lease. */
const LEASE_TAG = 0x7fff_ffff;
const MESSAGE_BYTES_MAX = 256;
/** etcdctl check perf runs for this long whatever one wishes. */
const OWN_LOADER_S = 60;
const VALUE = Buffer.from('holder');
const START_MS_MAX = 60_000;

/** A protobuf message below 128 bytes a field, written in place. */
class Message {
  readonly bytes = new Uint8Array(MESSAGE_BYTES_MAX);
  length = 0;

  clear(): void {
    this.length = 0;
  }

  byte(value: number): void {
    this.bytes[this.length] = value;
    this.length += 1;
  }

  /** A varint field; `value` below 2^31. */
  number(field: number, value: number): void {
    this.byte(field << 3);
    let rest = value;
    while (rest >= 0x80) {
      this.byte((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.byte(rest);
  }

  data(field: number, value: Uint8Array): void {
    this.byte((field << 3) | 2);
    this.byte(value.length);
    for (let i = 0; i < value.length; i += 1) this.byte(value[i] as number);
  }

  /** Begins a message inside this one; end() with what this returned. */
  begin(field: number): number {
    this.byte((field << 3) | 2);
    this.byte(0);
    return this.length;
  }

  end(start: number): void {
    this.bytes[start - 1] = this.length - start;
  }
}

/** The varint field with this number at the top of a message, 0 when it is not there. */
function numberIn(bytes: Uint8Array, start: number, end: number, wanted: number): number {
  let at = start;
  while (at < end) {
    const tag = bytes[at] as number;
    at += 1;
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes[at] as number;
      at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
      scale *= 0x80;
    }
    if (tag >> 3 === wanted) return value;
    if ((tag & 7) === 2) at += value;
  }
  return 0;
}

const SUCCEEDED = 2;
const DELETED = 2;
const LEASE_ID = 2;

export class Etcd implements Peer {
  readonly name = 'etcd';
  readonly durability = 'fsync of the log on a majority; consensus; revisions can be tokens';
  readonly settings = 'five members, defaults';
  readonly inflights = [128, 4_096];
  private members: Members | null = null;
  private clients: number[] = [];
  private lanes: GrpcLane[] = [];
  private leased: ((id: number) => void) | null = null;
  private txn: Uint8Array = new Uint8Array(0);
  private deleteRange: Uint8Array = new Uint8Array(0);
  private readonly leases: number[] = [];
  private readonly message = new Message();
  private readonly loop = new PeerLoop((seat) => this.send(seat));

  version(): string | null {
    const line = firstLine('etcd', '--version');
    return line === null ? null : line.replace('etcd Version: ', '');
  }

  async start(): Promise<void> {
    this.members = new Members();
    const ports = await freePorts(2 * MEMBERS);
    this.clients = ports.slice(0, MEMBERS);
    const url = (port: number): string => `http://${LOOPBACK}:${port}`;
    const peers = ports.slice(MEMBERS).map(url);
    const cluster = peers.map((peer, at) => `m${at}=${peer}`).join(',');
    for (const [at, port] of this.clients.entries()) {
      const words = ['--name', `m${at}`, '--data-dir', this.members.folderOf(at)];
      words.push('--listen-client-urls', url(port), '--advertise-client-urls', url(port));
      words.push('--listen-peer-urls', String(peers[at]));
      words.push('--initial-advertise-peer-urls', String(peers[at]));
      words.push('--initial-cluster', cluster, '--initial-cluster-state', 'new');
      words.push('--logger', 'zap', '--log-level', 'error');
      this.members.spawn(at, 'etcd', words);
    }
    const leader = await this.leader();
    const onCall = this.onCall.bind(this);
    for (let i = 0; i < CONNECTIONS; i += 1) {
      this.lanes.push(await GrpcLane.open(leader, onCall));
    }
    const first = this.lanes[0] as GrpcLane;
    this.txn = first.block('/etcdserverpb.KV/Txn');
    this.deleteRange = first.block('/etcdserverpb.KV/DeleteRange');
    for (const lane of this.lanes) this.leases.push(await this.grantLease(lane));
  }

  drive(inflight: number, tally: Tally): void {
    this.loop.start(inflight, tally);
  }

  stopDriving(): Promise<void> {
    return this.loop.stop();
  }

  async runOwnLoader(seconds: number): Promise<OwnLoader> {
    const note = 'etcdctl check perf --load xl (1,000 clients, at most 15,000 puts/s)';
    if (seconds < OWN_LOADER_S) {
      const why = `SKIPPED: etcdctl check perf takes ${OWN_LOADER_S} s, wanted --duration at least`;
      return { perSecond: null, note: `${why} 10` };
    }
    const endpoints = this.clients.map((port) => `${LOOPBACK}:${port}`).join(',');
    const words = ['--endpoints', endpoints, 'check', 'perf', '--load', 'xl'];
    const child = spawn('etcdctl', words, { env: { ...process.env, ETCDCTL_API: '3' } });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
    });
    child.stderr.resume();
    await new Promise((resolve) => child.once('close', resolve));
    const found = /[Tt]hroughput (?:is|too low:) (\d+) writes\/s/.exec(text);
    return { perSecond: found === null ? null : Number(found[1]), note };
  }

  async stop(): Promise<void> {
    for (const lane of this.lanes) lane.close();
    await this.members?.end();
  }

  /** Client port of the member that leads, once there is one. */
  private async leader(): Promise<number> {
    const untilMs = performance.now() + START_MS_MAX;
    const endpoints = this.clients.map((port) => `${LOOPBACK}:${port}`).join(',');
    for (;;) {
      const text = await statusOf(endpoints);
      const at = text.findIndex(
        (member) => member.Status.leader === member.Status.header.member_id,
      );
      const member = text[at];
      if (text.length === MEMBERS && member !== undefined) {
        return Number(member.Endpoint.split(':')[1]);
      }
      if (performance.now() > untilMs) {
        throw new Error(`etcd has no leader: ${this.members?.tail(0)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  private grantLease(lane: GrpcLane): Promise<number> {
    const { message } = this;
    message.clear();
    message.number(1, LEASE_TTL_S);
    message.number(2, 1 + this.leases.length);
    const granted = new Promise<number>((resolve) => {
      this.leased = resolve;
    });
    const block = lane.block('/etcdserverpb.Lease/LeaseGrant');
    lane.call(block, message.bytes, message.length, LEASE_TAG);
    return granted;
  }

  private send(seat: PeerSeat): void {
    const { message } = this;
    const at = seat.index % CONNECTIONS;
    const lane = this.lanes[at] as GrpcLane;
    message.clear();
    if (seat.isHolding) {
      message.data(1, seat.name);
      lane.call(this.deleteRange, message.bytes, message.length, seat.index);
      return;
    }
    // If create_revision (target 1) of the key is 0 …
    const compare = message.begin(1);
    message.number(2, 1);
    message.data(3, seat.name);
    message.number(5, 0);
    message.end(compare);
    // … then put it.
    const success = message.begin(2);
    const put = message.begin(2);
    message.data(1, seat.name);
    message.data(2, VALUE);
    message.number(3, this.leases[at] as number);
    message.end(put);
    message.end(success);
    lane.call(this.txn, message.bytes, message.length, seat.index);
  }

  private onCall(tag: number, bytes: Uint8Array, start: number, end: number): void {
    if (tag === LEASE_TAG) {
      this.leased?.(start < 0 ? 0 : numberIn(bytes, start, end, LEASE_ID));
      return;
    }
    const seat = this.loop.seat(tag);
    if (seat === undefined) return;
    const wanted = seat.isHolding ? DELETED : SUCCEEDED;
    this.loop.onAnswer(seat, start >= 0 && numberIn(bytes, start, end, wanted) === 1);
  }
}

interface MemberStatus {
  readonly Endpoint: string;
  readonly Status: { readonly leader: number; readonly header: { readonly member_id: number } };
}

async function statusOf(endpoints: string): Promise<MemberStatus[]> {
  const words = ['--endpoints', endpoints, 'endpoint', 'status', '-w', 'json'];
  const child = spawn('etcdctl', words, { env: { ...process.env, ETCDCTL_API: '3' } });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
  });
  child.stderr.resume();
  await new Promise((resolve) => child.once('close', resolve));
  try {
    return JSON.parse(text) as MemberStatus[];
  } catch {
    return []; // nobody answers yet
  }
}

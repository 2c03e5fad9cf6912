/**
 * ZooKeeper as a lock service: an ephemeral node is created and deleted.
 *
 * Owns: five servers, the client protocol as far as this needs it, a session a connection. Create
 * fails when the node exists, which is what a try needs; its zxids can serve as tokens. Never: the
 * lock recipe with sequential nodes, which costs more operations. Used by: compare.ts.
 */
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { OutBuffer } from '../../src/wire/out-buffer.js';
import { freePorts } from '../../test/cluster/harness.js';
import {
  firstLine,
  LOOPBACK,
  MEMBERS,
  Members,
  type OwnLoader,
  type Peer,
  type Tally,
} from './peer.js';
import { Pipe } from './pipe.js';
import { PeerLoop, type PeerSeat } from './seats.js';

const JAR = '/usr/share/java/zookeeper.jar';
const MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
const CONNECTIONS_MAX = 64;
const SESSION_MS = 40_000;
const PING_MS = 5_000;
const START_MS_MAX = 90_000;
const HEAP = '-Xmx512m';
const Operation = { Create: 1, Delete: 2, Ping: 11 };
const PING_XID = -2;
const EPHEMERAL = 1;
const PERMISSIONS_ALL = 31;
const ANY_VERSION = -1;
/** Before every name: nodes of the tree begin with a slash and lie flat here. */
const SLASH = 47;

function frameBytesAt(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < 4) return 0;
  return 4 + new DataView(bytes.buffer, bytes.byteOffset + start, 4).getInt32(0);
}

function putInt(out: OutBuffer, value: number): void {
  out.reserve(4);
  out.view.setInt32(out.length, value);
  out.length += 4;
}

function putBytes(out: OutBuffer, value: Uint8Array): void {
  putInt(out, value.length);
  out.reserve(value.length);
  out.bytes.set(value, out.length);
  out.length += value.length;
}

/** `lock/17` as `/lock-17`: no node has to exist above it. */
function putPath(out: OutBuffer, name: Uint8Array): void {
  putInt(out, name.length + 1);
  out.reserve(name.length + 1);
  const { bytes } = out;
  let at = out.length;
  bytes[at] = SLASH;
  for (let i = 0; i < name.length; i += 1) {
    at += 1;
    bytes[at] = name[i] === SLASH ? 45 : (name[i] as number);
  }
  out.length = at + 1;
}

const WORLD = Buffer.from('world');
const ANYONE = Buffer.from('anyone');
const DATA = Buffer.from('holder');

/** One session: the requests that are out are answered in their order. */
class ZooLane {
  private pipe: Pipe | null = null;
  private isGreeted = false;
  private onGreeted: (isGood: boolean) => void = () => undefined;

  private constructor(private readonly onReply: (xid: number, error: number) => void) {}

  /** Null when the server has no quorum yet and hangs up. */
  static async open(
    port: number,
    onReply: (xid: number, error: number) => void,
  ): Promise<ZooLane | null> {
    const lane = new ZooLane(onReply);
    const greeted = new Promise<boolean>((resolve) => {
      lane.onGreeted = resolve;
    });
    const pipe = await Pipe.open(port, frameBytesAt, (bytes, start, end) =>
      lane.onFrame(bytes, start, end),
    );
    lane.pipe = pipe;
    lane.greet();
    const poll = setInterval(() => {
      if (pipe.isClosed) lane.onGreeted(false);
    }, 20);
    const isGood = await greeted;
    clearInterval(poll);
    if (!isGood) pipe.close();
    return isGood ? lane : null;
  }

  create(xid: number, name: Uint8Array): void {
    const out = this.begin(xid, Operation.Create);
    const start = out.length;
    putPath(out, name);
    putBytes(out, DATA);
    putInt(out, 1); // one entry of the access list
    putInt(out, PERMISSIONS_ALL);
    putBytes(out, WORLD);
    putBytes(out, ANYONE);
    putInt(out, EPHEMERAL);
    this.end(start);
  }

  delete(xid: number, name: Uint8Array): void {
    const out = this.begin(xid, Operation.Delete);
    const start = out.length;
    putPath(out, name);
    putInt(out, ANY_VERSION);
    this.end(start);
  }

  ping(): void {
    const out = this.begin(PING_XID, Operation.Ping);
    this.end(out.length);
  }

  close(): void {
    this.pipe?.close();
  }

  private begin(xid: number, operation: number): OutBuffer {
    const { out } = this.pipe as Pipe;
    putInt(out, 0); // length, patched
    putInt(out, xid);
    putInt(out, operation);
    return out;
  }

  /** @param start of what follows xid and operation */
  private end(start: number): void {
    const pipe = this.pipe as Pipe;
    const { out } = pipe;
    out.view.setInt32(start - 12, out.length - start + 8);
    pipe.touch();
  }

  private greet(): void {
    const pipe = this.pipe as Pipe;
    const { out } = pipe;
    putInt(out, 44);
    putInt(out, 0); // protocol version
    putInt(out, 0); // last zxid seen, high and low
    putInt(out, 0);
    putInt(out, SESSION_MS);
    putInt(out, 0); // session id, high and low
    putInt(out, 0);
    putBytes(out, new Uint8Array(16)); // password
    pipe.touch();
  }

  private onFrame(bytes: Uint8Array, start: number, end: number): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset + start, end - start);
    if (!this.isGreeted) {
      this.isGreeted = true;
      this.onGreeted(view.getInt32(8) > 0); // the time-out granted
      return;
    }
    const xid = view.getInt32(4);
    if (xid >= 0) this.onReply(xid, view.getInt32(16));
  }
}

export class ZooKeeper implements Peer {
  readonly name = 'ZooKeeper';
  readonly durability = 'fsync of the log on a majority; consensus; zxids can be tokens';
  readonly settings = `five servers, defaults, Java heap ${HEAP}`;
  readonly inflights = [256, 8_192];
  private members: Members | null = null;
  private lanes: ZooLane[] = [];
  private timer: NodeJS.Timeout | null = null;
  private clients: number[] = [];
  private readonly loop = new PeerLoop((seat) => this.send(seat));

  version(): string | null {
    if (!existsSync(JAR)) return null;
    const java = firstLine('java', '--version');
    const found = firstLine('dpkg-query', '--show', 'zookeeper');
    return java === null ? null : `${found?.split('\t')[1] ?? 'unknown'}, ${java}`;
  }

  async start(): Promise<void> {
    this.members = new Members();
    const ports = await freePorts(3 * MEMBERS);
    this.clients = ports.slice(0, MEMBERS);
    const servers = this.clients.map((_, at) => {
      return `server.${at + 1}=${LOOPBACK}:${ports[MEMBERS + at]}:${ports[2 * MEMBERS + at]}`;
    });
    for (const [at, port] of this.clients.entries()) {
      const folder = this.members.folderOf(at);
      const lines = ['tickTime=2000', 'initLimit=10', 'syncLimit=5', 'maxClientCnxns=0'];
      lines.push(`dataDir=${folder}`, `clientPort=${port}`, `clientPortAddress=${LOOPBACK}`);
      lines.push('admin.enableServer=false', ...servers);
      writeFileSync(path.join(folder, 'zoo.cfg'), `${lines.join('\n')}\n`);
      writeFileSync(path.join(folder, 'myid'), `${at + 1}\n`);
      const words = [HEAP, '-cp', JAR, MAIN, path.join(folder, 'zoo.cfg')];
      this.members.spawn(at, 'java', words);
    }
    await this.connect();
    this.timer = setInterval(() => {
      for (const lane of this.lanes) lane.ping();
    }, PING_MS);
  }

  drive(inflight: number, tally: Tally): void {
    this.loop.start(inflight, tally);
  }

  stopDriving(): Promise<void> {
    return this.loop.stop();
  }

  runOwnLoader(): Promise<OwnLoader> {
    const note = 'none: the packages have no loader for it';
    return Promise.resolve({ perSecond: null, note });
  }

  async stop(): Promise<void> {
    if (this.timer !== null) clearInterval(this.timer);
    for (const lane of this.lanes) lane.close();
    await this.members?.end();
  }

  /** Sessions over all servers in turn, as its own clients spread them. */
  private async connect(): Promise<void> {
    const untilMs = performance.now() + START_MS_MAX;
    const onReply = this.onReply.bind(this);
    while (this.lanes.length < CONNECTIONS_MAX) {
      const port = this.clients[this.lanes.length % MEMBERS] as number;
      const lane = await ZooLane.open(port, onReply);
      if (lane !== null) this.lanes.push(lane);
      else if (performance.now() > untilMs) {
        throw new Error(`ZooKeeper has no quorum: ${this.members?.tail(0)}`);
      } else {
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  }

  private send(seat: PeerSeat): void {
    const lane = this.lanes[seat.index % this.lanes.length] as ZooLane;
    if (seat.isHolding) lane.delete(seat.index, seat.name);
    else lane.create(seat.index, seat.name);
  }

  private onReply(xid: number, error: number): void {
    const seat = this.loop.seat(xid);
    if (seat !== undefined) this.loop.onAnswer(seat, error === 0);
  }
}

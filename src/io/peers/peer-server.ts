/**
 * The peer port: what other nodes send comes in here, and unfounded nodes are found here.
 *
 * Owns: the listening socket, the accepted connections and their bounds (how many, how long until
 * the hello, how large before it). Never: the decision who is a member; that is the gate's, and
 * before there is a gate every hello is answered NOT_FOUNDED. Never: sending raft messages.
 * Made by: server, before founding. Used by: PeerLinks, as its gate.
 */
import net from 'node:net';
import type { Message } from '../../core/raft/message.js';
import { KEEPALIVE_MS, PEER_CONNECTIONS_MAX, PEER_GREETING_MS_MAX } from '../../limits.js';
import {
  decodeFoundingRecord,
  encodeFoundingStored,
  encodeFoundingTell,
  type FoundingStored,
  type FoundingTell,
  isFoundingAsk,
} from '../../wire/founding-talk.js';
import {
  decodeMessage,
  decodePeerHello,
  encodePeerHello,
  encodePeerHelloReply,
  type PeerHello,
  type PeerHelloReply,
  PeerKind,
  PeerVerdict,
} from '../../wire/peer.js';
import {
  type ChunkName,
  decodeChunkAsk,
  decodeSnapshotAsk,
  encodeChunkTell,
  encodeSnapshotTell,
} from '../../wire/snapshot-talk.js';
import type { SnapshotLender } from '../snapshots/lender.js';
import { NoteBook } from './note-book.js';
import { checksum, PeerSocket, type PeerSocketOwner } from './peer-socket.js';

/** Decides who may send messages, and takes them. */
export interface PeerGate {
  /** This node's own hello, sent to each caller that is welcome. */
  readonly hello: PeerHello;
  /** `isBackup`: it takes a backup, and is no member. */
  judge(hello: PeerHello, isBackup: boolean): PeerHelloReply;
  /** `message` is the receiver's to keep. */
  onMessage(message: Message): void;
}

/** What this node says before and after it is founded. */
export interface FoundingHandlers {
  /** Who this node is, and what it was founded with. */
  identity(): FoundingIdentity;
  /** Resolves when the record offered is durable; rejects with the reason when it does not fit. */
  accept(record: Uint8Array): Promise<void>;
}

export interface FoundingIdentity {
  readonly nodeId: number;
  readonly diskId: Uint8Array;
  /** The bytes of its founding record, null when it has none. */
  readonly founding: Uint8Array | null;
}

export interface PeerServerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly nodeId: number;
  readonly founding: FoundingHandlers;
  /** What an operator should read; the same text at most once a minute. */
  onNote(text: string): void;
}

const NOT_FOUNDED: PeerHelloReply = {
  verdict: PeerVerdict.NotFounded,
  text: 'this node has no founding record yet',
};

/** Stands for a node id on a connection that takes a backup: there is one at a time. */
const BACKUP_GUEST = -1;

/** One accepted connection. */
class PeerGuest implements PeerSocketOwner {
  readonly link: PeerSocket;
  /** The node that passed its hello on this connection, or BACKUP_GUEST; 0 before. */
  nodeId = 0;
  /** It fetches a snapshot here, and sends no messages. */
  isFetcher = false;
  readonly sinceMs = performance.now();
  /** True while a record offered here is on its way to the disk: one at a time. */
  private isStoring = false;
  /** True while a question of its fetch is being answered: one at a time. */
  private isReading = false;

  constructor(
    socket: net.Socket,
    private readonly server: PeerServer,
  ) {
    this.link = new PeerSocket(socket, this);
  }

  onBody(bytes: Uint8Array, start: number, end: number): boolean {
    switch (bytes[start]) {
      case PeerKind.Message:
        return this.onMessage(bytes, start, end);
      case PeerKind.Hello:
        return this.server.onHello(this, decodePeerHello(bytes, start, end), false);
      case PeerKind.FetchHello: {
        const hello = decodePeerHello(bytes, start, end, PeerKind.FetchHello);
        return this.server.onHello(this, hello, true);
      }
      case PeerKind.BackupHello: {
        const hello = decodePeerHello(bytes, start, end, PeerKind.BackupHello);
        return this.server.onHello(this, hello && { ...hello, nodeId: BACKUP_GUEST }, true);
      }
      case PeerKind.SnapshotAsk:
        return this.onSnapshotAsk(decodeSnapshotAsk(bytes, start, end));
      case PeerKind.ChunkAsk:
        return this.onChunkAsk(decodeChunkAsk(bytes, start, end));
      default:
        return this.onFounding(bytes, start, end);
    }
  }

  private onSnapshotAsk(leastIndex: number): boolean {
    const { lender } = this.server;
    if (!this.isFetcher || this.isReading || lender === null || leastIndex < 0) return false;
    if (this.nodeId === BACKUP_GUEST && lender.index < leastIndex) {
      this.server.onSnapshotWanted?.(leastIndex);
    }
    this.isReading = true;
    void lender.manifest(leastIndex).then((manifest) => {
      this.isReading = false;
      encodeSnapshotTell(this.link.out, manifest, checksum);
      this.link.flush();
    });
    return true;
  }

  private onChunkAsk(name: ChunkName | null): boolean {
    const { lender } = this.server;
    if (!this.isFetcher || this.isReading || lender === null || name === null) return false;
    this.isReading = true;
    void lender.chunk(name).then((chunk) => {
      this.isReading = false;
      encodeChunkTell(this.link.out, name, chunk, checksum);
      this.link.flush();
    });
    return true;
  }

  /** Before the hello and instead of it: questions and offers of a founding. */
  private onFounding(bytes: Uint8Array, start: number, end: number): boolean {
    if (isFoundingAsk(bytes, start, end)) {
      encodeFoundingTell(this.link.out, this.server.identity(), checksum);
      this.link.flush();
      return true;
    }
    const record = decodeFoundingRecord(bytes, start, end);
    if (record === null || this.isStoring) return false;
    this.isStoring = true;
    void this.server.accept(record).then((stored) => {
      this.isStoring = false;
      encodeFoundingStored(this.link.out, stored, checksum);
      this.link.flush();
    });
    return true;
  }

  onEnd(): void {
    this.server.onGuestGone(this);
  }

  private onMessage(bytes: Uint8Array, start: number, end: number): boolean {
    const message = this.nodeId === 0 || this.isFetcher ? null : decodeMessage(bytes, start, end);
    if (message === null || message.from !== this.nodeId) return false;
    return this.server.onMessage(message);
  }
}

export class PeerServer {
  private readonly server: net.Server;
  private readonly guests = new Set<PeerGuest>();
  private gate: PeerGate | null = null;
  private isShut = false;
  private sweepTimer: NodeJS.Timeout | null = null;
  private readonly notes: NoteBook;

  constructor(private readonly options: PeerServerOptions) {
    this.notes = new NoteBook((text) => options.onNote(text));
    const settings = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_MS };
    this.server = net.createServer(settings, (socket) => this.onSocket(socket));
  }

  /** Resolves with the port; rejects with the system's error (EADDRINUSE, EACCES, …). */
  listen(): Promise<number> {
    const { host, port } = this.options;
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ host, port }, () => {
        this.server.off('error', reject);
        this.server.on('error', (error) =>
          this.notes.note(`the peer port failed: ${error.message}`),
        );
        this.sweepTimer = setInterval(() => this.sweep(), PEER_GREETING_MS_MAX / 4);
        this.sweepTimer.unref();
        resolve((this.server.address() as net.AddressInfo).port);
      });
    });
  }

  /** Who lends snapshots to members that fetch, null for nobody. */
  lender: SnapshotLender | null = null;

  /** A backup wants a snapshot of this index or later, which is not there yet. */
  onSnapshotWanted: ((leastIndex: number) => void) | null = null;

  /** Lets members in from now on; null shuts them out, those that are in included. */
  setGate(gate: PeerGate | null): void {
    this.gate = gate;
    this.isShut = gate === null;
    if (gate !== null) return;
    for (const guest of this.guests) {
      if (guest.nodeId !== 0) guest.link.destroy('this node closes');
    }
  }

  /** Resolves when the port is free and every connection is gone. */
  close(): Promise<void> {
    if (this.sweepTimer !== null) clearInterval(this.sweepTimer);
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      for (const guest of this.guests) guest.link.destroy('this node closes');
    });
  }

  get connectionCount(): number {
    return this.guests.size;
  }

  /** A guest's hello: at first to be let in, later as a probe. */
  onHello(guest: PeerGuest, hello: PeerHello | null, isFetcher: boolean): boolean {
    if (hello === null) return false;
    if (guest.nodeId !== 0 && guest.isFetcher !== isFetcher) return false;
    const { gate } = this;
    if (this.isShut) return false;
    const reply = gate === null ? NOT_FOUNDED : gate.judge(hello, hello.nodeId === BACKUP_GUEST);
    if (reply.verdict !== PeerVerdict.Welcome || gate === null) {
      if (gate !== null) this.notes.note(`refused a peer: ${reply.text}`);
      encodePeerHelloReply(guest.link.out, reply, checksum);
      guest.link.finish(reply.text);
      return true;
    }
    if (guest.nodeId === 0) this.letIn(guest, hello.nodeId, isFetcher);
    if (!isFetcher) encodePeerHello(guest.link.out, gate.hello, checksum);
    encodePeerHelloReply(guest.link.out, reply, checksum);
    guest.link.flush();
    return true;
  }

  identity(): FoundingTell {
    const { nodeId, diskId, founding } = this.options.founding.identity();
    return { nodeId, diskId, record: founding };
  }

  /** Stores a record; a refusal becomes its reason, which the bootstrapper logs. */
  async accept(record: Uint8Array): Promise<FoundingStored> {
    try {
      await this.options.founding.accept(record);
      return { isStored: true, reason: '' };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.notes.note(`refused a founding record: ${reason}`);
      return { isStored: false, reason };
    }
  }

  onMessage(message: Message): boolean {
    if (this.gate === null || message.to !== this.options.nodeId) return false;
    this.gate.onMessage(message);
    return true;
  }

  onGuestGone(guest: PeerGuest): void {
    this.guests.delete(guest);
    // A backup does not come again for the rest: the next snapshot need not wait for it.
    const isLast = ![...this.guests].some(({ isFetcher }) => isFetcher);
    if (guest.nodeId === BACKUP_GUEST && isLast) this.lender?.giveBack();
  }

  /** A node has one connection of a kind: the newest, since an older one may be half open. */
  private letIn(guest: PeerGuest, nodeId: number, isFetcher: boolean): void {
    guest.isFetcher = isFetcher;
    for (const other of this.guests) {
      if (other.nodeId === nodeId && other.isFetcher === isFetcher)
        other.link.destroy('a newer connection took its place');
    }
    guest.nodeId = nodeId;
    guest.link.isGreeted = true;
  }

  private onSocket(socket: net.Socket): void {
    if (this.guests.size >= PEER_CONNECTIONS_MAX && !this.makeRoom()) {
      this.notes.note(`refused a peer connection: there are ${this.guests.size}`);
      socket.destroy();
      return;
    }
    this.guests.add(new PeerGuest(socket, this));
  }

  /** Silent strangers must not keep a member out: the oldest makes room for who comes. */
  private makeRoom(): boolean {
    for (const guest of this.guests) {
      if (guest.nodeId !== 0) continue;
      this.guests.delete(guest);
      guest.link.destroy('made room for another');
      return true;
    }
    return false;
  }

  /** Ends what was accepted and never said who it is. */
  private sweep(): void {
    const now = performance.now();
    for (const guest of this.guests) {
      const isLate = guest.nodeId === 0 && now - guest.sinceMs > PEER_GREETING_MS_MAX;
      if (isLate) guest.link.destroy('no greeting');
    }
  }
}

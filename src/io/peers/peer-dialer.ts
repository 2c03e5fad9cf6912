/**
 * The outgoing half of a peer: the connection that this node dials and sends its messages on.
 *
 * Owns: dialling with back-off, the greeting, the probes that find a dead link, and the bound on
 * what is queued. A message for a peer that is away, or behind by PEER_OUT_BYTES_MAX, is dropped
 * and counted: raft repeats what matters. Never: receiving messages; the peer dials for its own.
 * Made by: peer-links.ts, one for each other member.
 */
import net from 'node:net';
import type { Message } from '../../core/raft/message.js';
import {
  KEEPALIVE_MS,
  PEER_BACKOFF_MS_MAX,
  PEER_BACKOFF_MS_MIN,
  PEER_GREETING_MS_MAX,
  PEER_OUT_BYTES_MAX,
  PEER_PROBE_MS,
  PEER_PROBES_LOST_MAX,
} from '../../limits.js';
import {
  decodePeerHello,
  decodePeerHelloReply,
  encodeMessage,
  encodePeerHello,
  type PeerHello,
  PeerKind,
  PeerVerdict,
} from '../../wire/peer.js';
import { judgeHello, type Membership, type PeerMember } from './membership.js';
import { checksum, PeerSocket, type PeerSocketOwner } from './peer-socket.js';

export interface PeerDialerEvents {
  /** The link came up or went down. */
  onLink(nodeId: number, isUp: boolean): void;
  /** What an operator should read; each text once in a row. */
  onNote(text: string): void;
}

export class PeerDialer implements PeerSocketOwner {
  /** Messages not sent since the start, because the peer was away or too far behind. */
  droppedMessages = 0;
  private link: PeerSocket | null = null;
  private isUp = false;
  /** True once the peer's own hello on this connection has passed. */
  private isKnown = false;
  private isClosed = false;
  private backoffMs = PEER_BACKOFF_MS_MIN;
  private redialTimer: NodeJS.Timeout | null = null;
  private greetingTimer: NodeJS.Timeout | null = null;
  private probesLost = 0;
  private lastNote = '';

  constructor(
    readonly member: PeerMember,
    private readonly hello: PeerHello,
    private readonly membership: Membership,
    private readonly events: PeerDialerEvents,
  ) {}

  dial(): void {
    const { host, port } = this.member;
    const options = { host, port, noDelay: true, keepAlive: true };
    const socket = net.connect({ ...options, keepAliveInitialDelay: KEEPALIVE_MS });
    const link = new PeerSocket(socket, this);
    this.link = link;
    this.isKnown = false;
    socket.once('connect', () => this.greet(link));
    this.greetingTimer = setTimeout(
      () => link.destroy(`no greeting within ${PEER_GREETING_MS_MAX} ms`),
      PEER_GREETING_MS_MAX,
    );
  }

  send(message: Message): void {
    const { link } = this;
    if (!this.isUp || link === null || link.unsentBytes > PEER_OUT_BYTES_MAX) {
      this.droppedMessages += 1;
      return;
    }
    encodeMessage(link.out, message, checksum);
  }

  flush(): void {
    if (this.isUp) this.link!.flush();
  }

  /** Asks for a sign of life; a link that gave none for too long is dialled anew. */
  probe(): void {
    if (!this.isUp) return;
    this.probesLost += 1;
    if (this.probesLost > PEER_PROBES_LOST_MAX) {
      this.link!.destroy(`no answer for ${PEER_PROBES_LOST_MAX * PEER_PROBE_MS} ms`);
      return;
    }
    this.greet(this.link!);
  }

  close(): void {
    this.isClosed = true;
    if (this.redialTimer !== null) clearTimeout(this.redialTimer);
    this.link?.destroy('this node closes');
  }

  onBody(bytes: Uint8Array, start: number, end: number): boolean {
    const kind = bytes[start];
    if (kind === PeerKind.Hello) return this.onHello(bytes, start, end);
    if (kind === PeerKind.HelloReply) return this.onHelloReply(bytes, start, end);
    return false;
  }

  onEnd(reason: string): void {
    if (this.greetingTimer !== null) clearTimeout(this.greetingTimer);
    this.link = null;
    if (this.isUp) {
      this.isUp = false;
      this.events.onLink(this.member.nodeId, false);
    }
    if (this.isClosed) return;
    this.note(`${this.name} is away: ${reason}`);
    // Full jitter over the doubled pause: five nodes that lost one do not dial it in step.
    const pauseMs = PEER_BACKOFF_MS_MIN + Math.random() * (this.backoffMs - PEER_BACKOFF_MS_MIN);
    this.backoffMs = Math.min(PEER_BACKOFF_MS_MAX, this.backoffMs * 2);
    this.redialTimer = setTimeout(() => this.dial(), pauseMs);
  }

  private get name(): string {
    return `peer ${this.member.nodeId} at ${this.member.host}:${this.member.port}`;
  }

  private greet(link: PeerSocket): void {
    encodePeerHello(link.out, this.hello, checksum);
    link.flush();
  }

  private onHello(bytes: Uint8Array, start: number, end: number): boolean {
    const hello = decodePeerHello(bytes, start, end);
    if (hello === null) return false;
    const { verdict, text } = judgeHello(hello, this.membership);
    this.isKnown = verdict === PeerVerdict.Welcome && hello.nodeId === this.member.nodeId;
    if (this.isKnown) return true;
    const why = text === '' ? `it is node ${hello.nodeId}` : text;
    this.link!.destroy(`it is not who it should be: ${why}`);
    return true;
  }

  private onHelloReply(bytes: Uint8Array, start: number, end: number): boolean {
    const reply = decodePeerHelloReply(bytes, start, end);
    if (reply === null) return false;
    if (reply.verdict !== PeerVerdict.Welcome) {
      this.link!.destroy(`it refuses this node: ${reply.text}`);
      return true;
    }
    if (!this.isKnown) return false;
    this.probesLost = 0;
    if (!this.isUp) this.onWelcome();
    return true;
  }

  private onWelcome(): void {
    if (this.greetingTimer !== null) clearTimeout(this.greetingTimer);
    this.isUp = true;
    this.backoffMs = PEER_BACKOFF_MS_MIN;
    this.note(`${this.name} is there`);
    this.events.onLink(this.member.nodeId, true);
  }

  private note(text: string): void {
    if (text === this.lastNote) return;
    this.lastNote = text;
    this.events.onNote(text);
  }
}

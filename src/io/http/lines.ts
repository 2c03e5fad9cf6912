/**
 * Chooses the way of each HTTP request: this node's own replica, or one line to the leader.
 *
 * Owns: the line to the present leader, and those to earlier ones until their last answers came.
 * Never: asks twice. Used by: http-door.ts.
 */
import { FORWARD_LINGER_MS, HTTP_CALLS_MAX, HTTP_CALLS_RESERVE } from '../../limits.js';
import { LeaderLine } from './leader-line.js';
import type { Line } from './line.js';
import { type AskedReplica, LocalLine } from './local-line.js';

const TICK_MS = 100;
/** Ids of the routes that have the reserve. */
const LAST_REFUSED: ReadonlySet<string> = new Set([
  'renew',
  'release',
  'proclaim',
  'resign',
  'session-renew',
  'session-close',
  'cancel',
]);

/** What is asked of the replica to know who leads. */
export interface LedReplica extends AskedReplica {
  readonly leaderId: number;
  readonly leaderAddress: string;
}

/** Splits `host:port`, the host without the brackets of an IPv6 address. */
export function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(':');
  const host = address.slice(0, at).replace(/^\[|\]$/g, '');
  return { host, port: Number(address.slice(at + 1)) };
}

export class Lines {
  readonly local: LocalLine;
  private leader: LeaderLine | null = null;
  private readonly retired = new Map<LeaderLine, number>();
  private readonly ticker: NodeJS.Timeout;

  constructor(
    private readonly replica: LedReplica,
    private readonly nodeId: number,
    principal: number,
  ) {
    this.local = new LocalLine(replica, principal);
    this.ticker = setInterval(() => this.tick(), TICK_MS);
    this.ticker.unref();
  }

  /** Requests over all lines that were not answered. */
  get unanswered(): number {
    let count = this.local.unanswered + (this.leader?.unanswered ?? 0);
    for (const line of this.retired.keys()) count += line.unanswered;
    return count;
  }

  /** What keeps or ends a lease or a session is refused last. */
  isFullFor(routeId: string): boolean {
    const reserve = LAST_REFUSED.has(routeId) ? HTTP_CALLS_RESERVE : 0;
    return this.unanswered >= HTTP_CALLS_MAX + reserve;
  }

  /**
   * The way to the leader. Without one it is this node's own replica, which says so; null when the
   * line to the leader takes no more.
   */
  toLeader(): Line | null {
    const { leaderId } = this.replica;
    if (leaderId === 0 || leaderId === this.nodeId) return this.local;
    if (this.leader !== null && (this.leader.nodeId !== leaderId || this.leader.isRetired)) {
      this.retire(this.leader);
    }
    if (this.leader === null) {
      const { host, port } = splitAddress(this.replica.leaderAddress);
      this.leader = new LeaderLine(leaderId, host, port);
    }
    return this.leader.isFull ? null : this.leader;
  }

  close(): void {
    clearInterval(this.ticker);
    this.leader?.end();
    for (const line of this.retired.keys()) line.end();
    this.local.close();
  }

  private retire(line: LeaderLine): void {
    line.isRetired = true;
    this.retired.set(line, performance.now() + FORWARD_LINGER_MS);
    this.leader = null;
  }

  private tick(): void {
    const now = performance.now();
    const { leader } = this;
    leader?.tick(now);
    if (leader !== null && (leader.isRetired || leader.nodeId !== this.replica.leaderId)) {
      this.retire(leader);
    }
    for (const [line, endAtMs] of this.retired) {
      if (line.unanswered > 0 && now < endAtMs) continue;
      line.end();
      this.retired.delete(line);
    }
  }
}

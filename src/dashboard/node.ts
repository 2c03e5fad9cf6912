/**
 * What the dashboard asks of the node that serves it: status, locks, metrics, live events.
 *
 * Owns: the requests, and the WebSocket of events with its resumption. Never: a change of anything
 * but a forced release, which somebody has typed a reason for. Used by: app.ts, force.ts.
 */
import { browser, type Socket } from './browser.js';

export interface Status {
  readonly node: number;
  readonly role: string;
  readonly term: number;
  readonly leader: { readonly node_id: number; readonly address: string } | null;
  readonly applied_index: number;
  readonly revision: number;
  readonly cluster_time: number;
  readonly feature_level: number;
  readonly digest: { readonly value: string };
  readonly members: readonly { node_id: number; address: string; role: string }[];
  readonly counters: { readonly [name: string]: number };
}

export interface Holder {
  readonly fencing_token: number;
  readonly since: number;
  readonly expires_in_ms: number;
  readonly metadata: string | null;
}

export interface Waiter {
  readonly place: number;
  readonly since: number;
  readonly until: number;
  readonly metadata: string | null;
}

export interface LockRow {
  readonly name: string;
  readonly holder: Holder | null;
  readonly waiters: number;
}

/** The rule by which no acquire is taken. */
export interface Rule {
  readonly name: string;
  readonly is_prefix: boolean;
  readonly revision: number;
  readonly asked_by: string | null;
  readonly reason: string | null;
}

export interface Lock extends LockRow {
  readonly queue: readonly Waiter[];
  readonly disabled: Rule | null;
  readonly cluster_time: number;
}

/** What a forced release ended. */
export interface Forced {
  readonly barrier_token: number;
  readonly fencing_token: number;
}

/** Which lease is meant, who asks and why, and the name of the request. */
export interface Ordered {
  readonly token: number;
  readonly actor: string;
  readonly reason: string;
  readonly key: string;
}

export interface LockPage {
  readonly locks: readonly LockRow[];
  readonly next_cursor: string | null;
}

export interface LiveEvent {
  readonly type: string;
  readonly revision: number;
  readonly name: string;
  readonly fencing_token: number;
  readonly place: number;
  readonly cause: string | null;
}

const RETRY_MS = 1_000;

async function read<Value>(path: string, question: RequestInit = {}): Promise<Value> {
  const response = await fetch(path, question);
  const body: unknown = await response.json();
  if (response.ok) return body as Value;
  const { error } = body as { error: { code: string; message: string } };
  throw new Error(`${error.code}: ${error.message}`);
}

export function readStatus(): Promise<Status> {
  return read('/v1/cluster/status');
}

/** A page of locks as this node has applied them. */
export function readLocks(prefix: string, limit: number): Promise<LockPage> {
  return read(`/v1/locks?stale=true&limit=${limit}&prefix=${encodeURIComponent(prefix)}`);
}

export function readLock(name: string): Promise<Lock> {
  return read(`/v1/locks/${encodeURIComponent(name)}?stale=true`);
}

/** A name for one request; also on a page that came over plain HTTP. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Rejects with code and words when another lease holds by now; sent again under the same key. */
export function forceRelease(name: string, ordered: Ordered): Promise<Forced> {
  const { token, actor, reason, key } = ordered;
  return read(`/v1/admin/locks/${encodeURIComponent(name)}/force-release`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ fencing_token: token, actor, reason }),
  });
}

/** Every sample of /metrics whose name begins with `holdfast_`, by its whole series. */
export async function readMetrics(): Promise<Map<string, number>> {
  const text = await (await fetch('/metrics')).text();
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    const at = line.lastIndexOf(' ');
    if (line.startsWith('holdfast_')) samples.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return samples;
}

/** Follows every event of the cluster, from now on, over lost connections. */
export class LiveEvents {
  private socket: Socket | null = null;
  private revision = 0;
  private isClosed = false;

  constructor(
    private readonly onEvent: (event: LiveEvent) => void,
    private readonly onLive: (isLive: boolean) => void,
  ) {
    this.open();
  }

  close(): void {
    this.isClosed = true;
    this.socket?.close();
  }

  private open(): void {
    const from = this.revision > 0 ? `?revision=${this.revision + 1}` : '';
    const scheme = browser.location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new browser.WebSocket(`${scheme}://${browser.location.host}/v1/watch${from}`);
    this.socket = socket;
    socket.onopen = () => this.onLive(true);
    socket.onmessage = ({ data }) => this.take(data);
    socket.onclose = () => {
      this.onLive(false);
      if (!this.isClosed) setTimeout(() => this.open(), RETRY_MS);
    };
  }

  private take(text: string): void {
    const message = JSON.parse(text) as { event: string; revision: number; data: LiveEvent };
    if (message.event === 'error') {
      // The history has been cut: what is live goes on from now.
      this.revision = 0;
      return;
    }
    this.revision = message.revision;
    if (message.event !== 'progress') this.onEvent(message.data);
  }
}

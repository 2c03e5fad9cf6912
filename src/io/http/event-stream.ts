/**
 * One stream of events over HTTP: server-sent events, or JSON messages of a WebSocket.
 *
 * Owns: its connection to this node's replica, so that a slow reader holds up only itself, and how
 * the parts of a watch are said in JSON. Never: an event of its own making, but for elections: it
 * says there who leads, and when nobody does. Made by: http-door.ts.
 */
import { CommandKind } from '../../core/locks/command.js';
import { REQUEST_DEADLINE_MAX_MS, WATCH_OUT_BYTES_MAX } from '../../limits.js';
import { ErrorCode } from '../../wire/errors.js';
import { eventOf, type Json } from '../../wire/event-json.js';
import { detailOf, leaderOf } from '../../wire/http-answers.js';
import { lockRowOf } from '../../wire/lock-json.js';
import type { PackValue } from '../../wire/msgpack-writer.js';
import { decodeReplies, type Reply } from '../../wire/response.js';
import { errorBody } from './answer.js';
import { type AskedReplica, InnerConnection } from './local-line.js';

/** Where the messages go. */
export interface EventSink {
  /** True while the reader takes nothing: the stream holds back. */
  readonly isBlocked: boolean;
  /** `revision`: everything up to it has been told once this message is. */
  send(event: string, revision: number, data: Json): void;
  end(): void;
}

/** What a stream shows. */
export interface StreamPlan {
  /** A lock or election, or null for `prefix`. */
  readonly name: string | null;
  readonly prefix: string | null;
  /** First revision wanted, null for the next one. */
  readonly revision: number | null;
  readonly snapshot: boolean;
  readonly isElection: boolean;
}

const WATCH = 1;
const READS_FROM = 2;

export class EventStream {
  private readonly inner: InnerConnection;
  private lastRead = READS_FROM - 1;
  /** Elections: parts that wait for the value of who leads. */
  private readonly parts: Reply[] = [];
  private isOver = false;

  constructor(
    replica: AskedReplica,
    principal: number,
    private readonly plan: StreamPlan,
    private readonly sink: EventSink,
    private readonly onOver: () => void,
  ) {
    const backlog = (): number => (sink.isBlocked ? WATCH_OUT_BYTES_MAX + 1 : 0);
    const onFrame = (bytes: Uint8Array, start: number, end: number): void => {
      for (const reply of decodeReplies(bytes, start, end) ?? []) this.onReply(reply);
    };
    this.inner = new InnerConnection(replica, principal, onFrame, backlog);
    const { name, prefix, revision, snapshot } = plan;
    this.ask(WATCH, [CommandKind.Watch, name, prefix, revision, snapshot]);
  }

  /** The reader has gone, or the node is stopping. */
  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.inner.close();
    this.onOver();
  }

  private ask(correlation: number, operation: readonly PackValue[]): void {
    this.inner.send(correlation, REQUEST_DEADLINE_MAX_MS, operation);
  }

  private onReply(reply: Reply): void {
    if (this.isOver || reply.correlation === 0) return;
    if (reply.correlation !== WATCH) {
      this.onLeaderRead(reply);
    } else if (reply.code !== ErrorCode.Watching) {
      this.sink.send('error', 0, errorBody(reply.code, reply.message, detailOf(reply)));
      this.sink.end();
      this.close();
    } else if (this.plan.isElection) {
      this.onElectionPart(reply);
    } else {
      this.onPart(reply);
    }
  }

  private onPart(reply: Reply): void {
    const revision = Number(reply.fields[1]);
    const locks = reply.fields[2];
    if (Array.isArray(locks)) {
      const rows = locks.map((row) => lockRowOf(row, reply.clusterTimeMs));
      this.sink.send('snapshot', revision, { locks: rows, revision });
      return;
    }
    const events = reply.fields[0];
    if (!Array.isArray(events) || events.length === 0) {
      this.sink.send('progress', revision, { revision, cluster_time: reply.clusterTimeMs });
      return;
    }
    for (const row of events) {
      const event = eventOf(row);
      this.sink.send(String(event['type']), Number(event['revision']), event);
    }
  }

  /** The value is in no event: it is read from this node, which has applied the part. */
  private onElectionPart(reply: Reply): void {
    this.parts.push(reply);
    this.lastRead += 1;
    this.ask(this.lastRead, [CommandKind.Get, this.plan.name, true]);
  }

  private onLeaderRead(reply: Reply): void {
    const part = this.parts.shift();
    if (part === undefined) return;
    const lock: unknown = reply.fields[0];
    const leader = leaderOf(Array.isArray(lock) ? lock[2] : null, reply.clusterTimeMs);
    const revision = Number(part.fields[1]);
    const rows: readonly unknown[] = Array.isArray(part.fields[0]) ? part.fields[0] : [];
    const changes = rows.map(eventOf).filter((each) => isChange(each));
    const isStart = Array.isArray(part.fields[2]);
    if (isStart) {
      const data = { leader, revision, cluster_time: part.clusterTimeMs };
      this.sink.send(leader === null ? 'no_leader' : 'leader', revision, data);
      return;
    }
    for (let at = 0; at < changes.length; at += 1) {
      const event = changes[at] as Json;
      const next = changes[at + 1];
      const isHandedOver = next !== undefined && next['revision'] === Number(event['revision']) + 1;
      if (event['type'] === 'ended' && isHandedOver) continue;
      this.tellLeader(event, leader);
    }
    if (changes.length === 0) {
      this.sink.send('progress', revision, { revision, cluster_time: part.clusterTimeMs });
    }
  }

  /** A leader that has gone by now is told with its token, its value is no longer known. */
  private tellLeader(event: Json, present: Json | null): void {
    const revision = Number(event['revision']);
    const time = { revision, cluster_time: event['cluster_time'] };
    if (event['type'] === 'ended') {
      this.sink.send('no_leader', revision, { leader: null, cause: event['cause'], ...time });
      return;
    }
    const token = event['fencing_token'];
    const isPresent = present !== null && present['fencing_token'] === token;
    const leader = isPresent ? present : { value: null, fencing_token: token };
    this.sink.send('leader', revision, { leader, ...time });
  }
}

function isChange(event: Json): boolean {
  return event['type'] === 'granted' || event['type'] === 'ended';
}

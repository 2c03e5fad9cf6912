/**
 * Requests that never reach the log: greetings, status, and the way to the readers.
 *
 * Owns: what is answered at once and what needs a read point first. Never: replicated state.
 * Called by: admission.ts.
 */
import { CommandKind } from '../core/locks/command.js';
import { OutcomeCode } from '../core/locks/outcome.js';
import { FRAME_BYTES_MAX, PENDING_READS_MAX } from '../limits.js';
import { ErrorCode } from '../wire/errors.js';
import { faultCode, faultField } from '../wire/fault.js';
import { FRAME_VERSION } from '../wire/frame.js';
import { decodeQuery, Query } from '../wire/query.js';
import { encodeHello, encodePong } from '../wire/query-reply.js';
import { admitAudit } from './audit.js';
import type { Connection } from './connection.js';
import { finishReply, replyNotLeader, replyRefusal } from './replies.js';
import type { ReplicaState } from './state.js';
import { memberRows } from './status.js';
import { admitUnwatch, admitWatch } from './watching.js';

const RETRY_OVERLOADED_MS = 50;

/** Answers or files the request whose operation the frame reader is at. */
export function admitQuery(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  bytes: Uint8Array,
  deadlineUs: number,
): void {
  const { frame } = state;
  const query = new Query();
  const fault = decodeQuery(bytes, frame.operationStart, frame.operationEnd, query);
  if (fault !== 0) {
    const field = faultField(fault);
    replyRefusal(state, connection, correlation, faultCode(fault), null, -1, field);
    return;
  }
  switch (query.kind) {
    case CommandKind.Hello:
      greet(state, connection, correlation, query.version);
      return;
    case CommandKind.Ping:
      encodePong(connection.beginItem(), correlation, state.machine.now);
      finishReply(state, connection);
      return;
    case CommandKind.Transfer:
      transfer(state, connection, correlation, query.nodeId);
      return;
    case CommandKind.Watch:
      admitWatch(state, connection, correlation, query);
      return;
    case CommandKind.Unwatch:
      admitUnwatch(state, connection, correlation, query.correlation);
      return;
    case CommandKind.Audit:
      admitAudit(state, connection, correlation, query, deadlineUs);
      return;
    case CommandKind.Abandon:
      abandon(state, connection, correlation, query);
      return;
    default:
  }
  file(state, connection, correlation, query, deadlineUs);
}

/** True for what any state of this node answers. */
function needsNoReadPoint(query: Query): boolean {
  const { kind } = query;
  return query.stale || kind === CommandKind.Status || kind === CommandKind.Members;
}

function file(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  query: Query,
  deadlineUs: number,
): void {
  const { reads } = state;
  if (reads.count >= PENDING_READS_MAX) {
    replyRefusal(state, connection, correlation, ErrorCode.Overloaded, null, RETRY_OVERLOADED_MS);
    return;
  }
  const read = { connection, correlation, query, deadlineUs };
  if (needsNoReadPoint(query)) reads.addReady(read);
  else reads.gathered.push(read);
}

function greet(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  versionMax: number,
): void {
  const { options, raft } = state;
  if (versionMax < FRAME_VERSION) {
    replyRefusal(state, connection, correlation, ErrorCode.UnsupportedVersion);
    return;
  }
  connection.greeted = true;
  encodeHello(connection.beginItem(), correlation, {
    version: FRAME_VERSION,
    featureLevel: options.featureLevel,
    nodeId: options.nodeId,
    leaderId: raft.leaderId,
    shardCount: 1,
    clusterId: options.clusterId,
    frameBytesMax: FRAME_BYTES_MAX,
    members: memberRows(state),
  });
  finishReply(state, connection);
}

function transfer(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  nodeId: number,
): void {
  const { raft, options } = state;
  if (!raft.members.voters.includes(nodeId)) {
    const code = OutcomeCode.BadRequest;
    replyRefusal(state, connection, correlation, code, 'name a voter', -1, 'node_id');
  } else if (raft.transfer(nodeId)) {
    options.turn.soon();
    encodePong(connection.beginItem(), correlation, state.machine.now);
    finishReply(state, connection);
  } else {
    replyNotLeader(state, connection, correlation);
  }
}

/** Nobody waits for this result any more: without another listener its place is left to lapse. */
function abandon(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  query: Query,
): void {
  if (state.attachments.unlisten(query.place, connection, query.correlation)) {
    connection.waiting -= 1;
  }
  encodePong(connection.beginItem(), correlation, state.machine.now);
  finishReply(state, connection);
}

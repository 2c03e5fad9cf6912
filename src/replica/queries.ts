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
import type { PackValue } from '../wire/msgpack-writer.js';
import { decodeQuery, Query } from '../wire/query.js';
import type { Connection } from './connection.js';
import { answerRead } from './reads.js';
import { replyFields, replyNotLeader, replyRefusal } from './replies.js';
import type { ReplicaState } from './state.js';
import { statusFields } from './status.js';

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
      replyFields(state, connection, correlation, []);
      return;
    case CommandKind.Members:
      replyFields(state, connection, correlation, [memberRows(state)]);
      return;
    case CommandKind.Status:
      replyFields(state, connection, correlation, [statusFields(state)]);
      return;
    case CommandKind.Transfer:
      transfer(state, connection, correlation, query.nodeId);
      return;
    case CommandKind.Get:
    case CommandKind.List:
      if (query.stale) answerRead(state, { connection, correlation, query, deadlineUs });
      else file(state, connection, correlation, query, deadlineUs);
      return;
    default:
      file(state, connection, correlation, query, deadlineUs);
  }
}

function file(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  query: Query,
  deadlineUs: number,
): void {
  const { reads } = state;
  if (reads.gathered.length >= PENDING_READS_MAX || reads.count >= PENDING_READS_MAX) {
    replyRefusal(state, connection, correlation, ErrorCode.Overloaded, null, RETRY_OVERLOADED_MS);
    return;
  }
  reads.gathered.push({ connection, correlation, query, deadlineUs });
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
  replyFields(state, connection, correlation, [
    FRAME_VERSION,
    options.featureLevel,
    options.nodeId,
    raft.leaderId,
    1,
    options.clusterId,
    FRAME_BYTES_MAX,
    memberRows(state),
  ]);
}

function memberRows(state: ReplicaState): PackValue[] {
  const { raft, options } = state;
  return options.members.map((member) => {
    const isLeader = member.nodeId === raft.leaderId;
    const role = isLeader ? 'leader' : member.isLearner === true ? 'learner' : 'follower';
    return [member.nodeId, member.client, role];
  });
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
    replyFields(state, connection, correlation, [nodeId]);
  } else {
    replyNotLeader(state, connection, correlation);
  }
}

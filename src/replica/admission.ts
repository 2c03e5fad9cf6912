/**
 * What becomes of a request before the log: into the open batch, to the readers, or refused.
 *
 * Owns: the checks that need no entry. Validates a request's bytes in place and copies them once
 * into the open batch; those bytes are the log value and the replication payload. Never: changes
 * replicated state. Called by: replica.ts for each frame.
 */
import {
  CommandKind,
  LOGGED_COMMAND_MIN,
  OPERATION_VERSION,
  RequestKind,
} from '../core/locks/command.js';
import { OutcomeCode } from '../core/locks/outcome.js';
import { Role } from '../core/raft/effects.js';
import {
  BATCH_BYTES_MAX,
  BATCH_OPERATIONS_MAX,
  CONNECTION_REQUESTS_MAX,
  CONNECTION_WAITS_MAX,
  PENDING_REQUESTS_MAX,
  PENDING_RESERVE,
} from '../limits.js';
import { ErrorCode } from '../wire/errors.js';
import { faultCode, faultField } from '../wire/fault.js';
import { decodeOperation } from '../wire/operation.js';
import { closeIfFull, isLogBehind } from './batching.js';
import type { Connection } from './connection.js';
import { admitQuery } from './queries.js';
import { replyNotLeader, replyOutcome, replyRefusal } from './replies.js';
import { isServing, type ReplicaState } from './state.js';

/** A leader that is not ready yet, or no leader at all: worth another try this soon. */
const RETRY_SOON_MS = 20;
const RETRY_OVERLOADED_MS = 50;
const US_PER_MS = 1_000;
/** How far past its bounds a batch may grow by renewals and releases while the log is behind. */
const BATCH_RESERVE_SHARE = 1.5;

/** Takes one frame's body. False: the connection broke the protocol and is to be closed. */
export function admitFrame(
  state: ReplicaState,
  connection: Connection,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  const { frame } = state;
  const nowUs = state.options.clock.nowUs();
  if (frame.open(bytes, start, end) === 0) {
    while (frame.next()) {
      connection.unanswered += 1;
      admitRequest(state, connection, bytes, nowUs);
    }
  }
  if (frame.fault !== 0) {
    state.counters.protocol_faults += 1;
    replyRefusal(state, connection, 0, frame.fault, 'send whole frames of version 1');
    return false;
  }
  if (connection.unanswered >= CONNECTION_REQUESTS_MAX && !connection.readingPaused) {
    connection.readingPaused = true;
    connection.transport.pauseReading();
  }
  return true;
}

function admitRequest(
  state: ReplicaState,
  connection: Connection,
  bytes: Uint8Array,
  nowUs: number,
): void {
  const { frame } = state;
  const { correlation } = frame;
  if (!connection.greeted && frame.command !== CommandKind.Hello) {
    const message = 'send hello first';
    replyRefusal(state, connection, correlation, ErrorCode.Unauthenticated, message);
  } else if (frame.deadlineMs === 0) {
    replyRefusal(state, connection, correlation, OutcomeCode.DeadlinePassed);
  } else if (frame.command < LOGGED_COMMAND_MIN) {
    const deadlineUs = nowUs + frame.deadlineMs * US_PER_MS;
    admitQuery(state, connection, correlation, bytes, deadlineUs);
  } else {
    admitOperation(state, connection, bytes, nowUs);
  }
}

function admitOperation(
  state: ReplicaState,
  connection: Connection,
  bytes: Uint8Array,
  nowUs: number,
): void {
  const { frame, command } = state;
  const { correlation } = frame;
  const fault = decodeOperation(bytes, frame.operationStart, frame.operationEnd, command);
  if (fault !== 0) {
    const field = faultField(fault);
    replyRefusal(state, connection, correlation, faultCode(fault), null, -1, field);
    return;
  }
  command.principal = connection.principal;
  if (!isServing(state)) {
    refuseNotServing(state, connection, correlation);
    return;
  }
  if (!isAllowed(state, connection, correlation)) return;
  const { writer, open } = state;
  if (isOverloaded(state)) {
    replyRefusal(state, connection, correlation, ErrorCode.Overloaded, null, RETRY_OVERLOADED_MS);
    return;
  }
  writer.addOperation(
    connection.principal,
    OPERATION_VERSION,
    bytes,
    frame.operationStart,
    frame.operationEnd,
  );
  open.add(connection, correlation, nowUs + frame.deadlineMs * US_PER_MS);
  closeIfFull(state);
}

/** True when there is no room; what keeps or ends a lease is refused last, and operators too. */
function isOverloaded(state: ReplicaState): boolean {
  const { writer, open, pending, command } = state;
  const { kind } = command;
  const isKeeping =
    kind === CommandKind.Renew ||
    kind === CommandKind.SessionRenew ||
    kind === CommandKind.Release ||
    kind === CommandKind.Cancel ||
    (kind >= CommandKind.ForceRelease && kind !== CommandKind.ReportRefusal);
  const reserve = isKeeping ? PENDING_RESERVE : 0;
  if (pending.operations + open.count >= PENDING_REQUESTS_MAX + reserve) return true;
  const share = isKeeping ? BATCH_RESERVE_SHARE : 1;
  const isBatchFull =
    writer.count >= BATCH_OPERATIONS_MAX * share || writer.length >= BATCH_BYTES_MAX * share;
  return isBatchFull && isLogBehind(state);
}

/** A node that cannot take operations says why, and who can. */
function refuseNotServing(state: ReplicaState, connection: Connection, correlation: number): void {
  const { raft } = state;
  if (state.isShuttingDown) {
    replyRefusal(state, connection, correlation, ErrorCode.ShuttingDown);
  } else if (raft.role === Role.Follower && raft.leaderId !== 0) {
    replyNotLeader(state, connection, correlation);
  } else {
    replyRefusal(state, connection, correlation, ErrorCode.NoQuorum, null, RETRY_SOON_MS);
  }
}

/** Checks that need the applied state but no entry. Answers and returns false when one fails. */
function isAllowed(state: ReplicaState, connection: Connection, correlation: number): boolean {
  const { command, machine, outcome } = state;
  switch (command.kind) {
    case CommandKind.KeepWaits:
    case CommandKind.Settings:
    case CommandKind.Restored:
      replyRefusal(state, connection, correlation, OutcomeCode.Forbidden);
      return false;
    case CommandKind.SessionTakeOver:
      replyRefusal(state, connection, correlation, OutcomeCode.BadRequest, null, -1, 'command');
      return false;
    case CommandKind.Acquire:
      if (command.waitMs <= 0 || connection.waiting < CONNECTION_WAITS_MAX) break;
      replyRefusal(state, connection, correlation, OutcomeCode.Limit, null, -1, 'waits');
      return false;
    default:
  }
  const inFlight = state.pending.operations + state.open.count;
  const isRemembered =
    command.kind !== CommandKind.Renew && command.kind !== CommandKind.SessionRenew;
  const isNamed = isRemembered && command.requestKind === RequestKind.Free;
  if (isNamed && machine.freeResultsLeft <= inFlight) {
    const id = command.bytes.subarray(
      command.requestOffset,
      command.requestOffset + command.requestBytes,
    );
    if (machine.lookupFree(command.principal, id, outcome) === 'unknown') {
      replyRefusal(state, connection, correlation, OutcomeCode.Limit, null, -1, 'request');
      return false;
    }
  }
  if (!command.hasSession) return true;
  const slot = machine.sessionSlot(
    command.session0,
    command.session1,
    command.session2,
    command.session3,
  );
  if (slot < 0) {
    // Every entry before this term is applied, and an id is known only from an applied entry.
    outcome.reset();
    outcome.kind = command.kind;
    outcome.code = OutcomeCode.SessionExpired;
    outcome.entryTime = machine.now;
    replyOutcome(state, connection, correlation, outcome);
    return false;
  }
  const number = machine.sessionNumberAt(slot);
  if (state.attachments.isAttached(slot, number, connection)) return true;
  const message = 'attach the session to this connection first';
  replyRefusal(state, connection, correlation, OutcomeCode.Forbidden, message);
  return false;
}

/**
 * Encodes the facts of an explanation.
 *
 * Owns: their places: lock|nil, events, request|nil, lease|nil, revision, applied_index, then the
 * rule that disables the lock, what operators said of the events, and grants_from|nil. Never: what
 * they mean (explain.ts). Used by: replica.
 */
import { OutcomeCode } from '../core/locks/outcome.js';
import type {
  LeaseReading,
  LockReading,
  LookupState,
  RuleReading,
} from '../core/locks/readings.js';
import type { PackValue } from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';
import { lockRow, ruleRow, waiterRow } from './query-reply.js';
import { encodeFields } from './reply.js';

/** What became of a request. */
export interface RequestReading {
  /** `session_gone`: the session of the sequence has ended and is forgotten, or never was. */
  readonly state: LookupState | 'session_gone';
  /** Done: the code of its result. */
  readonly code: number;
  readonly place: number;
  readonly token: number;
  readonly revision: number;
}

export interface ExplainFacts {
  readonly clusterTime: number;
  readonly lock: LockReading | null;
  /** Event rows, the oldest first. */
  readonly events: readonly PackValue[];
  readonly request: RequestReading | null;
  readonly lease: LeaseReading | null;
  readonly revision: number;
  readonly appliedIndex: number;
  /** Null or absent: no rule disables the lock. */
  readonly rule?: RuleReading | null;
  /** What operators and guards said, of the events and of the end of the lease: see saidIn. */
  readonly said?: readonly PackValue[];
  /** Cluster time before which nothing is granted, 0 for no such time. */
  readonly grantsFrom: number;
}

const NAMES = new TextDecoder();

export function encodeExplanation(out: OutBuffer, correlation: number, facts: ExplainFacts): void {
  const { clusterTime, lock, events, request, lease, revision, appliedIndex } = facts;
  const { rule = null, said = [], grantsFrom } = facts;
  encodeFields(out, correlation, OutcomeCode.Ok, clusterTime, [
    lock === null ? null : [...lockRow(lock), lock.queue.map(waiterRow)],
    events,
    request && [request.state, request.code, request.place, request.token, request.revision],
    lease && leaseRow(lease),
    revision,
    appliedIndex,
    rule === null ? null : ruleRow(rule),
    said,
    grantsFrom > clusterTime ? grantsFrom : null,
  ]);
}

function leaseRow({ state, name, token, deadline, cause, revision }: LeaseReading): PackValue {
  return [state, name === null ? null : NAMES.decode(name), token, deadline, cause, revision];
}

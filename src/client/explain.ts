/**
 * Why a lock, a request or a lease is as it is, for programs.
 *
 * Owns: the form of an explanation here. Never: a cause or a sentence; wire/explain.ts has those,
 * the same over HTTP and on the command line. Used by: client.ts.
 */
import type { Json } from '../wire/event-json.js';
import type { ExplainCause } from '../wire/explain.js';
import { type ExplainTarget, explainSteps } from '../wire/explain-steps.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import type { Reply } from '../wire/response.js';
import { badRequest, ErrorCode, isHoldfastError } from './errors.js';
import { checkName, checkOptions, checkRequestId } from './options.js';
import { bytesOfId, isCount, type RequestName } from './reads.js';

/** What to explain: a lock, a request or lease of one's own, or how the two stand to each other. */
export interface ExplainQuestion {
  /** Absent: found by the request or the lease. */
  readonly name?: string;
  readonly request?: RequestName;
  /** 32 hexadecimal digits. */
  readonly lease?: string;
  /** Milliseconds until the call is failed, 1 … 60,000; default 10,000. */
  readonly deadlineMs?: number;
}

/** The answer. */
export interface Explanation {
  /** The lock; null when it was not named and nothing that is kept names it. */
  readonly name: string | null;
  /** A word for programs: docs/HTTP.md lists them. */
  readonly cause: ExplainCause;
  /** Sentences for people. */
  readonly says: readonly string[];
  /** What would free the lock; null without one. */
  readonly frees: string | null;
  readonly revision: number;
  readonly clusterTimeMs: number;
}

const OPTIONS: readonly (keyof ExplainQuestion)[] = ['name', 'request', 'lease', 'deadlineMs'];

function targetOf(question: ExplainQuestion): ExplainTarget {
  checkOptions('explain', question, OPTIONS);
  const { name, request, lease } = question ?? {};
  if (name === undefined && request === undefined && lease === undefined) {
    throw badRequest('name', 'explain: give a name, a request or a lease');
  }
  const isSequence = typeof request === 'object';
  if (isSequence && !(isCount(request.sequence) && request.sequence > 0)) {
    throw badRequest('request', `sequence is ${request.sequence}, wanted 1 or more`);
  }
  return {
    name: name === undefined ? null : checkName(name),
    session: isSequence ? bytesOfId('session', request.session) : null,
    request: isSequence ? request.sequence : checkRequestId(request),
    lease: lease === undefined ? null : bytesOfId('lease', lease),
  };
}

/** Asks what is to be asked, one after the other. `ask` rejects with a refusal. */
export async function explain(
  question: ExplainQuestion,
  ask: (operation: PackValue[]) => Promise<Reply>,
): Promise<Explanation> {
  const steps = explainSteps(targetOf(question));
  let at = steps.next();
  while (at.done !== true) {
    const { operation, mayBeRefused } = at.value;
    at = steps.next(await asked(ask, operation, mayBeRefused));
  }
  return explanationOf(at.value);
}

async function asked(
  ask: (operation: PackValue[]) => Promise<Reply>,
  operation: PackValue[],
  mayBeRefused: boolean,
): Promise<Reply | null> {
  try {
    return await ask(operation);
  } catch (error) {
    if (mayBeRefused && isHoldfastError(error) && error.number === ErrorCode.Compacted) return null;
    throw error;
  }
}

function explanationOf(json: Json): Explanation {
  const { name, frees } = json;
  return {
    name: name === null ? null : String(name),
    cause: json['cause'] as ExplainCause,
    says: json['says'] as readonly string[],
    frees: frees === null ? null : String(frees),
    revision: Number(json['revision']),
    clusterTimeMs: Number(json['cluster_time']),
  };
}

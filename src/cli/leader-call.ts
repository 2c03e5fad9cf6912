/**
 * Plain requests to whoever leads, for commands that outlive no answer.
 *
 * Owns: finding the leader among the endpoints and trying again until the time-out, for work that
 * may be repeated. Never: repeats what may have had an effect, unless the caller's request id or
 * the operation itself makes that harmless. Used by: commands/session.ts, commands/transfer.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ErrorCode, HoldfastError } from '../client/errors.js';
import { type SilentNode, silentWords } from '../client/unreachable.js';
import { type Endpoint, formatEndpoint, parseEndpoint } from '../server/options.js';
import type { ClusterOptions } from './cluster-options.js';
import { HOPELESS_MS, isHopeless, withAdvice } from './explain.js';
import { NodeCall } from './node-call.js';

const RETRY_MS = 100;
/** One node is given this long before the next is asked. */
const NODE_TIMEOUT_MS = 2_000;

/** A round with less time than this would say of every node that it does not answer. */
const ROUND_MS_LEAST = 20;
const UNASKED = new HoldfastError(ErrorCode.NoQuorum, { message: 'no node was asked in time' });

const WORTH_ANOTHER_TRY: ReadonlySet<number> = new Set([
  ErrorCode.NotLeader,
  ErrorCode.NoQuorum,
  ErrorCode.ShuttingDown,
  ErrorCode.Overloaded,
]);

/** The address of the leader that a greeted node names, null when it names none or itself. */
function leaderNamed(call: NodeCall): Endpoint | null {
  const { greeting } = call;
  if (greeting === null || greeting.leaderId === greeting.nodeId) return null;
  const leader = greeting.members.find((member) => member.nodeId === greeting.leaderId);
  return leader === undefined ? null : parseEndpoint('leader', leader.address);
}

function isLeader(call: NodeCall): boolean {
  return call.greeting !== null && call.greeting.leaderId === call.greeting.nodeId;
}

/**
 * Runs `work` on a connection to the leader, again after a leader change, until it succeeds.
 *
 * @param work may run several times; it must be harmless when an earlier run had its effect.
 * Rejects, when the time-out of `options` is over, with the last refusal of a node, or with whom it
 *   could not reach; sooner when every node refuses to be reached and no time-out was given; at
 *   once with any other refusal than those that a new leader lifts.
 */
export async function withLeader<T>(
  options: ClusterOptions,
  work: (call: NodeCall) => Promise<T>,
): Promise<T> {
  const { timeoutMs, isTimeoutGiven } = options;
  const started = performance.now();
  const elapsedMs = (): number => performance.now() - started;
  let lastError = UNASKED;
  do {
    const round = await askAll(options.endpoints, () => timeoutMs - elapsedMs(), work);
    if (round.kind === 'done') return round.value;
    lastError = round.error;
    if (!isTimeoutGiven && elapsedMs() > HOPELESS_MS && isHopeless(lastError)) break;
    await delay(Math.max(0, Math.min(RETRY_MS, timeoutMs - elapsedMs())));
  } while (timeoutMs - elapsedMs() >= ROUND_MS_LEAST);
  throw withAdvice(lastError);
}

type Round<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: HoldfastError };

/** Asks one node after the other, the leader that one names next. */
async function askAll<T>(
  endpoints: readonly Endpoint[],
  leftMs: () => number,
  work: (call: NodeCall) => Promise<T>,
): Promise<Round<T>> {
  const candidates = [...endpoints];
  const asked = new Set<string>();
  const silent: SilentNode[] = [];
  let heard: HoldfastError | null = null;
  for (let next = candidates.shift(); next !== undefined; next = candidates.shift()) {
    const address = formatEndpoint(next);
    if (asked.has(address) || leftMs() <= 0) continue;
    asked.add(address);
    try {
      const result = await tryNode(next, Math.min(leftMs(), NODE_TIMEOUT_MS), work);
      if (result.kind === 'done') return result;
      const message = `no leader: ${address} does not lead and knows no leader that answers`;
      heard = new HoldfastError(ErrorCode.NoQuorum, { message });
      if (result.leader !== null) candidates.unshift(result.leader);
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (!WORTH_ANOTHER_TRY.has(error.number)) throw error;
      if (error.details.silent === undefined) heard = error;
      else silent.push(...error.details.silent);
    }
  }
  if (heard !== null || silent.length === 0) return { kind: 'failed', error: heard ?? UNASKED };
  const init = { message: silentWords(silent), details: { silent } };
  return { kind: 'failed', error: new HoldfastError(ErrorCode.NoQuorum, init) };
}

type Attempt<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'elsewhere'; readonly leader: Endpoint | null };

async function tryNode<T>(
  endpoint: Endpoint,
  timeoutMs: number,
  work: (call: NodeCall) => Promise<T>,
): Promise<Attempt<T>> {
  const call = await NodeCall.open(endpoint, Math.max(1, timeoutMs));
  try {
    if (!isLeader(call)) return { kind: 'elsewhere', leader: leaderNamed(call) };
    return { kind: 'done', value: await work(call) };
  } finally {
    call.close();
  }
}

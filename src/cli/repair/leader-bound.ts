/**
 * How far the log of the cluster reaches, for certain: what a node that is down may have
 * acknowledged lies at or below.
 *
 * Owns: the order of the questions. The last index of a leader counts when it has confirmed, after
 * it was read, that it still leads, and in the same term: then no other leader has had an entry
 * acknowledged that it lacks. Never: a change. Used by: commands/repair.ts.
 */
import { CommandKind } from '../../wire/request.js';
import type { ClusterOptions } from '../cluster-options.js';
import { withLeader } from '../leader-call.js';
import type { NodeCall } from '../node-call.js';

interface Standing {
  readonly isLeader: boolean;
  readonly term: number;
  readonly lastIndex: number;
}

/** A name for a read whose answer does not matter. */
const ANY_NAME = 'holdfast/repair';

async function standingOf(call: NodeCall): Promise<Standing> {
  const { fields } = await call.request([CommandKind.Status]);
  const status = fields[0] as Readonly<Record<string, unknown>>;
  const counters = status['counters'] as Readonly<Record<string, number>>;
  return {
    isLeader: status['role'] === 'leader',
    term: Number(status['term']),
    lastIndex: counters['last_index'] ?? 0,
  };
}

/** Null: leadership has moved meanwhile, ask again. */
async function boundOf(call: NodeCall): Promise<number | null> {
  const before = await standingOf(call);
  await call.request([CommandKind.Get, ANY_NAME, false, null]);
  const after = await standingOf(call);
  const isSame = before.isLeader && after.isLeader && before.term === after.term;
  return isSame ? before.lastIndex : null;
}

/** Rejects with a HoldfastError when no leader confirms itself within the time-out. */
export async function readLeaderBound(options: ClusterOptions): Promise<number> {
  for (;;) {
    const bound = await withLeader(options, boundOf);
    if (bound !== null) return bound;
  }
}

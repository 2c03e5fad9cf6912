/**
 * `holdfast get NAME` and `holdfast ls [PREFIX]`: who holds what, and who waits.
 *
 * Owns: how locks are shown. Times are cluster time; for people they are told as ages. Never: a
 * lease id, which nodes do not show. Used by: commands/table.ts.
 */
import type {
  DisabledView,
  HolderView,
  LockSummary,
  LockView,
  WaiterView,
} from '../../client/lock-view.js';
import type { Need } from '../client-holder.js';
import { readClusterOptions } from '../cluster-options.js';
import {
  CLUSTER_OPTIONS,
  type CommandInput,
  type CommandSpec,
  type OptionSpec,
} from '../command.js';
import { formatDuration } from '../duration.js';
import { ExitCode } from '../exit-codes.js';
import { explainField } from '../explain.js';
import { formatTable } from '../output.js';

const STALE_OPTION: OptionSpec = {
  name: 'stale',
  kind: 'flag',
  value: '',
  summary: 'answer from what the asked node has applied, without asking the leader',
};

function metadataText(metadata: Uint8Array | null): string | null {
  return metadata === null || metadata.length === 0 ? null : new TextDecoder().decode(metadata);
}

function holderJson(holder: HolderView | null, clusterTimeMs: number): unknown {
  if (holder === null) return null;
  return {
    fencing_token: holder.token,
    since: holder.sinceMs,
    expires_at: holder.deadlineMs,
    expires_in_ms: Math.max(0, holder.deadlineMs - clusterTimeMs),
    last_renewed: holder.lastRenewedMs,
    principal: holder.principal,
    in_session: holder.inSession,
    metadata: metadataText(holder.metadata),
  };
}

function waiterJson(waiter: WaiterView, clusterTimeMs: number): unknown {
  return {
    place: waiter.place,
    since: waiter.sinceMs,
    until: waiter.untilMs,
    until_in_ms: Math.max(0, waiter.untilMs - clusterTimeMs),
    principal: waiter.principal,
    metadata: metadataText(waiter.metadata),
  };
}

function disabledJson(rule: DisabledView | null): unknown {
  if (rule === null) return null;
  return {
    name: rule.name,
    is_prefix: rule.isPrefix,
    revision: rule.revision,
    since: rule.sinceMs,
    principal: rule.principal,
    asked_by: rule.actor,
    reason: rule.reason,
  };
}

/** Which rule: `jobs/*` for a prefix. */
function disabledLine({ name, isPrefix, revision, actor, reason }: DisabledView): string {
  const which = isPrefix ? ` (${name}*)` : '';
  return `disabled  since revision ${revision}${which} by ${actor}: ${reason}`;
}

function summaryJson(lock: LockSummary): Record<string, unknown> {
  return {
    name: lock.name,
    revision: lock.revision,
    holder: holderJson(lock.holder, lock.clusterTimeMs),
    waiters: lock.waiters,
    cluster_time: lock.clusterTimeMs,
  };
}

/** The holder at the cluster time of the reading. */
export function holderLines(holder: HolderView, clusterTimeMs: number): string[] {
  const heldMs = clusterTimeMs - holder.sinceMs;
  const leftMs = holder.deadlineMs - clusterTimeMs;
  const lines = [
    `token     ${holder.token}`,
    `held for  ${formatDuration(heldMs)}`,
    `ends in   ${formatDuration(leftMs)} unless renewed`,
  ];
  const metadata = metadataText(holder.metadata);
  if (metadata !== null) lines.push(`holder    ${metadata}`);
  return lines;
}

function stateWord(lock: LockSummary): string {
  if (lock.holder !== null) return 'held';
  return lock.waiters === 0 ? 'free (not in use)' : 'free, and waited for';
}

/** One lock for people. */
export function lockLines(lock: LockView): string[] {
  const lines = [`${lock.name}  ${stateWord(lock)}`];
  if (lock.holder !== null) lines.push(...holderLines(lock.holder, lock.clusterTimeMs));
  if (lock.holder !== null || lock.waiters > 0) lines.push(`waiters   ${lock.waiters}`);
  for (const waiter of lock.queue) {
    const metadata = metadataText(waiter.metadata);
    lines.push(`  place ${waiter.place}${metadata === null ? '' : `  ${metadata}`}`);
  }
  if (lock.disabled !== null) lines.push(disabledLine(lock.disabled));
  if (lock.revision > 0) lines.push(`revision  ${lock.revision}`);
  if (lock.ageMs !== null)
    lines.push(`age       ${formatDuration(lock.ageMs)}, by this node alone`);
  return lines;
}

/** Loaded when it is needed, so that a node process does not carry the client. */
async function loadClient(): Promise<typeof import('../client-holder.js')> {
  return import('../client-holder.js');
}

/** A stale read is answered by any node, with or without a leader. */
function needOf(input: CommandInput): Need {
  return input.flag('stale') ? 'node' : 'leader';
}

async function get(input: CommandInput): Promise<number> {
  const options = readClusterOptions(input);
  const name = input.words[0] ?? '';
  const reading = { deadlineMs: options.timeoutMs, stale: input.flag('stale') };
  const { withClient } = await loadClient();
  const lock = await withClient(options, needOf(input), (client) => client.get(name, reading));
  const json = {
    ...summaryJson(lock),
    queue: lock.queue.map((waiter) => waiterJson(waiter, lock.clusterTimeMs)),
    disabled: disabledJson(lock.disabled),
    state_revision: lock.stateRevision,
    age_ms: lock.ageMs,
  };
  input.output.result(json, lockLines(lock));
  return ExitCode.Ok;
}

function rowOf(lock: LockSummary): string[] {
  const { holder } = lock;
  return [
    lock.name,
    holder === null ? 'free' : 'held',
    holder === null ? '-' : String(holder.token),
    String(lock.waiters),
    holder === null ? '' : (metadataText(holder.metadata) ?? ''),
  ];
}

async function list(input: CommandInput): Promise<number> {
  const options = readClusterOptions(input);
  const prefix = input.words[0] ?? '';
  const reading = { deadlineMs: options.timeoutMs, stale: input.flag('stale') };
  const { withClient } = await loadClient();
  const locks = await withClient(options, needOf(input), async (client) => {
    const found: LockSummary[] = [];
    for await (const lock of client.list(prefix, reading)) found.push(lock);
    return found;
  }).catch((error: unknown) => {
    const text = JSON.stringify(prefix);
    throw explainField(error, { prefix: { option: 'PREFIX', text } });
  });
  const rows = [['name', 'state', 'token', 'waiters', 'holder'], ...locks.map(rowOf)];
  const lines = locks.length === 0 ? [] : formatTable(rows);
  input.output.result({ locks: locks.map(summaryJson) }, lines);
  if (locks.length === 0 && !input.output.isJson) {
    const which = prefix === '' ? 'no lock' : `no lock whose name starts with ${prefix}`;
    input.output.note(`${which} is held or waited for`);
  }
  return ExitCode.Ok;
}

export const getCommand: CommandSpec = {
  path: ['get'],
  summary: 'show who holds a lock and who waits for it',
  details:
    'A lock that nobody holds is shown as free; that is a success too. Revision: the number of ' +
    'the event that granted or ended it last.',
  arguments: [{ name: 'NAME', summary: 'the lock', isRequired: true }],
  options: [STALE_OPTION, ...CLUSTER_OPTIONS],
  examples: [
    { words: 'get jobs/nightly', says: 'holder, token, queue' },
    { words: 'get jobs/nightly --json', says: 'the same for a script' },
  ],
  run: get,
};

export const listCommand: CommandSpec = {
  path: ['ls'],
  summary: 'list locks that are held or waited for, in byte order of their names',
  arguments: [{ name: 'PREFIX', summary: 'only names that start with it', isRequired: false }],
  options: [STALE_OPTION, ...CLUSTER_OPTIONS],
  examples: [
    { words: 'ls', says: 'every lock' },
    { words: 'ls jobs/', says: 'the locks whose names start with jobs/' },
  ],
  run: list,
};

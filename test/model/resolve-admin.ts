/**
 * Drafts of what operators and guards say, turned into commands by the state of the model.
 *
 * Owns: that the holder's own lease and token are named often, another's or none sometimes, and
 * that rules do not pile up until nothing can be acquired. Never: what a command answers. Used by:
 * resolve-draft.ts.
 */

import { CommandKind } from '../../src/core/locks/command.js';
import { type Draft, NAMES } from './drafts.js';
import type { ModelCommand } from './model-types.js';
import type { NaiveMachine } from './naive-machine.js';
import { leaseDeadline, waitDeadline } from './naive-records.js';

/** What the history of a log lends to such a command. */
export interface AdminPicks {
  /** A lease by its token: held, ended, or never issued. */
  readonly lease: number;
  /** A session by its number: live, ended, or never issued. */
  readonly session: number;
  /** A free-form id, new or used before. */
  readonly id: string;
}

/** Prefixes of the names of a log; the last covers none of them. */
const PREFIXES: readonly string[] = ['a/', 'a', '', 'x', 'ä', 'a/b/'];
const ACTORS: readonly string[] = ['ops', 'ä€😀', 'x'.repeat(128)];
const REASONS: readonly string[] = ['stuck', 'drill', 'y'.repeat(300)];

function pickFrom<T>(items: readonly T[], index: number): T | undefined {
  return items.length === 0 ? undefined : items[index % items.length];
}

/** Who asks, why, and by which id. */
function headOf(draft: Draft, picks: AdminPicks): Omit<ModelCommand, 'kind'> {
  return {
    principal: draft.principal,
    request: { kind: 'free', id: picks.id },
    owner: pickFrom(ACTORS, draft.historyBack),
    metadata: pickFrom(REASONS, draft.leaseBack),
  };
}

/** A lock that is held, overdue or waited for when there is one, else any. */
function busyName(machine: NaiveMachine, draft: Draft): string {
  const overdue = machine.leases.filter((lease) => leaseDeadline(lease) <= machine.now);
  const deserted = machine.waits.filter((wait) => waitDeadline(wait) <= machine.now);
  const aims: (readonly { readonly name: string }[])[] = [
    overdue,
    machine.waits,
    machine.leases,
    deserted,
    [],
  ];
  const aim = pickFrom(aims[draft.freeId % aims.length] ?? [], draft.historyBack);
  return aim?.name ?? NAMES[draft.name] ?? '';
}

export function forceReleaseOf(
  machine: NaiveMachine,
  draft: Draft,
  picks: AdminPicks,
): ModelCommand {
  const name = busyName(machine, draft);
  const held = machine.holderOf(name)?.token ?? picks.lease;
  const base = { kind: CommandKind.ForceRelease, ...headOf(draft, picks), name };
  switch (draft.leaseBack % 8) {
    case 0:
      return { ...base, lease: held };
    case 1:
      return { ...base, token: held };
    case 2:
      return { ...base, lease: held, token: held };
    case 3:
      return { ...base, lease: picks.lease };
    case 4:
      return { ...base, token: Math.max(0, held - 1 + (draft.historyBack % 3)) };
    case 5:
      return { ...base, lease: held, token: held + 1 };
    default:
      return base;
  }
}

export function disableOf(draft: Draft, picks: AdminPicks): ModelCommand {
  const isPrefix = draft.freeId % 2 === 1;
  const name = isPrefix ? pickFrom(PREFIXES, draft.historyBack) : NAMES[draft.name];
  return { kind: CommandKind.Disable, ...headOf(draft, picks), name, isPrefix };
}

/** Takes away a rule that stands; now and then one that does not, or its other kind. */
export function enableOf(machine: NaiveMachine, draft: Draft, picks: AdminPicks): ModelCommand {
  const rule = pickFrom(machine.rules, draft.historyBack);
  if (rule === undefined || draft.freeId === 0) {
    return { ...disableOf(draft, picks), kind: CommandKind.Enable };
  }
  // The empty text is a prefix only.
  const isPrefix = draft.freeId === 1 && rule.name !== '' ? !rule.isPrefix : rule.isPrefix;
  return { kind: CommandKind.Enable, ...headOf(draft, picks), name: rule.name, isPrefix };
}

export function expireSessionOf(draft: Draft, picks: AdminPicks): ModelCommand {
  return {
    kind: CommandKind.ExpireSession,
    ...headOf(draft, picks),
    targetSession: picks.session,
  };
}

export function reportRefusalOf(
  machine: NaiveMachine,
  draft: Draft,
  picks: AdminPicks,
): ModelCommand {
  const { principal, request } = headOf(draft, picks);
  return {
    kind: CommandKind.ReportRefusal,
    principal,
    request,
    name: busyName(machine, draft),
    token: Math.max(0, picks.lease),
    mark: Math.max(0, machine.revision - draft.historyBack),
    refusals: 1 + draft.freeId,
    metadata: draft.metadata,
  };
}

/** The same id with something else that it asks for. */
export function alterAdmin(command: ModelCommand, draft: Draft): ModelCommand {
  switch (draft.historyBack % 6) {
    case 0:
      return { ...command, token: command.token === undefined ? 1 : command.token + 1 };
    case 1:
      return { ...command, isPrefix: !(command.isPrefix ?? false) };
    case 2:
      return { ...command, owner: `${command.owner}?` };
    case 3:
      return { ...command, mark: (command.mark ?? 0) + 1 };
    case 4:
      return { ...command, refusals: (command.refusals ?? 0) + 1 };
    default:
      return { ...command, metadata: `${command.metadata}?` };
  }
}

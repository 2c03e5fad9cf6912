/**
 * Whether an audit stream can be true, and has what clients were told, as checks of a drill.
 *
 * Owns: the check that each rule of the stream becomes, and the two rules of acknowledgements:
 * everything that was acknowledged is there, nothing that was refused is. Never: a rule of the
 * stream by itself (verify/stream-model.ts); reads a stream. Used by: verify.ts.
 */
import type { Json } from '../../wire/event-json.js';
import { type StreamFaults, StreamModel, StreamRule } from '../verify/stream-model.js';
import { type Check, checkOf } from './check.js';
import type { Acknowledged, Ledger } from './ledger.js';

/** Which part of the stream was read. */
export interface StreamPart {
  /** As `holdfast audit --json` shows them. */
  readonly rows: readonly Json[];
  /** The first revision that was asked for, and the last that the cluster had then. */
  readonly from: number;
  readonly last: number;
  /** False: only locks under a prefix, so revisions of others lie between. */
  readonly isWhole: boolean;
}

/** The faults of each rule, in words. */
class FaultsByRule implements StreamFaults {
  private readonly words = new Map<StreamRule, string[]>();

  add(rule: StreamRule, revision: number, name: string, found: string): void {
    this.of(rule).push(`${name} at ${revision}: ${found}`);
  }

  of(rule: StreamRule): string[] {
    const known = this.words.get(rule) ?? [];
    this.words.set(rule, known);
    return known;
  }
}

/** Revisions at the end that were not told, or that the cluster did not have. */
function endFaults({ next }: StreamModel, { last, isWhole }: StreamPart): string[] {
  if (next - 1 > last) return [`revision ${next - 1} is beyond the last, ${last}`];
  if (!isWhole || next > last) return [];
  return [next === last ? `revision ${last} is missing` : `revisions ${next} to ${last} miss`];
}

function isSame(row: Json | undefined, told: Acknowledged): boolean {
  if (row === undefined) return false;
  const { type, lock, token, requestId } = told;
  const isNamed = requestId === null || row['request_id'] === requestId;
  return row['type'] === type && row['name'] === lock && row['fencing_token'] === token && isNamed;
}

function acknowledgedFaults(rows: readonly Json[], ledger: Ledger): string[] {
  const faults: string[] = [];
  const byRevision = new Map(rows.map((row) => [row['revision'], row]));
  for (const told of ledger.acknowledged) {
    if (isSame(byRevision.get(told.revision), told)) continue;
    const { type, lock, token, revision } = told;
    faults.push(`${lock}: ${type} with token ${token} was acknowledged at ${revision}, and is not`);
  }
  return faults;
}

function unbornFaults(rows: readonly Json[], ledger: Ledger): string[] {
  const revisions = new Map(rows.map((row) => [row['request_id'], row['revision']]));
  return ledger.unborn.flatMap(({ requestId, code }) => {
    const revision = revisions.get(requestId);
    return revision === undefined ? [] : [`${requestId} was refused with ${code}, at ${revision}`];
  });
}

/** Every rule, with what was looked at or what breaks it, and the model that was led through. */
export function checkStream(
  part: StreamPart,
  ledger: Ledger,
): { readonly checks: Check[]; readonly model: StreamModel } {
  const { rows, from, last, isWhole } = part;
  const faults = new FaultsByRule();
  const model = new StreamModel(from, faults, isWhole);
  for (const row of rows) model.take(row);
  const count = (type: string): number => rows.filter((row) => row['type'] === type).length;
  const [grants, waits] = [`${count('granted')} grants`, `${count('queued')} waits`];
  const order = isWhole
    ? 'the audit stream has every revision once, in order'
    : 'the audit stream has its revisions once, in order';
  const span = `${rows.length} events, revisions ${from} to ${last}`;
  const { Order, Tokens, Holders, Queues, Disabled } = StreamRule;
  const checks = [
    checkOf(order, [...faults.of(Order), ...endFaults(model, part)], span),
    checkOf('tokens rise, each the revision of its grant', faults.of(Tokens), grants),
    checkOf('a lock has one holder at a time', faults.of(Holders), grants),
    checkOf('waiters are granted in the order of their line', faults.of(Queues), waits),
    checkOf('nobody is let in where that is disabled', faults.of(Disabled), grants),
    checkOf(
      'what was acknowledged is in the stream, as it was told',
      acknowledgedFaults(rows, ledger),
      `${ledger.acknowledged.length} acknowledgements`,
    ),
  ];
  if (ledger.unborn.length > 0) {
    const what = 'what was refused without an effect has had none';
    checks.push(checkOf(what, unbornFaults(rows, ledger), `${ledger.unborn.length} refusals`));
  }
  return { checks, model };
}

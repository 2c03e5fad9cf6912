/**
 * I6: a free-form id is kept until max(retention after its result was final, its not_after), and
 * from then on it is a new request, which its own not_after still keeps from any effect.
 *
 * Judges the committed log alone: each command by the stamp of its entry, so it is known to the ms
 * when an id is forgotten. Gives the lives of each id, one for each result that it got, of which a
 * cancel that came before it is one: what histories cannot know, since nobody need have been told.
 * Used by: check-run.ts.
 */
import type { LedgerEntry, SeenOutcome } from '../ledger.js';
import { idWith, operationsOf, textOf } from './logged-operation.js';
import { Verdict } from './verdict.js';

const OK = 0;
const QUEUED = 1;
const MISMATCH = 18;
const LIMIT = 21;
const DEADLINE_PASSED = 22;
const BAD_REQUEST = 23;
const KIND = { open: 32, acquire: 36, cancel: 39 } as const;
/** Renewals and keep-alives: carried out whatever their id is. */
const UNNAMED = new Set([33, 37, 40]);
const NOT_AFTER_AT = 14;
const NEVER = Number.POSITIVE_INFINITY;
const text = new TextDecoder();

interface Kept {
  /** Cluster time from which it is forgotten; NEVER while its wait stands. */
  until: number;
  readonly notAfter: number;
}

/** How many results each free-form id has had. */
export type Lives = ReadonlyMap<string, number>;

/** Refusals of an id itself become no result. */
function isStored({ code, blob }: SeenOutcome): boolean {
  if (code === DEADLINE_PASSED) return false;
  if (code !== LIMIT && code !== BAD_REQUEST) return true;
  return !/^(request|not_after)/.test(text.decode(blob));
}

class Log {
  readonly verdict = new Verdict('forgetting');
  readonly lives = new Map<string, number>();
  private readonly kept = new Map<string, Kept>();
  private readonly places = new Map<number, string>();

  constructor(private readonly retentionMs: number) {}

  add(entry: LedgerEntry): void {
    this.addCompletions(entry);
    for (const [at, { principal, fields }] of operationsOf(entry.data).entries()) {
      const outcome = entry.outcomes[at];
      const request = textOf(fields[1]);
      if (outcome === undefined || request === undefined) continue;
      if (UNNAMED.has(fields[0] as number)) continue;
      this.addCommand(idWith(principal, request), fields, outcome, entry.stampMs);
      const target = fields[0] === KIND.cancel ? textOf(fields[5]) : undefined;
      if (target !== undefined && outcome.code === OK && !outcome.replay) {
        this.addCancelled(idWith(principal, target), entry.stampMs);
      }
    }
    // A wait that a later command of its own entry has ended.
    this.addCompletions(entry);
  }

  private addCommand(
    id: string,
    fields: readonly unknown[],
    outcome: SeenOutcome,
    stampMs: number,
  ): void {
    const { code, replay, revision } = outcome;
    const known = this.kept.get(id);
    if (known !== undefined && stampMs < known.until) {
      this.verdict.demand(replay || code === MISMATCH, () => {
        return `${id} is kept until ${known.until} and is carried out anew at ${stampMs}`;
      });
      return;
    }
    const isPlain = fields[0] === KIND.acquire || fields[0] === KIND.open;
    this.verdict.demand(!isPlain || !replay, () => {
      return `${id} is answered again at ${stampMs}, kept until ${known?.until}`;
    });
    const logged = fields[0] === KIND.acquire ? fields[NOT_AFTER_AT] : undefined;
    const notAfter = typeof logged === 'number' ? logged : 0;
    const isVoid = notAfter > 0 && stampMs >= notAfter;
    this.verdict.demand(!isVoid || code === DEADLINE_PASSED, () => {
      return `${id} is carried out at ${stampMs}, not after ${notAfter}`;
    });
    if (!isStored(outcome)) return;
    this.addLife(id);
    if (code === QUEUED) this.places.set(revision, id);
    const finalAt = code === QUEUED ? NEVER : stampMs + this.retentionMs;
    this.kept.set(id, { until: Math.max(finalAt, notAfter), notAfter });
  }

  /** An id that was cancelled before it was heard: nobody knows its not_after. */
  private addCancelled(id: string, stampMs: number): void {
    const known = this.kept.get(id);
    if (known !== undefined && stampMs < known.until) return;
    this.addLife(id);
    this.kept.set(id, { until: stampMs + this.retentionMs, notAfter: 0 });
  }

  private addLife(id: string): void {
    this.lives.set(id, (this.lives.get(id) ?? 0) + 1);
  }

  private addCompletions({ completions, stampMs }: LedgerEntry): void {
    for (const { place } of completions) {
      const known = this.kept.get(this.places.get(place) ?? '');
      if (known === undefined) continue;
      this.places.delete(place);
      known.until = Math.max(stampMs + this.retentionMs, known.notAfter);
    }
  }
}

export function checkForgetting(
  entries: readonly LedgerEntry[],
  retentionMs: number,
): { readonly verdict: Verdict; readonly lives: Lives } {
  const log = new Log(retentionMs);
  for (const entry of entries) log.add(entry);
  return log;
}

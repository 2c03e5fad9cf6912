/**
 * What an explanation says of operators: by which rule a lock is disabled, who ended a lease by
 * force, and why.
 *
 * Owns: those sentences, and where to look when the entry has left memory. Never: a cause
 * (explain.ts). Used by: explain.ts.
 */
import { commandName } from './audit.js';
import type { Json } from './event-json.js';
import { countAt, textOrBytes } from './lock-json.js';

/** Rows [revision, command, actor, asked_by|nil, reason|nil] as JSON. */
export function saidJson(rows: readonly unknown[] | null): Json[] {
  return (rows ?? []).map((row) => {
    const fields: readonly unknown[] = Array.isArray(row) ? row : [];
    return {
      revision: countAt(fields, 0),
      command: commandName(fields[1]),
      principal: countAt(fields, 2),
      ...textOrBytes('asked_by', fields[3]),
      ...textOrBytes('reason', fields[4]),
    };
  });
}

/** What a rule disables. */
export function ruledBy(rule: Json): string {
  if (rule['is_prefix'] !== true) return 'this lock';
  return rule['name'] === '' ? 'every lock' : `every lock under ${JSON.stringify(rule['name'])}`;
}

/** `ago`: how long ago, in words. */
export function ruleSentence(rule: Json, ago: string): string {
  const { asked_by: who, principal, reason } = rule;
  const made = `disabled with revision ${rule['revision']}, ${ago} ago`;
  return `${ruledBy(rule)} was ${made}, by ${who} (principal ${principal}): ${reason}.`;
}

/** How a rule is taken back. */
export function enableWords(rule: Json): string {
  const { name, is_prefix: isPrefix } = rule;
  const which = isPrefix === true ? `--prefix ${JSON.stringify(name)}` : JSON.stringify(name);
  return `${ruledBy(rule)} is enabled again (holdfast admin enable ${which})`;
}

function lookUp(revision: unknown): string {
  return `holdfast audit --from ${revision} --count 1`;
}

/** A request was refused DISABLED by a rule that is not there any more. */
export function oldRuleSentence(revision: unknown): string {
  return `the rule of revision ${revision} is not there any more: ${lookUp(revision)}.`;
}

/** Who ended the lease whose end has this revision, and why. */
export function forcedSentence(revision: unknown, said: readonly Json[]): string {
  const words = said.find((each) => each['revision'] === revision);
  const ended = `it was ended by force with revision ${revision}`;
  if (words === undefined) return `${ended}; who asked, and why: ${lookUp(revision)}.`;
  const { asked_by: who, principal, command, reason } = words;
  return `${ended}, by ${who} (principal ${principal}, ${command}): ${reason}.`;
}

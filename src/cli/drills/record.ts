/**
 * The recovery record of a drill: what was played, what was found, and whether all is as before.
 *
 * Owns: its fields, as JSON for programs and as a story for people, and when it is complete. Never:
 * a finding of its own. Used by: run-drill.ts, canary.ts.
 */
import { RETRY_BACKOFF_MS, RETRY_BACKOFF_MS_MAX, RETRY_SHARE } from '../../client/bounds.js';
import type { LockView } from '../../client/index.js';
import type { Json } from '../../wire/event-json.js';
import { auditLine } from '../audit/line.js';
import { formatTable } from '../output.js';
import { brokenOf, type Check } from './check.js';
import { type Service, serviceWords } from './service.js';
import type { Step, Story } from './story.js';
import type { Findings } from './verify.js';

/** How the cluster served around the drill. */
export interface ServiceRecord {
  readonly before: Service;
  readonly after: Service;
  /** Figures that are not back: success, p99, lag. */
  readonly missing: readonly string[];
  /** From the end of the scenario until `after`, and the longest time without a success. */
  readonly backAfterMs: number;
  readonly longestGapMs: number;
}

/** Everything that a record is made from. */
export interface RecordParts {
  readonly drill: string;
  readonly title: string;
  readonly protection: string;
  /** Set when a test has taken something away; '' otherwise. */
  readonly test: string;
  readonly startedAt: Date;
  readonly story: Story;
  readonly operationId: string;
  readonly lock: string;
  readonly findings: Findings;
  /** The lock at the end, and why it is so; null when nobody could say. */
  readonly view: LockView | null;
  readonly explanation: Json | null;
  readonly service: ServiceRecord;
  readonly repeated: { readonly retries: number; readonly resends: number };
  /** Folder that was kept, '' when it was not. */
  readonly folder: string;
}

export interface RecoveryRecord {
  /** Checked, and the service is as it was. */
  readonly isComplete: boolean;
  /** What was not as it should be, in a sentence each; empty when complete. */
  readonly faults: readonly string[];
  readonly json: Json;
  readonly lines: readonly string[];
}

const RETRY_POLICY =
  'the same request id, at the next leader after a lost connection; after a refusal with full ' +
  `jitter, ${RETRY_BACKOFF_MS} to ${RETRY_BACKOFF_MS_MAX} ms, for ${RETRY_SHARE * 100} % of ` +
  'requests at most';

function faultsOf(checks: readonly Check[], { missing, before, after }: ServiceRecord): string[] {
  const faults = brokenOf(checks).map(({ what, found }) => `${what}: ${found}`);
  if (missing.length > 0) {
    const [was, is] = [serviceWords(before), serviceWords(after)];
    faults.push(`${missing.join(', ')} not back within 10 % of before: ${is}; before: ${was}`);
  }
  return faults;
}

/** A step that another process saw may have been told later than it happened. */
function inOrder(steps: readonly Step[]): Step[] {
  return [...steps].sort((left, right) => left.atMs - right.atMs);
}

function stepJson({ atMs, what, revision, token }: Step): Json {
  return {
    at_ms: Math.round(atMs),
    what,
    revision: revision ?? null,
    fencing_token: token ?? null,
  };
}

function serviceJson({ operations, success, p99Ms, lagMs }: Service): Json {
  const lag = Number.isFinite(lagMs) ? lagMs : null;
  return { operations, success, p99_ms: p99Ms, lag_ms: lag };
}

function ownerJson(view: LockView | null): Json | null {
  if (view?.holder == null) return null;
  const { token, sinceMs, principal } = view.holder;
  return { fencing_token: token, since: sinceMs, principal };
}

function jsonOf(parts: RecordParts, checks: readonly Check[], faults: readonly string[]): Json {
  const { findings, service, story } = parts;
  const { agreed, checkpoint } = findings;
  return {
    drill: parts.drill,
    scenario: parts.title,
    complete: faults.length === 0,
    test: parts.test === '' ? null : parts.test,
    started_at: parts.startedAt.toISOString(),
    took_ms: Math.round(story.elapsedMs),
    operation_id: parts.operationId,
    lock: parts.lock,
    last_durable_revision: agreed?.revision ?? null,
    state: agreed === null ? null : { log_index: agreed.index, digest: agreed.digest },
    projection_checkpoint:
      checkpoint === null
        ? null
        : { cluster_id: checkpoint.clusterId, next_revision: checkpoint.next },
    retry_policy: { words: RETRY_POLICY, ...parts.repeated },
    reconciliation: {
      status: brokenOf(checks).length === 0 ? 'reconciled' : 'not reconciled',
      faults,
    },
    owner: ownerJson(parts.view),
    service: {
      before: serviceJson(service.before),
      after: serviceJson(service.after),
      not_back: service.missing,
      back_after_ms: Math.round(service.backAfterMs),
      longest_gap_ms: Math.round(service.longestGapMs),
    },
    checks: checks.map(({ what, isKept, found }) => ({ what, kept: isKept, found })),
    story: inOrder(story.steps).map(stepJson),
    events: findings.events,
    explanation: parts.explanation,
    folder: parts.folder === '' ? null : parts.folder,
  };
}

function storyLines(steps: readonly Step[]): string[] {
  const rows = steps.map(({ atMs, what, revision, token }) => [
    `${(atMs / 1_000).toFixed(2)} s`.padStart(8),
    revision === undefined ? '' : `revision ${revision}`,
    token === undefined ? '' : `token ${token}`,
    what,
  ]);
  return formatTable(rows);
}

function ownerWords(view: LockView | null): string {
  if (view === null) return 'nobody could say';
  return view.holder === null ? 'nobody' : `the holder of token ${view.holder.token}`;
}

function recordRows(parts: RecordParts, isReconciled: boolean): string[][] {
  const { agreed, checkpoint } = parts.findings;
  const { before, after, backAfterMs, longestGapMs } = parts.service;
  const rest = `without a success for ${Math.round(longestGapMs)} ms at most`;
  const { retries, resends } = parts.repeated;
  return [
    ['operation', parts.operationId],
    ['lock', parts.lock],
    ['owner', ownerWords(parts.view)],
    ['last durable revision', agreed === null ? 'unknown' : String(agreed.revision)],
    ['projection checkpoint', checkpoint === null ? 'unknown' : `revision ${checkpoint.next}`],
    ['retry policy', `${RETRY_POLICY} (load: ${retries} after a refusal, ${resends} otherwise)`],
    ['reconciliation', isReconciled ? 'reconciled' : 'NOT reconciled'],
    ['service before', serviceWords(before)],
    ['service after', `${serviceWords(after)}; ${Math.round(backAfterMs)} ms later; ${rest}`],
  ];
}

function linesOf(parts: RecordParts, checks: readonly Check[], faults: readonly string[]) {
  const { drill, title, protection, story, findings, explanation, test, folder } = parts;
  const lines = [`${drill}: ${title}`, `  relies on: ${protection}`];
  if (test !== '') lines.push(`  UNDER TEST: ${test}`);
  lines.push('  what happened', ...storyLines(inOrder(story.steps)).map((line) => `    ${line}`));
  const events = findings.events.map((event) => `    ${auditLine(event)}`);
  if (events.length > 0) lines.push('  what the audit stream says of the lock', ...events);
  const says = (explanation?.['says'] ?? []) as readonly string[];
  if (says.length > 0) lines.push(`  what explain says: ${says.join(' ')}`);
  const rows = checks.map(({ what, isKept, found }) => [isKept ? 'kept' : 'BROKEN', what, found]);
  lines.push('  what had to hold', ...formatTable(rows).map((line) => `    ${line}`));
  const record = recordRows(parts, brokenOf(checks).length === 0);
  lines.push('  recovery record', ...formatTable(record).map((line) => `    ${line}`));
  if (folder !== '') lines.push(`  kept in ${folder}`);
  const took = `${(story.elapsedMs / 1_000).toFixed(1)} s`;
  lines.push(faults.length === 0 ? `complete, in ${took}` : `NOT complete, in ${took}`);
  return lines;
}

export function recordOf(parts: RecordParts): RecoveryRecord {
  const checks = [...parts.story.checks, ...parts.findings.checks];
  const faults = faultsOf(checks, parts.service);
  return {
    isComplete: faults.length === 0,
    faults,
    json: jsonOf(parts, checks, faults),
    lines: linesOf(parts, checks, faults),
  };
}

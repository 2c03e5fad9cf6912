/**
 * What the nodes’ own checks of their disks have found, asked over HTTP.
 *
 * Owns: asking for a pass and waiting until it is through. Never: a check of its own. A node that
 * does not answer, or has no such check, is told as such. Used by: cluster-check.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Endpoint, formatEndpoint } from '../../server/options.js';
import { Check, type Findings } from './finding.js';

/** The answer of /v1/cluster/scrub. */
export interface ScrubAnswer {
  readonly node: number;
  readonly enabled: boolean;
  readonly running: boolean;
  readonly paused: boolean;
  readonly passes: number;
  readonly bytes: number;
  readonly failure: string | null;
  readonly age_ms: number;
  readonly segments: number;
  readonly snapshots: number;
  readonly faults: readonly {
    readonly kind: string;
    readonly file: string;
    readonly index: number;
    readonly found: string;
  }[];
  readonly asked_pass: number | null;
}

export interface ScrubReport {
  readonly address: string;
  /** Null: it did not answer. */
  readonly answer: ScrubAnswer | null;
  /** Why it did not answer, or why its pass failed; '' when all is well. */
  readonly reason: string;
}

const LOOK_MS = 100;

async function ask(
  address: string,
  method: 'GET' | 'POST',
  timeoutMs: number,
): Promise<ScrubAnswer> {
  const response = await fetch(`http://${address}/v1/cluster/scrub`, {
    method,
    ...(method === 'POST' && { body: '{}', headers: { 'content-type': 'application/json' } }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (!response.ok) throw new Error(`it answers ${response.status}`);
  return (await response.json()) as ScrubAnswer;
}

/** Asks for a pass and waits for its end, however long that takes, while it gets on. */
async function passNow(address: string, timeoutMs: number): Promise<ScrubAnswer> {
  let answer = await ask(address, 'POST', timeoutMs);
  const wanted = answer.asked_pass ?? 0;
  let { bytes } = answer;
  let movedAtMs = performance.now();
  while (answer.passes < wanted) {
    await delay(LOOK_MS);
    answer = await ask(address, 'GET', timeoutMs);
    if (answer.bytes !== bytes) movedAtMs = performance.now();
    bytes = answer.bytes;
    if (performance.now() - movedAtMs <= timeoutMs) continue;
    throw new Error(
      answer.paused ? 'its check stands still: the node is behind' : 'it does not get on',
    );
  }
  return answer;
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: NodeJS.ErrnoException };
  return cause?.code ?? cause?.message ?? (error as Error).message;
}

async function reportOf(
  endpoint: Endpoint,
  isPassWanted: boolean,
  timeoutMs: number,
): Promise<ScrubReport> {
  const address = formatEndpoint(endpoint);
  try {
    const answer = isPassWanted
      ? await passNow(address, timeoutMs)
      : await ask(address, 'GET', timeoutMs);
    return { address, answer, reason: answer.failure ?? '' };
  } catch (error) {
    return { address, answer: null, reason: reasonOf(error) };
  }
}

/** Asks every node; damage that one knows of is a finding. */
export async function readScrubs(
  endpoints: readonly Endpoint[],
  isPassWanted: boolean,
  timeoutMs: number,
  findings: Findings,
): Promise<ScrubReport[]> {
  const asked = endpoints.map((endpoint) => reportOf(endpoint, isPassWanted, timeoutMs));
  const reports = await Promise.all(asked);
  for (const { answer } of reports) {
    for (const { file, index, found } of answer?.faults ?? []) {
      const place = index === 0 ? file : `${file}, index ${index}`;
      findings.add(Check.Scrub, `node ${answer?.node}: ${place}`, found);
    }
  }
  return reports;
}

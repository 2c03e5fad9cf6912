/**
 * What the cluster and the resource say when a drill is over, held against each other and against
 * what clients were told.
 *
 * Owns: reading it: the state of every node, the audit stream of every node, the list of locks, the
 * guard's marks. Never: a rule of the stream (stream-rules.ts). What cannot be read is a check that
 * was not kept, with the reason. Used by: run-drill.ts, canary.ts.
 */
import type { Client } from '../../client/index.js';
import { AUDIT_ROWS_MAX } from '../../limits.js';
import type { Endpoint } from '../../server/options.js';
import type { Json } from '../../wire/event-json.js';
import { openPages } from '../audit/source.js';
import { findDisagreement } from '../commands/status.js';
import { type NodeStatus, readStatus } from '../node-status.js';
import type { StreamModel } from '../verify/stream-model.js';
import { type Check, checkOf } from './check.js';
import type { Ledger } from './ledger.js';
import type { Resource } from './resource.js';
import { checkStream } from './stream-rules.js';
import { until } from './until.js';

/** What is looked at. */
export interface Evidence {
  /** Client address of every node. */
  readonly endpoints: readonly Endpoint[];
  readonly client: Client;
  readonly ledger: Ledger;
  readonly resource: Resource;
  /** The lock that the drill is about, and the prefix of all its locks. */
  readonly lock: string;
  readonly prefix: string;
  /** The first revision that may be the drill's. */
  readonly from: number;
  /** True: the cluster is the drill's own, so its whole stream and every node's state count. */
  readonly isOwn: boolean;
  /** How long nodes may take to agree, and a stream to be read. */
  readonly patienceMs: number;
  /** Under test: one event is taken out of what was read. */
  readonly hidesEvent: boolean;
}

/** The state that all nodes agree on. */
export interface Agreed {
  readonly index: number;
  readonly revision: number;
  readonly digest: string;
}

export interface Findings {
  readonly checks: readonly Check[];
  /** Null: they do not agree, or a cluster that others use was never at one index. */
  readonly agreed: Agreed | null;
  /** How far the audit stream was read; null when it could not be. */
  readonly checkpoint: { readonly clusterId: string; readonly next: number } | null;
  /** Events of the drill's lock, as the audit stream shows them. */
  readonly events: readonly Json[];
}

interface Stream {
  readonly rows: readonly Json[];
  readonly next: number;
  readonly last: number;
  readonly clusterId: string;
}

const STATUS_MS = 2_000;
/** A cluster that others use is seldom at one index on all nodes: it is looked at so long. */
const AGREE_BUSY_MS_MAX = 2_000;
const LIST_ATTEMPTS = 20;

/** Of every node; of a cluster that others use, of those that answer. */
async function statusesOf({ endpoints, isOwn }: Evidence): Promise<NodeStatus[]> {
  const asked = endpoints.map((endpoint) => readStatus(endpoint, STATUS_MS));
  if (isOwn) return Promise.all(asked);
  const answers = await Promise.allSettled(asked);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

/** All nodes at one index with one digest. */
async function agreedOf(evidence: Evidence, checks: Check[]): Promise<Agreed | null> {
  const what = 'nodes that applied the same entries have the same state';
  let seen: readonly NodeStatus[] = [];
  const look = async (): Promise<NodeStatus | null> => {
    seen = await statusesOf(evidence);
    const [first] = seen;
    const isOne = seen.every(
      ({ appliedIndex, digest }) => appliedIndex === first?.appliedIndex && digest === first.digest,
    );
    return isOne ? (first ?? null) : null;
  };
  try {
    const limitMs = evidence.isOwn ? evidence.patienceMs : AGREE_BUSY_MS_MAX;
    const { appliedIndex: index, revision, digest } = await until('one state', look, limitMs);
    checks.push(checkOf(what, [], `${seen.length} nodes at index ${index}`));
    return { index, revision, digest };
  } catch (error) {
    const differ = findDisagreement(seen).map((status) => status.nodeId);
    const isFault = evidence.isOwn || differ.length > 0;
    const words = differ.length > 0 ? `nodes ${differ.join(' and ')} differ` : reasonOf(error);
    const looked = 'not compared: they were never seen at one index, others use the cluster';
    checks.push(checkOf(what, isFault ? [words] : [], looked));
    return null;
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The stream from `from` to its present end, as the nodes at `endpoints` tell it. */
async function readStream(
  endpoints: readonly Endpoint[],
  prefix: string,
  from: number,
  timeoutMs: number,
): Promise<Stream> {
  const options = { endpoints, timeoutMs, isTimeoutGiven: true };
  const pages = openPages(options, new AbortController().signal);
  const rows: Json[] = [];
  try {
    for (let next = from; ; ) {
      const page = await pages.page({ prefix, from: next, limit: AUDIT_ROWS_MAX, waitMs: 0 });
      if (page === undefined) throw new Error('the audit stream was not read to its end');
      rows.push(...page.events);
      next = page.next;
      const { revision: last, clusterId } = page;
      if (next > last) return { rows, next, last, clusterId };
    }
  } finally {
    pages.close();
  }
}

/** The first grant of the drill's lock is taken out: what verify must then find. */
function withoutOne(rows: readonly Json[], lock: string): Json[] {
  const at = rows.findIndex((row) => row['name'] === lock && row['type'] === 'granted');
  return rows.filter((_, index) => index !== at);
}

/** What one node tells otherwise than another, as far as all have been read. */
function sameFaults(streams: readonly Stream[]): string[] {
  const end = Math.min(...streams.map((stream) => stream.last));
  const textsOf = ({ rows }: Stream): string[] =>
    rows.filter((row) => Number(row['revision']) <= end).map((row) => JSON.stringify(row));
  const [first, ...others] = streams.map(textsOf);
  return others.flatMap((texts, at) => {
    const size = Math.max(texts.length, first?.length ?? 0);
    for (let index = 0; index < size; index += 1) {
      if (texts[index] === first?.[index]) continue;
      return [`stream ${at + 2} has ${texts[index]}, stream 1 has ${first?.[index]}`];
    }
    return [];
  });
}

/** Holders by the events against holders by the list, at one revision. */
async function checkHolders(evidence: Evidence, model: StreamModel, last: number): Promise<Check> {
  const { client, prefix, endpoints, patienceMs } = evidence;
  const what = 'who holds by the stream is who holds by the list';
  let next = last + 1;
  for (let attempt = 1; attempt <= LIST_ATTEMPTS; attempt += 1) {
    const listed = new Map<string, number>();
    for await (const { name, holder } of client.list(prefix)) {
      if (holder !== null) listed.set(name, holder.token);
    }
    const news = await readStream(endpoints, prefix, next, patienceMs);
    next = news.next;
    for (const row of news.rows) model.take(row);
    // Without news since the last look the list is as old as the events, to the revision.
    if (news.rows.length > 0 && attempt < LIST_ATTEMPTS) continue;
    const byStream = new Map(model.holders());
    const names = [...new Set([...listed.keys(), ...byStream.keys()])];
    const differing = names.filter((name) => listed.get(name) !== byStream.get(name));
    const faults = differing.map((name) => {
      const [there, here] = [listed.get(name) ?? 'nobody', byStream.get(name) ?? 'nobody'];
      return `${name}: the list says ${there}, the stream ${here}`;
    });
    return checkOf(what, faults, `${listed.size} held`);
  }
  return checkOf(what, ['the locks were never still'], '');
}

/** Writes in the order in which they were done, and what the guard counted. */
async function checkResource({ resource, lock, ledger }: Evidence): Promise<Check[]> {
  const rows = resource.rows(lock);
  if (rows.length === 0 && ledger.refusedWrites.length === 0) return [];
  const stale: string[] = [];
  let highest = { writer: '', token: 0 };
  for (const row of rows) {
    if (row.token >= highest.token) highest = row;
    else stale.push(`${row.writer} wrote with token ${row.token} after ${highest.token}`);
  }
  const { token, refused } = await resource.guard.mark(lock);
  const counts: string[] = [];
  if (token !== highest.token) counts.push(`the mark is ${token}, ${highest.token} has written`);
  if (refused !== ledger.refusedWrites.length) {
    counts.push(`it counts ${refused} refusals, ${ledger.refusedWrites.length} were told`);
  }
  return [
    checkOf('no write is done under a token below an earlier one', stale, `${rows.length} writes`),
    checkOf('the guard counts what writers were told', counts, `mark ${token}, ${refused} refused`),
  ];
}

/** Reads the streams and checks them; null when one cannot be read. */
async function readStreams(evidence: Evidence, checks: Check[]): Promise<Stream | null> {
  const { endpoints, isOwn, prefix, from, ledger, lock, patienceMs } = evidence;
  try {
    const groups = isOwn ? endpoints.map((endpoint) => [endpoint]) : [endpoints];
    const wanted = isOwn ? '' : prefix;
    const streams = await Promise.all(
      groups.map((group) => readStream(group, wanted, from, patienceMs)),
    );
    const [first] = streams;
    if (first === undefined) throw new Error('there is no node to read it from');
    if (isOwn) {
      const what = 'every node tells the same audit stream';
      checks.push(checkOf(what, sameFaults(streams), `${streams.length} streams`));
    }
    const rows = evidence.hidesEvent ? withoutOne(first.rows, lock) : first.rows;
    const part = { rows, from, last: first.last, isWhole: isOwn };
    const { checks: kept, model } = checkStream(part, ledger);
    checks.push(...kept);
    checks.push(await checkHolders({ ...evidence, prefix: wanted }, model, first.last));
    return { ...first, rows };
  } catch (error) {
    checks.push(checkOf('the audit stream can be read', [reasonOf(error)], ''));
    return null;
  }
}

/** Looks at everything. Never rejects for what it finds, or cannot find. */
export async function verify(evidence: Evidence): Promise<Findings> {
  const checks: Check[] = [];
  const agreed = await agreedOf(evidence, checks);
  const stream = await readStreams(evidence, checks);
  checks.push(...(await checkResource(evidence)));
  const { lock } = evidence;
  return {
    checks,
    agreed,
    checkpoint: stream === null ? null : { clusterId: stream.clusterId, next: stream.next },
    events: stream?.rows.filter((row) => row['name'] === lock) ?? [],
  };
}

/**
 * The audit stream of a cluster as an async iterable of pages, each with a checkpoint.
 *
 * Owns: what a page and an event look like to programs, and where the stream goes on. Never: an
 * event that is skipped or told twice: a checkpoint is taken up exactly where it was given, by any
 * process, at any node. Used by: client.ts.
 */
import { AUDIT_ROWS_MAX } from '../limits.js';
import type { Json } from '../wire/event-json.js';
import type { Ambient } from './ambient.js';
import { AuditPages, type AuditPlan, type WirePage } from './audit-pages.js';
import { badRequest, clientClosed, type HoldfastError } from './errors.js';
import { checkMs, checkOptions } from './options.js';

/** One committed event, with what caused it. */
export interface AuditEvent {
  /** The same for ever, and different from every other event's: cluster id and revision. */
  readonly id: string;
  /** Version of the form of events. */
  readonly schema: number;
  readonly type: 'granted' | 'ended' | 'queued' | 'left' | 'restored';
  readonly revision: number;
  /** The lock; empty for restored, which is of none. */
  readonly name: string;
  /** Fencing token of the lease concerned; 0 where there is none. */
  readonly token: number;
  /** Place in the queue of who queued, left, or was granted after a wait; else 0. */
  readonly place: number;
  /** ended: how the lease ended; left: the code of the wait's result; else null. */
  readonly cause: string | null;
  /** Whose lease or wait it is. */
  readonly principal: number;
  /** Cluster time of the entry. */
  readonly clusterTimeMs: number;
  readonly logIndex: number;
  /** Who caused it; 0: the cluster, as for an expiry. */
  readonly actor: number;
  /** The command that caused it; null: time did. */
  readonly command: string | null;
  /** Free-form request id of that command; bytes that are no text as `hex:` and digits. */
  readonly requestId: string | null;
  /** Sequence of that command in its session. */
  readonly sequence: number | null;
  /** 32 hexadecimal digits. */
  readonly sessionId: string | null;
  /** Trace id of that command, 32 hexadecimal digits. */
  readonly traceId: string | null;
  /** Why, where that was given; null otherwise. */
  readonly reason: string | null;
}

/** Up to where a consumer has come. Plain data: store it as JSON. */
export interface AuditCheckpoint {
  /** 32 hexadecimal digits: revisions of another cluster mean nothing here. */
  readonly clusterId: string;
  /** The first revision that was not told. */
  readonly nextRevision: number;
  readonly prefix: string;
}

/** Some events, and how to go on behind them. */
export interface AuditPage {
  /** In the order of their revisions; empty where nothing below the prefix happened. */
  readonly events: readonly AuditEvent[];
  /** Store it once the events are dealt with. */
  readonly checkpoint: AuditCheckpoint;
  /** Oldest revision that the node has, and the newest. */
  readonly oldestRevision: number;
  readonly revision: number;
}

/** Which events. */
export interface AuditOptions {
  /** Only locks whose name starts so; absent: all. */
  readonly prefix?: string;
  /** First revision, or 'oldest': the oldest that is kept. Absent: what happens from now on. */
  readonly from?: number | 'oldest';
  /** Goes on where the page with this checkpoint ended. Beside neither `from` nor `prefix`. */
  readonly checkpoint?: AuditCheckpoint;
  /** False: ends when everything was told. */
  readonly follows?: boolean;
  /** Events a page, 1 … 512; default 512. */
  readonly pageSize?: number;
  /** Milliseconds without any node's page after which it ends with an error; absent: never. */
  readonly deadlineMs?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

const OPTIONS: readonly (keyof AuditOptions)[] = [
  'prefix',
  'from',
  'checkpoint',
  'follows',
  'pageSize',
  'deadlineMs',
  'signal',
];
const WAIT_MS = 5_000;
const DEADLINE_MS_MAX = 3_600_000;

/** Checks what can be checked before anything is sent. Throws BAD_REQUEST. */
export function checkAudit(options: AuditOptions): AuditOptions {
  checkOptions('audit', options, OPTIONS);
  const { from, checkpoint, prefix, pageSize, deadlineMs } = options;
  if (from !== undefined && from !== 'oldest' && !(Number.isSafeInteger(from) && from >= 1)) {
    throw badRequest('revision', `from is ${String(from)}, wanted 1 or more, or 'oldest'`);
  }
  if (checkpoint !== undefined && (from !== undefined || prefix !== undefined)) {
    throw badRequest('checkpoint', 'checkpoint has its own prefix and place: give it alone');
  }
  if (checkpoint !== undefined && !isCheckpoint(checkpoint)) {
    throw badRequest('checkpoint', 'checkpoint is not one that a page had');
  }
  if (pageSize !== undefined) {
    const isCount = Number.isSafeInteger(pageSize) && pageSize >= 1 && pageSize <= AUDIT_ROWS_MAX;
    if (!isCount) throw badRequest('limit', `pageSize is ${pageSize}, wanted 1 to 512`);
  }
  if (deadlineMs !== undefined) checkMs('deadline_ms', deadlineMs, DEADLINE_MS_MAX);
  return options;
}

function isCheckpoint(given: unknown): boolean {
  const { clusterId, nextRevision, prefix } = Object(given) as Partial<AuditCheckpoint>;
  const isPlace = Number.isSafeInteger(nextRevision) && Number(nextRevision) >= 1;
  return typeof clusterId === 'string' && typeof prefix === 'string' && isPlace;
}

/** All audit streams of one client, ended with it. */
export class AuditStreams {
  readonly #ambient: Ambient;
  readonly #plan: AuditPlan;
  readonly #streams = new Map<AuditPages, (error: HoldfastError) => void>();
  #isClosed = false;

  constructor(ambient: Ambient, plan: AuditPlan) {
    this.#ambient = ambient;
    this.#plan = plan;
  }

  /** The pages; the connection is opened by the first next(). `options` passed checkAudit. */
  async *audit(options: AuditOptions): AsyncGenerator<AuditPage, void, undefined> {
    if (this.#isClosed) throw clientClosed('none');
    let reason: HoldfastError | undefined;
    const pages = new AuditPages(this.#ambient, {
      ...this.#plan,
      deadlineMs: options.deadlineMs,
    });
    this.#streams.set(pages, (error) => {
      reason = error;
      pages.close();
    });
    const stop = this.#ambient.aborts.watch(options.signal, () => pages.close());
    if (options.signal?.aborted === true) pages.close();
    try {
      yield* told(pages, options);
      if (reason !== undefined) throw reason;
    } finally {
      stop();
      pages.close();
      this.#streams.delete(pages);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const end of this.#streams.values()) end(clientClosed('none'));
  }
}

/** The first page, and then each that goes on; until the pages are closed, or all is told. */
async function* told(
  pages: AuditPages,
  options: AuditOptions,
): AsyncGenerator<AuditPage, void, undefined> {
  const { checkpoint, follows = true, pageSize: limit = AUDIT_ROWS_MAX } = options;
  const prefix = checkpoint?.prefix ?? options.prefix ?? '';
  const waitMs = follows ? WAIT_MS : 0;
  let from = await startOf(pages, options);
  let clusterId = checkpoint?.clusterId;
  for (let isFirst = true; ; isFirst = false) {
    const page = await pages.page({ prefix, from, limit, waitMs });
    if (page === undefined) return;
    clusterId ??= page.clusterId;
    if (clusterId !== page.clusterId) {
      const message = `the checkpoint is of cluster ${clusterId}, this one is ${page.clusterId}`;
      throw badRequest('checkpoint', message);
    }
    const isNews = isFirst || page.next !== from;
    from = page.next;
    if (isNews) yield pageOf(page, prefix);
    if (!follows && page.next > page.revision) return;
  }
}

/** The first revision wanted; null: the next one. */
async function startOf(pages: AuditPages, options: AuditOptions): Promise<number | null> {
  const { checkpoint, from = null } = options;
  if (checkpoint !== undefined) return checkpoint.nextRevision;
  if (from !== 'oldest') return from;
  const page = await pages.page({ prefix: '', from: null, limit: 1, waitMs: 0 });
  return page?.oldest ?? null;
}

function pageOf({ events, next, oldest, revision, clusterId }: WirePage, prefix: string) {
  return {
    events: events.map(eventOf),
    checkpoint: { clusterId, nextRevision: next, prefix },
    oldestRevision: oldest,
    revision,
  };
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function eventOf(event: Json): AuditEvent {
  const hex = textOf(event['request_id_hex']);
  const { sequence } = event;
  return {
    id: String(event['id']),
    schema: Number(event['schema']),
    type: event['type'] as AuditEvent['type'],
    revision: Number(event['revision']),
    name: String(event['name']),
    token: Number(event['fencing_token']),
    place: Number(event['place']),
    cause: textOf(event['cause']),
    principal: Number(event['principal']),
    clusterTimeMs: Number(event['cluster_time']),
    logIndex: Number(event['log_index']),
    actor: Number(event['actor']),
    command: textOf(event['command']),
    requestId: hex === null ? textOf(event['request_id']) : `hex:${hex}`,
    sequence: typeof sequence === 'number' ? sequence : null,
    sessionId: textOf(event['session_id']),
    traceId: textOf(event['trace_id']),
    reason: textOf(event['reason']),
  };
}

/**
 * Reads the audit stream from its oldest revision and holds it against the state, while both go on.
 *
 * Owns: which revision a page of locks was read at, and that the stream is read up to exactly there
 * before the two are compared. What differs is read again, since a lease that is overdue is shown
 * as ended before an entry ends it. Never: a rule about events (stream-model.ts).
 * Used by: cluster-check.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { AuditPages } from '../../client/audit-pages.js';
import { AUDIT_ROWS_MAX, LIST_ROWS_MAX } from '../../limits.js';
import type { Endpoint } from '../../server/options.js';
import type { Json } from '../../wire/event-json.js';
import type { PackValue } from '../../wire/msgpack-writer.js';
import { CommandKind } from '../../wire/request.js';
import type { Reply } from '../../wire/response.js';
import { openPages } from '../audit/source.js';
import { NodeCall } from '../node-call.js';
import { Check, type Findings } from './finding.js';
import { type ShownLock, type StreamFaults, StreamModel } from './stream-model.js';

/** How often a lock that differs is read again, and the pause before each time. */
const LOOKS_MAX = 6;
const LOOK_MS = 250;
/** How long an answer of the stream waits for an event that the state has already. */
const WAIT_MS = 1_000;

/** What is asked of one node. */
export interface StreamNode {
  /** The page from a revision on (null: none, only where the stream begins). */
  page(from: number | null, waitMs: number): Promise<StreamPage>;
  /** One page of the locks behind a name, linearizably. */
  list(cursor: string | null): Promise<LockPage>;
  get(name: string): Promise<{ readonly lock: ShownLock; readonly revision: number }>;
}

export interface StreamPage {
  readonly events: readonly Json[];
  readonly next: number;
  readonly oldest: number;
  readonly revision: number;
}

export interface LockPage {
  readonly locks: readonly ShownLock[];
  readonly cursor: string | null;
  readonly revision: number;
}

export interface StreamReport {
  /** The oldest revision that is kept, and the last one that was read. */
  readonly from: number;
  readonly to: number;
  readonly events: number;
  /** Locks that were held against the stream. */
  readonly locks: number;
  readonly model: StreamModel;
}

function faultsInto(findings: Findings): StreamFaults {
  return {
    add: (_rule, revision, name, found) => {
      findings.add(Check.Stream, `revision ${revision} of ${name || 'no lock'}`, found);
    },
  };
}

/** The stream of one node, read as far as it is wanted. */
class Stream {
  readonly model: StreamModel;
  /** Events behind the revision that was wanted last. */
  private ahead: Json[] = [];
  private next: number;

  constructor(
    private readonly node: StreamNode,
    readonly first: number,
    findings: Findings,
  ) {
    this.model = new StreamModel(first, faultsInto(findings));
    this.next = first;
  }

  /** Takes every event up to `revision`, and none behind it. */
  async readUpTo(revision: number): Promise<void> {
    while (this.next <= revision) {
      const page = await this.node.page(this.next, WAIT_MS);
      this.ahead.push(...page.events);
      this.next = page.next;
    }
    const behind = this.ahead.findIndex((event) => Number(event['revision']) > revision);
    const taken = behind < 0 ? this.ahead.length : behind;
    for (const event of this.ahead.splice(0, taken)) this.model.take(event);
  }
}

class StateCheck {
  locks = 0;
  private readonly seen = new Set<string>();
  private readonly doubtful = new Set<string>();

  constructor(
    private readonly node: StreamNode,
    private readonly stream: Stream,
    private readonly findings: Findings,
  ) {}

  async run(): Promise<void> {
    let cursor: string | null = null;
    do {
      const page: LockPage = await this.node.list(cursor);
      await this.stream.readUpTo(page.revision);
      for (const lock of page.locks) {
        this.seen.add(lock.name);
        this.locks += 1;
        if (this.stream.model.compare(lock) !== null) this.doubtful.add(lock.name);
      }
      cursor = page.cursor;
    } while (cursor !== null);
    for (const name of this.stream.model.activeNames()) {
      if (!this.seen.has(name)) this.doubtful.add(name);
    }
    for (const name of this.doubtful) {
      if (this.findings.isFull) return;
      await this.lookAgain(name);
    }
  }

  private async lookAgain(name: string): Promise<void> {
    let found: string | null = null;
    let revision = 0;
    for (let look = 0; look < LOOKS_MAX; look += 1) {
      if (look > 0) await delay(LOOK_MS);
      const shown = await this.node.get(name);
      ({ revision } = shown);
      await this.stream.readUpTo(revision);
      found = this.stream.model.compare(shown.lock);
      if (found === null) return;
    }
    this.findings.add(Check.State, `${name} at revision ${revision}`, found ?? '');
  }
}

/** Reads the stream of one node and compares it with the state. Null: no event is kept. */
export async function checkStream(
  node: StreamNode,
  findings: Findings,
): Promise<StreamReport | null> {
  const { oldest, revision } = await node.page(null, 0);
  if (oldest > revision) return null;
  const stream = new Stream(node, oldest, findings);
  const state = new StateCheck(node, stream, findings);
  await stream.readUpTo(revision);
  await state.run();
  const { model } = stream;
  return { from: oldest, to: model.next - 1, events: model.events, locks: state.locks, model };
}

function shownOf(row: unknown): ShownLock {
  const fields: readonly unknown[] = Array.isArray(row) ? row : [];
  const holder: unknown = fields[2];
  return {
    name: String(fields[0]),
    lastRevision: Number(fields[1]),
    token: Array.isArray(holder) ? Number(holder[0]) : 0,
    waiters: Number(fields[3]),
  };
}

/** A node that is asked over its client port. Close it. */
export class RemoteStreamNode implements StreamNode {
  private readonly stop = new AbortController();
  private readonly pages: AuditPages;

  constructor(
    private readonly endpoint: Endpoint,
    private readonly timeoutMs: number,
  ) {
    const options = { endpoints: [endpoint], timeoutMs, isTimeoutGiven: true };
    this.pages = openPages(options, this.stop.signal);
  }

  async page(from: number | null, waitMs: number): Promise<StreamPage> {
    const limit = from === null ? 1 : AUDIT_ROWS_MAX;
    const page = await this.pages.page({ prefix: '', from, limit, waitMs });
    if (page === undefined) throw new Error('the stream was closed');
    return page;
  }

  async list(cursor: string | null): Promise<LockPage> {
    const { fields } = await this.ask([CommandKind.List, '', cursor, LIST_ROWS_MAX, false]);
    const [rows, next, revision] = fields;
    const locks = (Array.isArray(rows) ? rows : []).map(shownOf);
    return { locks, cursor: next === null ? null : String(next), revision: Number(revision) };
  }

  async get(name: string): Promise<{ readonly lock: ShownLock; readonly revision: number }> {
    const { fields } = await this.ask([CommandKind.Get, name, false, null]);
    const [row, revision] = fields;
    const none = { name, lastRevision: 0, token: 0, waiters: 0 };
    return { lock: row === null ? none : shownOf(row), revision: Number(revision) };
  }

  close(): void {
    this.stop.abort();
  }

  private async ask(operation: readonly PackValue[]): Promise<Reply> {
    const call = await NodeCall.open(this.endpoint, this.timeoutMs);
    try {
      return await call.request(operation);
    } finally {
      call.close();
    }
  }
}

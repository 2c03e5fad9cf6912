/**
 * A watch as an async iterable that resumes by itself, on any node.
 *
 * Owns: its connection, the revision up to which everything was told, and the events that were told
 * and not taken. Never: loses or repeats an event: after a lost connection it asks another node
 * from the next revision on. A consumer that is slower than events come costs a bounded buffer:
 * then the connection is given up, and the rest is asked for later. Used by: client.ts.
 */
import { WATCH_PROGRESS_MS } from '../limits.js';
import { eventOf } from '../wire/event-json.js';
import {
  beginFrame,
  endFrame,
  FRAME_HEADER_BYTES,
  FRAME_VERSION,
  frameBytesAt,
} from '../wire/frame.js';
import { FrameAssembler } from '../wire/frame-assembler.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import { OutBuffer } from '../wire/out-buffer.js';
import { CommandKind, encodeRequest } from '../wire/request.js';
import { decodeReplies, type Reply } from '../wire/response.js';
import type { Ambient } from './ambient.js';
import { SEEK_BACKOFF_MS, SEEK_BACKOFF_MS_MAX, WATCH_EVENTS_WAITING_MAX } from './bounds.js';
import type { Timer } from './clock.js';
import { clientClosed, ErrorCode, type HoldfastError } from './errors.js';
import { type LockSummary, summaryOf } from './lock-view.js';
import { errorOf, listAt, numberAt } from './reply.js';
import { fullJitterMs } from './retry-budget.js';
import type { Dial, Endpoint, Transport } from './transport.js';

/** What an event tells of. From `disabled` on it is what operators and guards say. */
export type EventType =
  | 'granted'
  | 'ended'
  | 'queued'
  | 'left'
  /** No new acquires of `name`, which is a prefix when `place` is 1. */
  | 'disabled'
  | 'enabled'
  /** An operator's command was refused: `cause` is the code. */
  | 'refused'
  /** A guard refused `token`, since its resource had seen the token `place`. */
  | 'fenced'
  /** An operator ended a session; `name` is empty. */
  | 'expelled'
  /** The cluster was made from a backup: every lease is gone; `name` is empty. */
  | 'restored';

/** One committed event. */
export interface LockEvent {
  readonly type: EventType;
  readonly revision: number;
  /** The lock; of disabled and enabled maybe a prefix, of restored ''. */
  readonly name: string;
  /** Fencing token of the lease concerned, or that a guard refused; else 0. */
  readonly token: number;
  /**
   * Place in the queue of who queued, left, or was granted after a wait. disabled, enabled: 1 when
   * `name` is a prefix. fenced: the newest token that the resource had seen. Else 0.
   */
  readonly place: number;
  /**
   * ended: how the lease ended; expelled: `forced`; left, refused, fenced: the code of the result;
   * else null.
   */
  readonly cause: string | null;
  readonly principal: number;
  /** Cluster time of the entry. */
  readonly clusterTimeMs: number;
}

/** Locks as they were when the watch began, or began anew; what follows came after it. */
export interface SnapshotPart {
  readonly type: 'snapshot';
  /** True on the first part: what was believed before is void. */
  readonly isFirst: boolean;
  readonly locks: readonly LockSummary[];
}

/** Everything up to this revision has been told. */
export interface ProgressMark {
  readonly type: 'progress';
  readonly revision: number;
}

export type WatchItem = LockEvent | SnapshotPart | ProgressMark;

/** How to watch. */
export interface WatchOptions {
  /** First revision wanted; absent: the next one. */
  readonly fromRevision?: number;
  /** True: first the locks as they are. Not beside fromRevision. */
  readonly snapshot?: boolean;
  /** True: when the history has been cut (COMPACTED), begin anew with a snapshot. */
  readonly recovers?: boolean;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

/** Where nodes are, and how to reach one. */
export interface Nodes {
  readonly dial: Dial;
  endpoints(): readonly Endpoint[];
}

const HELLO = 1;
const WATCH = 2;
const REQUEST_MS = 10_000;
/** A node that says nothing for so long, not even how far it is, is given up. */
const SILENCE_MS = 3 * WATCH_PROGRESS_MS;

export class WatchStream {
  readonly #ambient: Ambient;
  readonly #nodes: Nodes;
  readonly #target: readonly PackValue[];
  readonly #recovers: boolean;
  readonly #items: WatchItem[] = [];
  /** The next revision to ask for; undefined: where the node is. */
  #next: number | undefined;
  #wantsSnapshot: boolean;
  #isInSnapshot = false;
  #transport: Transport | undefined;
  #assembler = new FrameAssembler(frameBytesAt);
  #timer: Timer | undefined;
  #node = 0;
  #setbacks = 0;
  #isOver = false;
  #error: HoldfastError | undefined;
  #wake: (() => void) | undefined;
  #isHeldBack = false;

  /** `target`: name and prefix as the watch command takes them. */
  constructor(ambient: Ambient, nodes: Nodes, target: readonly PackValue[], options: WatchOptions) {
    this.#ambient = ambient;
    this.#nodes = nodes;
    this.#target = target;
    this.#next = options.fromRevision;
    this.#wantsSnapshot = options.snapshot === true;
    this.#recovers = options.recovers === true;
    this.#node = Math.floor(ambient.clock.random() * 1_000);
    this.#open();
  }

  /** Resolves with the next item, or undefined at the end. Rejects with why the watch ended. */
  async next(): Promise<WatchItem | undefined> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) return item;
      if (this.#error !== undefined) throw this.#error;
      if (this.#isOver) return undefined;
      if (this.#isHeldBack) this.#open();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Ends the watch: what was not taken is dropped. */
  close(error?: HoldfastError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#drop();
    this.#items.length = 0;
    this.#wake?.();
  }

  #open(): void {
    const endpoints = this.#nodes.endpoints();
    const endpoint = endpoints[this.#node % Math.max(1, endpoints.length)];
    if (this.#isOver || endpoint === undefined) return;
    this.#isHeldBack = false;
    this.#assembler = new FrameAssembler(frameBytesAt);
    const transport = this.#nodes.dial(endpoint, {
      onOpen: () => this.#ask(transport),
      onBytes: (bytes) => this.#onBytes(transport, bytes),
      onDrain: () => undefined,
      onClose: () => this.#onClosed(transport),
    });
    this.#transport = transport;
    this.#listen();
  }

  #ask(transport: Transport): void {
    const out = new OutBuffer();
    const position = beginFrame(out);
    encodeRequest(out, HELLO, REQUEST_MS, [CommandKind.Hello, FRAME_VERSION, 'holdfast-watch']);
    const revision = this.#wantsSnapshot ? null : (this.#next ?? null);
    const watch = [CommandKind.Watch, ...this.#target, revision, this.#wantsSnapshot];
    encodeRequest(out, WATCH, REQUEST_MS, watch);
    endFrame(out, position, 2);
    this.#isInSnapshot = false;
    transport.write(out.take());
  }

  #onBytes(transport: Transport, bytes: Uint8Array): void {
    if (transport !== this.#transport) return;
    const assembler = this.#assembler;
    assembler.push(bytes);
    while (transport === this.#transport && assembler.next()) {
      const start = assembler.frameStart + FRAME_HEADER_BYTES;
      const replies = decodeReplies(assembler.bytes, start, assembler.frameEnd);
      if (replies === null) {
        this.#ambient.counters.badFrames += 1;
        this.#lose();
        return;
      }
      for (const reply of replies) this.#onReply(reply);
    }
    // A reply that ended this stream has set the timer that opens the next one.
    if (transport !== this.#transport) return;
    this.#listen();
    if (this.#items.length > WATCH_EVENTS_WAITING_MAX && this.#transport !== undefined) {
      this.#isHeldBack = true;
      this.#drop();
    }
  }

  #onReply(reply: Reply): void {
    if (this.#isOver || this.#transport === undefined) return;
    if (reply.correlation === WATCH && reply.code === ErrorCode.Watching) {
      this.#setbacks = 0;
      this.#take(reply);
      this.#wake?.();
    } else if (reply.code >= ErrorCode.LockBusy) {
      this.#onRefused(reply);
    }
  }

  #take(reply: Reply): void {
    const { fields } = reply;
    const revision = numberAt(fields, 1);
    const locks = fields[2];
    if (Array.isArray(locks)) {
      const rows = listAt(fields, 2);
      const summaries = rows.map((_, at) => summaryOf(listAt(rows, at), reply.clusterTimeMs));
      this.#items.push({ type: 'snapshot', isFirst: !this.#isInSnapshot, locks: summaries });
      this.#isInSnapshot = true;
      return;
    }
    for (const row of listAt(fields, 0)) this.#items.push(lockEventOf(row));
    if (listAt(fields, 0).length === 0) this.#items.push({ type: 'progress', revision });
    const isBeforeSnapshot = this.#wantsSnapshot && !this.#isInSnapshot;
    if (isBeforeSnapshot) return;
    // From here on the stream can be taken up by its revision alone.
    this.#wantsSnapshot = false;
    this.#next = revision + 1;
  }

  #onRefused(reply: Reply): void {
    const error = errorOf(reply, false);
    if (error.number === ErrorCode.Compacted && this.#recovers) {
      this.#ambient.counters.watchesCompacted += 1;
      this.#next = undefined;
      this.#wantsSnapshot = true;
      this.#lose();
    } else if (reply.correlation === 0 || error.retryable) {
      this.#lose();
    } else {
      this.close(error);
    }
  }

  #onClosed(transport: Transport): void {
    if (transport === this.#transport) this.#lose();
  }

  /** This node is given up; another one is asked after a pause. */
  #lose(): void {
    this.#drop();
    if (this.#isOver) return;
    this.#ambient.counters.watchesResumed += 1;
    const { clock } = this.#ambient;
    const pauseMs = fullJitterMs(clock, this.#setbacks, SEEK_BACKOFF_MS, SEEK_BACKOFF_MS_MAX);
    this.#setbacks += 1;
    this.#node += 1;
    this.#timer = this.#ambient.after(pauseMs, () => this.#open());
  }

  #drop(): void {
    this.#timer?.cancel();
    const transport = this.#transport;
    this.#transport = undefined;
    transport?.close();
  }

  #listen(): void {
    this.#timer?.cancel();
    if (this.#transport !== undefined) {
      this.#timer = this.#ambient.after(SILENCE_MS, () => this.#lose());
    }
  }
}

function lockEventOf(row: unknown): LockEvent {
  const event = eventOf(row);
  return {
    type: event['type'] as LockEvent['type'],
    revision: Number(event['revision']),
    name: String(event['name']),
    token: Number(event['fencing_token']),
    place: Number(event['place']),
    cause: event['cause'] as string | null,
    principal: Number(event['principal']),
    clusterTimeMs: Number(event['cluster_time']),
  };
}

/** All watches of one client, ended with it. */
export class WatchStreams {
  readonly #ambient: Ambient;
  readonly #nodes: Nodes;
  readonly #streams = new Set<WatchStream>();
  #isClosed = false;

  constructor(ambient: Ambient, nodes: Nodes) {
    this.#ambient = ambient;
    this.#nodes = nodes;
  }

  /** The items of one watch; the connection is opened by the first next(). */
  async *watch(
    target: readonly PackValue[],
    options: WatchOptions,
  ): AsyncGenerator<WatchItem, void, undefined> {
    if (this.#isClosed) throw clientClosed('none');
    const stream = new WatchStream(this.#ambient, this.#nodes, target, options);
    this.#streams.add(stream);
    const stop = this.#ambient.aborts.watch(options.signal, () => stream.close());
    if (options.signal?.aborted === true) stream.close();
    try {
      for (;;) {
        const item = await stream.next();
        if (item === undefined) return;
        yield item;
      }
    } finally {
      stop();
      stream.close();
      this.#streams.delete(stream);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.close(clientClosed('none'));
  }
}

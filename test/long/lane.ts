/**
 * One connection of the retry check and the workers that speak through it.
 *
 * Owns: finding the leader, attaching the workers' sessions again after a failover, sending again
 * by the same request id. Never: judges an answer; retry-worker.ts does. Used by: retries.ts.
 */
import { RawConnection } from '../../loadtest/raw-connection.js';
import { CommandKind } from '../../src/core/locks/command.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { ErrorCode } from '../../src/wire/errors.js';
import type { ReplyReader } from '../../src/wire/reply-reader.js';
import { encodeAcquire, encodeRelease } from '../../src/wire/request.js';
import type { RetryWorker } from './retry-worker.js';

const HELLO = 1;
const DEADLINE_MS = 5_000;
const LEASE_TTL_MS = 6 * 3_600_000;
const SESSION_TTL_MS = 6 * 3_600_000;
const PAUSE_MS = 30;

export class Lane {
  private connection: RawConnection | null = null;
  private isClosed = false;
  private timer: NodeJS.Timeout | null = null;
  private isReady = false;
  /** False: workers send nothing new (the end of the run). */
  isOpen = true;
  /** Endpoint to try next. */
  private at: number;

  constructor(
    private readonly endpoints: readonly { host: string; port: number }[],
    readonly workers: readonly RetryWorker[],
    /** Ports of nodes by node id, for NOT_LEADER. */
    private readonly onProgress: () => void,
    start: number,
  ) {
    this.at = start % endpoints.length;
    this.connect();
  }

  get idleWorkers(): number {
    return this.workers.filter((worker) => worker.current === null).length;
  }

  close(): void {
    this.isClosed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.connection?.close();
  }

  /** Sends one forgotten request for each worker, on a quiet cluster. */
  askForgotten(): void {
    for (const worker of this.workers) {
      if (worker.forgottenRequest() !== null) this.sendCurrent(worker);
    }
  }

  private connect(): void {
    const { host, port } = this.endpoints[this.at] as { host: string; port: number };
    const connection: RawConnection = new RawConnection(host, port, {
      onReply: (reader, bytes) => {
        if (connection === this.connection) this.onReply(reader, bytes);
      },
      onClose: () => {
        if (connection === this.connection) this.reconnect((this.at + 1) % this.endpoints.length);
      },
    });
    this.connection = connection;
    this.isReady = false;
  }

  private reconnect(at: number): void {
    if (this.isClosed || this.timer !== null) return;
    const old = this.connection;
    this.connection = null;
    this.isReady = false;
    old?.close();
    this.at = at;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.connect();
    }, PAUSE_MS);
  }

  private onReply(reader: ReplyReader, bytes: Uint8Array): void {
    const { correlation, code } = reader;
    if (correlation === 0) {
      this.reconnect((this.at + 1) % this.endpoints.length);
    } else if (correlation === HELLO) {
      for (const worker of this.workers) this.greet(worker);
    } else if (code >= ErrorCode.Unauthenticated || code === OutcomeCode.Forbidden) {
      this.reconnect((this.at + 1) % this.endpoints.length);
    } else {
      const worker = this.workers[(correlation - 2) % this.workers.length] as RetryWorker;
      const isGreeting = correlation - 2 < this.workers.length;
      if (isGreeting) this.onGreeted(worker, reader, bytes);
      else this.onAnswer(worker, reader, bytes);
    }
  }

  /** Opens the worker's session, or attaches it to this connection. */
  private greet(worker: RetryWorker): void {
    const connection = this.connection as RawConnection;
    connection.begin();
    const correlation = 2 + this.workers.indexOf(worker);
    if (worker.session.length === 0) {
      const id = `retries-${process.pid}-${worker.index}`;
      const operation = [CommandKind.SessionOpen, id, null, null, null, SESSION_TTL_MS];
      connection.send(correlation, DEADLINE_MS, operation);
    } else {
      const { session, secret } = worker;
      connection.send(correlation, DEADLINE_MS, [CommandKind.SessionAttach, session, secret]);
    }
    connection.end();
  }

  private onGreeted(worker: RetryWorker, reader: ReplyReader, bytes: Uint8Array): void {
    if (reader.code !== OutcomeCode.Ok) throw new Error(`greeting answered ${reader.code}`);
    if (worker.session.length === 0) {
      const at = reader.fieldsStart + 2;
      worker.session = bytes.slice(at, at + 16);
      worker.secret = bytes.slice(at + 18, at + 34);
    }
    this.isReady = true;
    if (worker.current === null) this.sendNext(worker);
    else this.sendCurrent(worker);
  }

  private onAnswer(worker: RetryWorker, reader: ReplyReader, bytes: Uint8Array): void {
    if (worker.current === null) return; // the answer to an earlier try came as well
    const { code, fieldsStart, fieldsEnd, clusterTimeMs } = reader;
    const isAcquire = worker.current.lease === null;
    const fields = Buffer.from(bytes.subarray(fieldsStart, fieldsEnd)).toString('latin1');
    const isGrant = isAcquire && code === OutcomeCode.Ok;
    const lease = isGrant ? bytes.slice(fieldsStart + 2, fieldsStart + 18) : null;
    worker.onAnswer(code, `${code} ${clusterTimeMs} ${fields}`, lease);
    this.onProgress();
    if (this.isOpen) this.sendNext(worker);
  }

  private sendNext(worker: RetryWorker): void {
    if (!this.isOpen) return;
    worker.next();
    this.sendCurrent(worker);
  }

  private sendCurrent(worker: RetryWorker): void {
    const { connection } = this;
    const asked = worker.current;
    if (connection === null || asked === null || !this.isReady) return;
    const correlation = 2 + this.workers.length + this.workers.indexOf(worker);
    const out = connection.begin();
    const { sequence, lease, name } = asked;
    const { session, mark } = worker;
    if (lease !== null) {
      encodeRelease(out, correlation, DEADLINE_MS, session, sequence, mark, lease);
    } else {
      encodeAcquire(out, correlation, DEADLINE_MS, session, sequence, mark, name, LEASE_TTL_MS, 0);
    }
    connection.end();
  }
}

/**
 * Pages of the audit stream from any node of a cluster, one node after the other when one is lost.
 *
 * Owns: its connection, and which node is asked: rather one that does not lead, since reading old
 * events costs it something. Never: an event twice or none; the caller says from where.
 * Used by: commands/audit.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ErrorCode, HoldfastError } from '../../client/errors.js';
import { auditPageOf } from '../../wire/audit.js';
import type { Json } from '../../wire/event-json.js';
import { CommandKind } from '../../wire/request.js';
import type { ClusterOptions } from '../cluster-options.js';
import { NodeCall } from '../node-call.js';

export interface Page {
  readonly events: readonly Json[];
  readonly next: number;
  readonly oldest: number;
  readonly revision: number;
  readonly clusterId: string;
}

/** Everything on one connection is done within this; then a new one is opened. */
const CONNECTION_MS = 45_000;
const CONNECTION_FRESH_MS = 20_000;
/** A page that is not waited for comes sooner than this: a node reads history in short slices. */
const SILENCE_MS = 8_000;
const PAUSE_MS_MAX = 500;

export class AuditSource {
  private call: NodeCall | null = null;
  private openedAtMs = 0;
  private at = Math.floor(Math.random() * 1_000);

  constructor(
    private readonly options: ClusterOptions,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * The page from `from` on (null: the next revision), waiting `waitMs` for an event. Null when
   * told to stop. Rejects with COMPACTED when no node has it, and with the last refusal when no
   * node has answered for the options' time-out.
   */
  async page(
    prefix: string,
    from: number | null,
    limit: number,
    waitMs: number,
  ): Promise<Page | null> {
    const giveUpAtMs = performance.now() + this.options.timeoutMs;
    let gone: HoldfastError | null = null;
    let goneCount = 0;
    for (let setbacks = 0; !this.signal.aborted; setbacks += 1) {
      try {
        return await this.ask([CommandKind.Audit, prefix, from, limit, waitMs], waitMs);
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        this.turnAway();
        if (error.number === ErrorCode.Compacted) {
          gone = error;
          goneCount += 1;
        }
        if (goneCount >= this.options.endpoints.length) throw error;
        if (performance.now() > giveUpAtMs) throw gone ?? error;
        await pause(Math.min(PAUSE_MS_MAX, 20 * 2 ** Math.min(setbacks, 5)), this.signal);
      }
    }
    return null;
  }

  close(): void {
    this.call?.close();
    this.call = null;
  }

  private async ask(operation: readonly (string | number | null)[], waitMs: number): Promise<Page> {
    const call = await this.connection();
    // A node that is stopped answers nothing: another one is asked.
    const timer = setTimeout(() => call.close(), waitMs + SILENCE_MS);
    const stop = (): void => call.close();
    this.signal.addEventListener('abort', stop, { once: true });
    const reply = await call.request(operation).finally(() => {
      clearTimeout(timer);
      this.signal.removeEventListener('abort', stop);
    });
    const page = auditPageOf(reply);
    return {
      events: page['events'] as readonly Json[],
      next: Number(page['next_revision']),
      oldest: Number(page['oldest_revision']),
      revision: Number(page['revision']),
      clusterId: String(page['cluster_id']),
    };
  }

  /** An open connection that has time enough left. */
  private async connection(): Promise<NodeCall> {
    const isFresh = performance.now() - this.openedAtMs < CONNECTION_FRESH_MS;
    if (this.call !== null && isFresh) return this.call;
    this.close();
    const { endpoints } = this.options;
    const endpoint = endpoints[this.at % endpoints.length];
    if (endpoint === undefined) throw new Error('audit: no endpoints');
    this.openedAtMs = performance.now();
    const call = await NodeCall.open(endpoint, CONNECTION_MS);
    this.call = call;
    const { leaderId, nodeId } = call.greeting ?? { leaderId: 0, nodeId: -1 };
    if (leaderId === nodeId && endpoints.length > 1) this.at += 1;
    return call;
  }

  private turnAway(): void {
    this.close();
    this.at += 1;
  }
}

/** Waits, less when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

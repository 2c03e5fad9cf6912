/**
 * One recorded user of a real cluster: takes, keeps, reads and gives locks over TCP, and asks again
 * by the same id at any node until it is answered.
 *
 * Owns: its connection, its request ids and what it believes. Every operation goes into the history
 * with the moments of its sending and of its answers. Never: judges. Used by: chaos-run.ts.
 */
import { connect } from 'node:net';
import { marginMs } from '../../src/client/deadline.js';
import { Prng } from '../../src/collections/prng.js';
import { CommandKind } from '../../src/core/locks/command.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { ErrorCode } from '../../src/wire/errors.js';
import type { PackValue } from '../../src/wire/msgpack-writer.js';
import type { Reply } from '../../src/wire/response.js';
import { endpointOf, RawConnection } from '../cluster/acceptance/raw-connection.js';
import type { Belief, History, Operation } from '../sim/history.js';
import { answerOf, KIND_NAMES } from '../sim/sim-call.js';
import type { Reply as WireReply } from '../sim/sim-client.js';

const US_PER_MS = 1_000;
const TRY_MS = 3_000;
const RETRY_MS = 30;
const THINK_MS_MAX = 40;
/** Locks get new names this often, so that each has a history that can be searched. */
const EPOCH_MS = 5_000;

export function nowUs(): number {
  return Math.round(performance.now() * US_PER_MS);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The form in which the simulated clients read replies. */
function wireForm(reply: Reply): WireReply {
  const { correlation, code, clusterTimeMs, isReplay, fields } = reply;
  const time = clusterTimeMs < 0 ? null : clusterTimeMs;
  const isRefusal = code >= OutcomeCode.LockBusy;
  return [correlation, code, time, isReplay, ...(isRefusal ? [null, null] : []), ...fields];
}

export interface ChaosClientOptions {
  readonly endpoints: readonly string[];
  readonly locks: number;
}

export class ChaosClient {
  /** Operations that were answered, and when the last one was. */
  acknowledged = 0;
  onAcknowledged: () => void = () => undefined;
  private connection: RawConnection | null = null;
  private endpoint = 0;
  private isStopping = false;
  private lastRequest = 0;
  private readonly prng: Prng;
  private readonly loop: Promise<void>;

  constructor(
    private readonly id: number,
    private readonly history: History,
    private readonly options: ChaosClientOptions,
    seed: number,
  ) {
    this.prng = new Prng(seed);
    this.endpoint = this.prng.below(options.endpoints.length);
    this.loop = this.run();
  }

  /** Begins nothing new; resolves when everything under way is answered. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.loop;
    this.connection?.close();
  }

  /** Breaks the connection, whatever is on its way. */
  breakConnection(): void {
    this.connection?.close();
  }

  private async run(): Promise<void> {
    while (!this.isStopping) {
      await this.turn();
      await pause(this.prng.below(THINK_MS_MAX));
    }
  }

  private async turn(): Promise<void> {
    const { prng } = this;
    const epoch = Math.floor(performance.now() / EPOCH_MS);
    const lock = `chaos/${epoch}/${prng.below(this.options.locks)}`;
    if (prng.below(5) === 0) {
      await this.call(CommandKind.Get, [lock], { lock });
      return;
    }
    const ttlMs = 200 + prng.below(2_800);
    const waitMs = prng.below(2) === 0 ? 0 : 1 + prng.below(2_000);
    const fields = [lock, ttlMs, waitMs];
    const { operation, reply, wasQueued } = await this.call(CommandKind.Acquire, fields, {
      lock,
      ttlMs,
      waitMs,
    });
    if (reply.code !== OutcomeCode.Ok) return;
    await this.hold(operation, reply, wasQueued);
  }

  private async hold(operation: Operation, reply: Reply, wasQueued: boolean): Promise<void> {
    const { prng } = this;
    const { lock, sentUs, ttlMs } = operation;
    const lease = reply.fields[0] as Uint8Array;
    const token = reply.fields[1] as number;
    const deadline = reply.fields[3] as number;
    let belief: Belief | null = null;
    if (!wasQueued && !reply.isReplay) {
      belief = this.believe(lock, token, sentUs, deadline - reply.clusterTimeMs);
    }
    if (belief === null || prng.below(4) === 0) {
      const about = { lock, aboutToken: token };
      const renewed = await this.call(CommandKind.Renew, [lease], about);
      if (renewed.reply.code !== OutcomeCode.Ok) return;
      const until = renewed.reply.fields[0] as number;
      const periodMs = until - renewed.reply.clusterTimeMs;
      belief = this.believe(lock, token, renewed.operation.sentUs, periodMs) ?? belief;
    }
    if (prng.below(12) === 0) return; // forgets it: the lease has to expire
    await pause(prng.below(Math.max(1, Math.floor(ttlMs / 8))));
    if (belief !== null) this.endBeliefs(token, nowUs());
    await this.call(CommandKind.Release, [lease], { lock, aboutToken: token });
  }

  private endBeliefs(token: number, atUs: number): void {
    const { beliefs } = this.history;
    for (let at = beliefs.length - 1; at >= 0 && at > beliefs.length - 500; at -= 1) {
      const belief = beliefs[at] as Belief;
      if (belief.token === token) belief.untilUs = Math.min(belief.untilUs, atUs);
    }
  }

  private believe(lock: string, token: number, sentUs: number, periodMs: number): Belief | null {
    const untilUs = sentUs + (periodMs - marginMs(periodMs)) * US_PER_MS;
    const fromUs = nowUs();
    if (untilUs <= fromUs) return null;
    const belief = { client: String(this.id), lock, token, fromUs, untilUs };
    this.history.beliefs.push(belief);
    return belief;
  }

  /** Asks until it is decided. */
  private async call(
    command: number,
    fields: readonly PackValue[],
    about: { lock: string; ttlMs?: number; waitMs?: number; aboutToken?: number },
  ): Promise<{ operation: Operation; reply: Reply; wasQueued: boolean }> {
    const isRead = command < CommandKind.SessionOpen;
    const isNamed = !isRead && command !== CommandKind.Renew;
    this.lastRequest += 1;
    const id = isNamed ? `c${this.id}-${this.lastRequest}` : '';
    const operation: Operation = {
      client: String(this.id),
      id,
      kind: KIND_NAMES[command] ?? String(command),
      lock: about.lock,
      session: '',
      ttlMs: about.ttlMs ?? 0,
      waitMs: about.waitMs ?? 0,
      aboutToken: about.aboutToken ?? 0,
      target: '',
      sentUs: nowUs(),
      answers: [],
      isAbandoned: false,
    };
    this.history.operations.push(operation);
    const head = isRead ? [command] : [command, isNamed ? id : null, null, null, null];
    const sent = [...head, ...fields];
    for (;;) {
      const reply = await this.attempt(command, sent, operation);
      if (reply !== null) {
        this.acknowledged += 1;
        this.onAcknowledged();
        const wasQueued = operation.answers.some(({ code }) => code === OutcomeCode.Queued);
        return { operation, reply, wasQueued };
      }
      await pause(RETRY_MS);
    }
  }

  /** One sending. Null: not decided. */
  private async attempt(
    command: number,
    sent: readonly PackValue[],
    operation: Operation,
  ): Promise<Reply | null> {
    try {
      const connection = await this.connected();
      const request = connection.request(sent, TRY_MS);
      const note = (reply: Reply): void => {
        if (reply.clusterTimeMs < 0) return;
        operation.answers.push(answerOf(command, wireForm(reply), nowUs()));
      };
      const first = await withTimeout(request.first, TRY_MS + 1_000);
      note(first);
      if (first.code !== OutcomeCode.Queued) return this.judged(first);
      const final = await withTimeout(request.final, operation.waitMs + TRY_MS);
      note(final);
      return this.judged(final);
    } catch {
      // Broken, refused or silent: the next attempt goes elsewhere, by the same id.
      this.connection?.close();
      this.connection = null;
      this.endpoint = this.prng.below(this.options.endpoints.length);
      return null;
    }
  }

  private judged(reply: Reply): Reply | null {
    if (reply.clusterTimeMs >= 0) return reply;
    if (reply.code === ErrorCode.NotLeader) {
      const at = this.options.endpoints.indexOf(String(reply.fields[1]));
      this.connection?.close();
      this.connection = null;
      this.endpoint = at >= 0 ? at : this.prng.below(this.options.endpoints.length);
    }
    return null;
  }

  private async connected(): Promise<RawConnection> {
    if (this.connection?.isOpen === true) return this.connection;
    const endpoint = this.options.endpoints[this.endpoint] as string;
    this.connection = await withTimeout(RawConnection.open(endpoint), 1_000);
    return this.connection;
  }
}

async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Opens a connection, sends the beginning of a frame and is gone. */
export function cutMidFrame(endpoint: string): void {
  const socket = connect({ ...endpointOf(endpoint), noDelay: true });
  socket.on('error', () => undefined); // a node that is down cannot be cut off from
  const frame = Buffer.alloc(64, 0x92);
  frame.writeUInt32BE(1_000);
  socket.on('connect', () => socket.write(frame, () => socket.destroy()));
}

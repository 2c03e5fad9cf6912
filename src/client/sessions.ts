/**
 * The sessions of one client: those that programs opened, and the one that it opens for itself.
 *
 * Owns: opening, the shared session and closing all. The shared session is opened by the first
 * acquire that names none and opened anew when it was lost; its TTL is raised when a lease asks for
 * more, since no lease outlives its session. Never: leases. Used by: client.ts.
 */
import { CommandKind } from '../wire/request.js';
import { SHARED_SESSION_TTL_MS } from './bounds.js';
import { clientClosed, ErrorCode } from './errors.js';
import { checkDeadline, checkMetadata, checkTtl } from './options.js';
import type { Parts } from './parts.js';
import { Presence, sessionInitOf } from './presence.js';
import type { SessionOptions } from './session.js';
import type { TimeLeft } from './time-left.js';
import { withinDeadline } from './within-deadline.js';

export class Sessions {
  readonly #parts: Parts;
  readonly #open = new Set<Presence>();
  #shared: Presence | undefined;
  #opening: Promise<Presence> | undefined;
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Opens a session. The id of the request is free-form, so a resent open opens one session. */
  async open(options: SessionOptions): Promise<Presence> {
    const { ambient, leader } = this.#parts;
    const ttlMs = checkTtl(options.ttlMs);
    const metadata = checkMetadata(options.metadata);
    const request = ambient.clock.randomId();
    const call = leader.call({
      operation: [CommandKind.SessionOpen, request, null, null, null, ttlMs, metadata],
      deadlineMs: checkDeadline(options.deadlineMs),
      isLogged: true,
      isOwnRequest: true,
    });
    const reply = await call.result;
    const sentAt = call.firstSentAt ?? ambient.clock.read();
    const sample = { sentAt, clusterTimeMs: reply.clusterTimeMs };
    const presence = new Presence(this.#parts, sessionInitOf(reply, sample));
    // A replayed open was carried out through an earlier connection.
    leader.bind(presence, reply.isReplay ? undefined : call.answeredBy);
    if (this.#isClosed) {
      presence.abandon(clientClosed('unknown'));
      throw clientClosed('unknown');
    }
    this.#open.add(presence);
    presence.onEnd(() => this.#open.delete(presence));
    return presence;
  }

  /**
   * The shared session with a TTL of at least `ttlMs`; null: the default. Rejects as open does, and
   * DEADLINE_PASSED or CANCELLED for the caller alone.
   */
  async shared(
    ttlMs: number | null,
    timeLeft: TimeLeft,
    signal: AbortSignal | undefined,
  ): Promise<Presence> {
    if (this.#shared?.isLive === true) return this.#raise(this.#shared, ttlMs, timeLeft);
    this.#opening ??= this.#openShared(ttlMs);
    const { ambient, leader } = this.#parts;
    const presence = await withinDeadline(ambient, this.#opening, {
      what: 'the opening of a session',
      deadlineMs: timeLeft.ms,
      signal,
      codeAtDeadline: () => (leader.hasLeader ? ErrorCode.DeadlinePassed : ErrorCode.NoQuorum),
    });
    return this.#raise(presence, ttlMs, timeLeft);
  }

  /** Closes every open session; one promise each. */
  closeAll(deadlineMs: number): Promise<void>[] {
    this.#isClosed = true;
    return [...this.#open].map((presence) => presence.close(deadlineMs));
  }

  async #openShared(ttlMs: number | null): Promise<Presence> {
    try {
      const wanted = Math.max(SHARED_SESSION_TTL_MS, ttlMs ?? 0);
      this.#shared = await this.open({ ttlMs: wanted });
      return this.#shared;
    } finally {
      this.#opening = undefined;
    }
  }

  async #raise(presence: Presence, ttlMs: number | null, timeLeft: TimeLeft): Promise<Presence> {
    if (ttlMs !== null && ttlMs > presence.ttlMs) await presence.renewWith(ttlMs, timeLeft.ms);
    return presence;
  }
}

/**
 * The client's own bounds and defaults, each with its unit in its name.
 *
 * Owns: what one client process may queue, how long it waits, how often it tries. Never: a bound of
 * the protocol; those are in src/limits.ts. Relations between bounds are asserted when the module
 * is loaded. Read by: every other file of the client.
 */
import { CONNECTION_REQUESTS_MAX, PENDING_REQUESTS_MAX } from '../limits.js';

/** How long acquire and withLock wait for a lock when the caller names no wait_ms. */
export const WAIT_DEFAULT_MS = 10_000;
/** TTL of the session that a client opens for its own acquires. */
export const SHARED_SESSION_TTL_MS = 30_000;
/** How long close() may take when the caller names no deadline. */
export const CLOSE_DEADLINE_DEFAULT_MS = 2_000;

/** Requests unanswered on one connection. Full: the next ones wait in the client. */
export const IN_FLIGHT_MAX = 8_192;
/** Requests that wait in the client for a connection. Full: OVERLOADED, outcome none. */
export const WAITING_REQUESTS_MAX = 65_536;
/** Sequences of one session in flight or unacknowledged. Full: the next acquire waits. */
export const SESSION_SEQUENCES_MAX = 1_024;
/** Releases and cancels that are repeated in the background. Full: the new one is counted, lost. */
export const DEBTS_MAX = 65_536;

/** A renewal starts this share of the TTL after the last one, at the latest. */
export const RENEWAL_TTL_SHARE = 1 / 3;
/** Jitter takes up to this share off the renewal's interval. */
export const RENEWAL_JITTER_SHARE = 0.25;
/** A renewal unanswered for this share of the TTL puts its leases in jeopardy … */
export const JEOPARDY_TTL_SHARE = 1 / 9;
/** … and never later than this. */
export const JEOPARDY_MS_MAX = 2_000;

/** Leases of a session that each of its renewals is followed by a look at, in turn. */
export const LEASES_CHECKED_MAX = 16;

/** A renewal is unanswered: the node has at least this long to answer a ping. */
export const SUSPECT_MS_MIN = 200;

/** Share of first attempts that may be repeated after a refusal, and the floor a second. */
export const RETRY_SHARE = 0.1;
export const RETRIES_PER_SECOND = 1;
/** Unspent retries that are kept. */
export const RETRIES_KEPT_MAX = 128;
/** Full-jitter back-off between two attempts of a request: first and greatest ceiling. */
export const RETRY_BACKOFF_MS = 20;
export const RETRY_BACKOFF_MS_MAX = 2_000;
/** Full-jitter back-off between two searches for the leader: first and greatest ceiling. */
export const SEEK_BACKOFF_MS = 20;
export const SEEK_BACKOFF_MS_MAX = 500;
/** A node that has not answered hello after this is asked no longer in this search. */
export const HELLO_TIMEOUT_MS = 1_000;
/** The next node is asked beside the last one when that one has not answered after this. */
export const SEEK_STAGGER_MS = 100;

/** A connection with unanswered requests that heard nothing for this long is pinged … */
export const LIVENESS_PING_MS = 2_000;
/** … and given up when it heard nothing for this long. */
export const LIVENESS_SILENCE_MS = 5_000;

/** Items of one watch that its consumer has not taken. Full: the connection is given up a while. */
export const WATCH_EVENTS_WAITING_MAX = 16_384;

/** How often the event loop's delay is measured while a lease is held. */
export const LOOP_DELAY_TICK_MS = 100;
/** The measured delay halves in this time. */
export const LOOP_DELAY_HALF_LIFE_MS = 1_000;
/** One stall takes at most this share of a lease's period off its safe deadline. */
export const LOOP_DELAY_SHARE_MAX = 0.1;

/** The longest single timer; longer ones are armed again, so a suspend is noticed. */
export const TIMER_MS_MAX = 60_000;

function assertBound(holds: boolean, relation: string): void {
  if (!holds) throw new Error(`client bounds contradict each other: ${relation}`);
}

assertBound(IN_FLIGHT_MAX < CONNECTION_REQUESTS_MAX, 'a node never stops reading a client');
assertBound(WAITING_REQUESTS_MAX <= PENDING_REQUESTS_MAX, 'a node can hold what a client queues');
assertBound(
  RENEWAL_TTL_SHARE + JEOPARDY_TTL_SHARE < 1 / 2,
  'half the TTL is left when a renewal is found unanswered',
);
assertBound(LIVENESS_PING_MS * 2 < LIVENESS_SILENCE_MS, 'a dead connection had two pings');
assertBound(TIMER_MS_MAX < 2 ** 31, 'a timer fires when it was asked to');

/**
 * Takes the next sequence of a session, waiting while its window is full.
 *
 * Owns: one wait, bounded by the acquire's deadline, its signal and the session's life. Acquires
 * take sequences in the order they came. Never: sends. Used by: acquire.ts.
 */
import { Alarm } from './alarm.js';
import { ErrorCode, HoldfastError } from './errors.js';
import type { AcquirePlan } from './options.js';
import type { Parts } from './parts.js';
import type { Presence, PresenceWatcher } from './presence.js';
import type { TimeLeft } from './time-left.js';

/**
 * The next sequence of `presence`. Rejects CANCELLED when the plan's signal fires, LIMIT when no
 * room came within `timeLeft`, SESSION_EXPIRED when the session is over; all without effect.
 */
export function takeSequence(
  parts: Parts,
  plan: AcquirePlan,
  presence: Presence,
  timeLeft: TimeLeft,
): Promise<number> {
  if (!presence.isLive) return Promise.reject(sessionOver());
  if (presence.sequences.hasRoom) return Promise.resolve(presence.sequences.take());
  return new SequenceWait(parts, plan, presence, timeLeft).result;
}

function sessionOver(): HoldfastError {
  const message = 'the session of this acquire is over';
  return new HoldfastError(ErrorCode.SessionExpired, { message, outcome: 'none' });
}

class SequenceWait implements PresenceWatcher {
  readonly result: Promise<number>;
  readonly #presence: Presence;
  readonly #alarm: Alarm;
  readonly #onRoom: () => void;
  readonly #stopWatching: () => void;
  readonly #reject: (error: HoldfastError) => void;

  constructor(parts: Parts, plan: AcquirePlan, presence: Presence, timeLeft: TimeLeft) {
    const { promise, resolve, reject } = withResolvers();
    this.result = promise;
    this.#reject = reject;
    this.#presence = presence;
    this.#onRoom = () => {
      this.#stop();
      resolve(presence.sequences.take());
    };
    const onAbort = (): void => this.#fail(ErrorCode.Cancelled, 'cancelled by its signal');
    this.#stopWatching = parts.ambient.aborts.watch(plan.signal, onAbort);
    const { clock } = parts.ambient;
    const waitMs = timeLeft.ms;
    const untilMs = clock.nowMs() + waitMs;
    this.#alarm = new Alarm(clock, () => this.#wake(untilMs - clock.nowMs()));
    this.#alarm.wakeWithin(waitMs);
    presence.awaitRoom(this.#onRoom);
    presence.watch(this);
  }

  onLost(): void {
    this.#stop();
    this.#reject(sessionOver());
  }

  #wake(leftMs: number): number {
    if (leftMs > 0) return leftMs;
    this.#fail(ErrorCode.Limit, 'the window of the session stayed full until the deadline');
    return Number.POSITIVE_INFINITY;
  }

  #fail(number: number, message: string): void {
    this.#stop();
    this.#reject(new HoldfastError(number, { message, outcome: 'none' }));
  }

  #stop(): void {
    this.#alarm.cancel();
    this.#presence.abandonRoom(this.#onRoom);
    this.#presence.unwatch(this);
    this.#stopWatching();
  }
}

interface Resolvers {
  readonly promise: Promise<number>;
  readonly resolve: (sequence: number) => void;
  readonly reject: (error: HoldfastError) => void;
}

function withResolvers(): Resolvers {
  let resolve: (sequence: number) => void = notYet;
  let reject: (error: HoldfastError) => void = notYet;
  const promise = new Promise<number>((onRoom, onFailure) => {
    resolve = onRoom;
    reject = onFailure;
  });
  return { promise, resolve, reject };
}

function notYet(): void {
  // Replaced before withResolvers returns: a promise runs its executor at once.
}

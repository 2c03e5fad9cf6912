/**
 * What a client still owes the cluster when the caller has gone: releases and cancels.
 *
 * Owns: repeating them until they are answered. Without this a lease whose release was not
 * answered, or whose grant was not heard of, would be renewed with its session for ever and hold
 * its lock. Never: tells the caller. A debt ends when it is answered, when its session is over, or
 * when the client is closed. Used by: acquire.ts, ownership.ts, session.ts.
 */
import { REQUEST_DEADLINE_DEFAULT_MS } from '../limits.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import type { Reply } from '../wire/response.js';
import type { Ambient } from './ambient.js';
import { DEBTS_MAX, RETRY_BACKOFF_MS_MAX } from './bounds.js';
import type { Binding } from './call.js';
import { ErrorCode, HoldfastError } from './errors.js';
import type { Leader } from './leader.js';

export interface Debt {
  readonly operation: PackValue[];
  /** The session that the operation belongs to, if it needs one. */
  readonly binding?: Binding;
  /** Cluster says done. */
  readonly onPaid?: (reply: Reply) => void;
  /** Refused for good, or dropped: nothing is owed any more. */
  readonly onDropped?: () => void;
}

export class Debts {
  readonly #ambient: Ambient;
  readonly #leader: Leader;
  #count = 0;
  #isClosed = false;

  constructor(ambient: Ambient, leader: Leader) {
    this.#ambient = ambient;
    this.#leader = leader;
  }

  /** Debts that are not paid yet. */
  get count(): number {
    return this.#count;
  }

  /** Takes a debt over. Past DEBTS_MAX it is dropped and counted: the TTL then frees the lock. */
  owe(debt: Debt): void {
    if (this.#isClosed || this.#count >= DEBTS_MAX) {
      this.#drop(debt);
      return;
    }
    this.#count += 1;
    this.#pay(debt);
  }

  /** Forgets every debt: the client is being closed, and its sessions with it. */
  close(): void {
    this.#isClosed = true;
  }

  #pay(debt: Debt): void {
    const { operation, binding } = debt;
    const call = this.#leader.call({
      operation,
      deadlineMs: REQUEST_DEADLINE_DEFAULT_MS,
      isLogged: true,
      isEssential: true,
      isOwnWork: true,
      ...(binding === undefined ? {} : { binding }),
    });
    call.result.then(
      (reply) => {
        this.#count -= 1;
        this.#ambient.counters.debtsPaid += 1;
        debt.onPaid?.(reply);
      },
      (error: unknown) => this.#onUnpaid(debt, error),
    );
  }

  #onUnpaid(debt: Debt, error: unknown): void {
    const isOpen = error instanceof HoldfastError && (error.retryable || isUnknown(error));
    if (isOpen && !this.#isClosed) {
      const { clock } = this.#ambient;
      this.#ambient.after(clock.random() * RETRY_BACKOFF_MS_MAX, () => this.#pay(debt));
      return;
    }
    this.#count -= 1;
    if (isOver(error)) {
      this.#ambient.counters.debtsPaid += 1;
      debt.onDropped?.();
    } else {
      this.#drop(debt);
    }
  }

  #drop(debt: Debt): void {
    this.#ambient.counters.debtsDropped += 1;
    debt.onDropped?.();
  }
}

/** Unknown because nobody answered; an expired session is an answer. */
function isUnknown(error: HoldfastError): boolean {
  return error.number === ErrorCode.UnknownOutcome || error.number === ErrorCode.DeadlinePassed;
}

/** What was to be ended has ended otherwise. */
function isOver(error: unknown): boolean {
  return (
    error instanceof HoldfastError &&
    (error.number === ErrorCode.StaleLease || error.number === ErrorCode.SessionExpired)
  );
}

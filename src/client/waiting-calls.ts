/**
 * Calls that wait in the client: for a leader, or for room on the connection to it.
 *
 * Owns: their order. Urgent calls (renewals, releases, cancels) go first and are never refused;
 * the others go in the order they came, up to WAITING_REQUESTS_MAX. Never: sends.
 * Used by: leader.ts.
 */
import { WAITING_REQUESTS_MAX } from './bounds.js';
import type { Call } from './call.js';
import type { HoldfastError } from './errors.js';

export class WaitingCalls {
  #urgent: Call[] = [];
  #ordinary: Call[] = [];
  /** Elements of #ordinary before this one are gone. */
  #head = 0;

  /** Adds a call at the end of its kind. False when too many wait. */
  tryAdd(call: Call): boolean {
    if (call.spec.isEssential === true) {
      this.#urgent.push(call);
      return true;
    }
    if (this.#ordinary.length - this.#head >= WAITING_REQUESTS_MAX) this.#dropSettled();
    if (this.#ordinary.length >= WAITING_REQUESTS_MAX) return false;
    this.#ordinary.push(call);
    return true;
  }

  /** The next call, skipping those that are settled; ordinary ones only when there is room. */
  take(hasRoom: boolean): Call | undefined {
    for (let call = this.#urgent.shift(); call !== undefined; call = this.#urgent.shift()) {
      if (!call.isSettled) return call;
    }
    while (hasRoom && this.#head < this.#ordinary.length) {
      const call = this.#ordinary[this.#head]!;
      this.#head += 1;
      if (this.#head * 2 > this.#ordinary.length) this.#compact();
      if (!call.isSettled) return call;
    }
    return undefined;
  }

  /** Takes every call, in order. */
  takeAll(): Call[] {
    const calls = [...this.#urgent, ...this.#ordinary.slice(this.#head)];
    this.#urgent = [];
    this.#ordinary = [];
    this.#head = 0;
    return calls.filter((call) => !call.isSettled);
  }

  /** Notes why they still wait, for the words of a time-out. */
  explain(error: HoldfastError): void {
    for (const call of this.#urgent) call.lastError = error;
    for (let at = this.#head; at < this.#ordinary.length; at += 1) {
      this.#ordinary[at]!.lastError = error;
    }
  }

  #compact(): void {
    this.#ordinary = this.#ordinary.slice(this.#head);
    this.#head = 0;
  }

  #dropSettled(): void {
    this.#ordinary = this.#ordinary.slice(this.#head).filter((call) => !call.isSettled);
    this.#head = 0;
  }
}

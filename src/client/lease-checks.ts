/**
 * Looks whether the leases that a session keeps are still there.
 *
 * Owns: which of them are looked at next. One renewal keeps all leases of a session, and does not
 * say that an operator has ended one of them: without a look its holder would believe in it for as
 * long as the session lives. Never: believes in a lease by a read; what a read does not find is
 * renewed by its own command, and that answer decides. Used by: presence.ts.
 */
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import { ignore } from './attended.js';
import { LEASES_CHECKED_MAX } from './bounds.js';
import type { Ownership } from './ownership.js';
import type { Parts } from './parts.js';

export class LeaseChecks {
  readonly #parts: Parts;
  readonly #leases: ReadonlyMap<string, Ownership>;
  /** Walks over the leases, from one look to the next. */
  #walk: Iterator<Ownership> | undefined;

  constructor(parts: Parts, leases: ReadonlyMap<string, Ownership>) {
    this.#parts = parts;
    this.#leases = leases;
  }

  /** Asks for the next leases, some at a time; what is not answered is asked another time. */
  look(deadlineMs: number): void {
    const count = Math.min(this.#leases.size, LEASES_CHECKED_MAX);
    for (let looked = 0; looked < count; looked += 1) {
      const ownership = this.#next();
      if (ownership !== undefined) this.#check(ownership, deadlineMs);
    }
  }

  #next(): Ownership | undefined {
    const next = this.#walk?.next();
    if (next !== undefined && next.done !== true) return next.value;
    this.#walk = this.#leases.values();
    const first = this.#walk.next();
    return first.done === true ? undefined : first.value;
  }

  #check(ownership: Ownership, deadlineMs: number): void {
    const { name, token, hold } = ownership;
    const call = this.#parts.leader.call({
      operation: [CommandKind.Check, name, token],
      deadlineMs,
      isLogged: false,
      isRead: true,
      isOwnWork: true,
    });
    const onReply = ({ fields }: Reply): void => {
      if (fields[0] === 'current' || !hold.isLive) return;
      ownership.renew(-1, null, deadlineMs, true).catch(ignore); // its hold has heard of it
    };
    call.result.then(onReply, ignore);
  }
}

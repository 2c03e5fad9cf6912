/**
 * Committed events: what a watch shows, in the order of their revisions.
 *
 * Owns: event numbers (on the wire and on disk for ever) and the batch that `apply` writes into.
 * Never: subscribers. The batch is read after every entry and begins anew with the next.
 * Read by: lock machine (writes), replica (drains), later the event store.
 */

export const EventKind = {
  Granted: 1,
  /** A lease ended; `cause` is its LeaseEnd. */
  Ended: 2,
  Queued: 3,
  /** A waiter left without a grant; `cause` is the OutcomeCode of its final result. */
  Left: 4,
  /** No new acquires of this name; `place` is 1 when the name is a prefix, else 0. */
  Disabled: 5,
  Enabled: 6,
  /** An operator's command was refused; `cause` is the OutcomeCode. */
  Refused: 7,
  /** A guard refused `token`, since its resource had seen the token `place`. */
  Fenced: 8,
  /** An operator ended a session, after its waits and leases; it has no name. */
  Expelled: 9,
  /** The state was restored, and the counter has leapt (restored-state.ts). Of no lock. */
  Restored: 16,
} as const;
export type EventKind = (typeof EventKind)[keyof typeof EventKind];

/** One committed event. Reused by its batch: copy what outlives the entry. */
export class LockEvent {
  kind = 0;
  revision = 0;
  /** Token of the lease concerned, or the one refused (Fenced); else 0. */
  token = 0;
  /** Queued, Left and a grant to a waiter: the place in the queue. See also the kinds; else 0. */
  place = 0;
  /** Ended: LeaseEnd. Left: the OutcomeCode of the wait's final result. Refused: it. Else 0. */
  cause = 0;
  principal = 0;
  /** Byte-store handle of the name, valid until the next entry begins; 0: of no lock. */
  name = 0;
  /** Position in the entry of the command that brought it about; -1: the sweep did. */
  position = -1;
}

/** Records kept for the next entry after one that had very many. */
const EVENTS_KEPT = 8_192;

/** The events of one entry, in revision order. */
export class EventBatch {
  private readonly items: LockEvent[] = [];
  count = 0;
  /** Position of the command that is being applied; -1 before the first. */
  position = -1;

  clear(): void {
    this.count = 0;
    this.position = -1;
    if (this.items.length > EVENTS_KEPT) this.items.length = EVENTS_KEPT;
  }

  /** The next record to fill. */
  add(): LockEvent {
    if (this.count === this.items.length) this.items.push(new LockEvent());
    const event = this.items[this.count] as LockEvent;
    this.count += 1;
    event.position = this.position;
    return event;
  }

  at(position: number): LockEvent {
    return this.items[position] as LockEvent;
  }
}

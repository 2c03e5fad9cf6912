/**
 * Committed events: what a watch shows, in the order of their revisions.
 *
 * Owns: event numbers (on the wire and on disk for ever) and the bounded ring that `apply` writes
 * into. Never: subscribers. The replica drains the ring after every entry.
 * Read by: lock machine (writes), replica (drains), later the event store.
 */

export const EventKind = {
  Granted: 1,
  /** A lease ended; `cause` is its LeaseEnd. */
  Ended: 2,
  Queued: 3,
  /** A waiter left without a grant; `cause` is the OutcomeCode of its final result. */
  Left: 4,
} as const;
export type EventKind = (typeof EventKind)[keyof typeof EventKind];

/**
 * The parts of one client that its sessions and leases work with.
 *
 * Owns: nothing; it is how a session or a lease is given the road to the leader, the debts and what
 * all share. Never: created more than once a client. Used by: session.ts, ownership.ts, acquire.ts.
 */
import type { Ambient } from './ambient.js';
import type { Debts } from './debts.js';
import type { Leader } from './leader.js';

export interface Parts {
  readonly ambient: Ambient;
  readonly leader: Leader;
  readonly debts: Debts;
}

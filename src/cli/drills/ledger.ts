/**
 * What the cluster and the resource told the drill's own clients, kept to be held against what they
 * say afterwards.
 *
 * Owns: acknowledged grants and releases, requests that were refused without an effect, writes that
 * were refused. Never: an opinion; stream-rules.ts and verify.ts have it. Used by: the scenarios.
 */
import type { Lease } from '../../client/index.js';

/** A grant, or an end by release or by force, that a client was told of. */
export interface Acknowledged {
  readonly type: 'granted' | 'ended';
  readonly lock: string;
  readonly token: number;
  readonly revision: number;
  /** Null where the client chose the name of the request by itself. */
  readonly requestId: string | null;
}

/** A request of which the cluster said that it had no effect. */
export interface Unborn {
  readonly requestId: string;
  readonly code: string;
}

/** A write that the guard refused. */
export interface RefusedWrite {
  readonly writer: string;
  readonly offered: number;
  readonly seen: number;
}

export class Ledger {
  readonly acknowledged: Acknowledged[] = [];
  readonly unborn: Unborn[] = [];
  readonly refusedWrites: RefusedWrite[] = [];

  granted(
    lease: Pick<Lease, 'name' | 'token' | 'revision'>,
    requestId: string | null = null,
  ): void {
    const { name: lock, token, revision } = lease;
    this.acknowledged.push({ type: 'granted', lock, token, revision, requestId });
  }

  /** An operator was told that a lease is ended. */
  forced(
    lease: Pick<Lease, 'name' | 'token'>,
    revision: number,
    requestId: string | null = null,
  ): void {
    const { name: lock, token } = lease;
    this.acknowledged.push({ type: 'ended', lock, token, revision, requestId });
  }

  released(lease: Pick<Lease, 'name' | 'token'>, revision: number): void {
    const { name: lock, token } = lease;
    this.acknowledged.push({ type: 'ended', lock, token, revision, requestId: null });
  }
}

/**
 * Elections: a lock whose holder leads, with a value that observers see.
 *
 * Owns: what a leader may do, and the stream of who leads. Never: a rule of its own: a campaign is
 * an acquire, a proclamation a renewal with metadata, a resignation a release, and leading ends
 * when the lease does. Used by: client.ts.
 */
import type { Lease } from './lease.js';
import type { HolderView, LockView } from './lock-view.js';
import type { WatchItem } from './watch.js';

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** A won election. Leading is believed exactly as long as its lease is. */
export class Leadership implements AsyncDisposable {
  readonly lease: Lease;

  /** Programs call client.elect. */
  constructor(lease: Lease) {
    this.lease = lease;
  }

  /** Fencing token of this leadership: pass it with whatever the leader does. */
  get token(): number {
    return this.lease.token;
  }

  /** Aborts when leading can no longer be believed in. */
  get signal(): AbortSignal {
    return this.lease.signal;
  }

  /** Changes the value that observers read, and renews. Rejects as Lease.renew does. */
  proclaim(value: string): Promise<void> {
    return this.lease.renew({ metadata: ENCODER.encode(value) });
  }

  /** Steps down: the next candidate leads. */
  async resign(): Promise<void> {
    await this.lease.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lease[Symbol.asyncDispose]();
  }
}

/** Who leads, as observers are told. */
export type LeaderView =
  | { readonly type: 'leader'; readonly token: number; readonly value: string | null }
  | { readonly type: 'no-leader' };

function viewOf(holder: HolderView | null): LeaderView {
  if (holder === null) return { type: 'no-leader' };
  const value = holder.metadata === null ? null : DECODER.decode(holder.metadata);
  return { type: 'leader', token: holder.token, value };
}

/**
 * Every change of who leads, beginning with how it is. A leader that has gone again before its
 * value was read is told without it.
 */
export async function* observe(
  items: AsyncIterable<WatchItem>,
  read: () => Promise<LockView>,
): AsyncGenerator<LeaderView, void, undefined> {
  /** A lease ended: told as no leader unless the very next event hands the lock over. */
  let endedRevision = 0;
  for await (const item of items) {
    if (endedRevision > 0) {
      const isHandedOver = item.type === 'granted' && item.revision === endedRevision + 1;
      if (!isHandedOver) yield { type: 'no-leader' };
      endedRevision = 0;
    }
    if (item.type === 'snapshot') yield viewOf(item.locks[0]?.holder ?? null);
    if (item.type === 'ended') {
      const lock = await read();
      if (lock.holder === null) yield { type: 'no-leader' };
      else endedRevision = item.revision;
    }
    if (item.type !== 'granted') continue;
    const { holder } = await read();
    const isPresent = holder !== null && holder.token === item.token;
    yield isPresent ? viewOf(holder) : { type: 'leader', token: item.token, value: null };
  }
}

/**
 * Fencing tokens checked by an object store with conditional writes.
 *
 * Owns: one guarded object: its head, which names lock and token, and its data, which lies under a
 * key of its own and never changes. A write puts the data first and then replaces the head, on
 * condition that the head is still the one whose token was compared. So the store decides, also
 * about a write that was held in the network. Used by: programs, `holdfast guard`.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ErrorCode, HoldfastError, suppress } from '../../client/errors.js';
import { checkName } from '../../client/options.js';
import type { ErrorOutcome } from '../../wire/errors.js';
import { checkFence, checkToken, type Fence, judge, type Mark } from '../fence.js';
import type { Guard } from '../guard.js';
import { otherLock, StaleTokenError, unknownWrite } from '../stale-token.js';
import { type GuardObserver, Tally } from '../tally.js';
import { decodeHead, encodeHead, type Head } from './head.js';
import type { ObjectStore } from './object-store.js';

export interface ObjectGuardOptions {
  readonly observer?: GuardObserver;
}

/** What a guarded object holds. */
export interface GuardedObject {
  readonly body: Uint8Array;
  readonly contentType: string;
  /** Mark of the object: the token of the last exclusive write, or of a barrier above it. */
  readonly token: number;
}

/** The head as it was found, and what a write over it has to ask for. */
interface Found {
  readonly head: Head | null;
  readonly etag: string | null;
}

/** What a write changes of the head. Without `data` it keeps the object as it is. */
interface NextHead {
  readonly nonce: string;
  readonly data?: string | null;
  readonly contentType?: string;
}

const RESOURCE = 's3';
const ATTEMPTS_MAX = 24;
const PAUSE_MS_LEAST = 5;
const PAUSE_MS_MOST = 500;
const NONCE_BYTES = 12;
const TYPE_DEFAULT = 'application/octet-stream';

export class ObjectGuard implements Guard {
  readonly tally: Tally;
  /** Errors while deleting data that nothing refers to any more; what is left over costs space. */
  cleanupErrors = 0;
  readonly #store: ObjectStore;
  readonly #key: string;

  /** @param key of the guarded object. Nothing else may write there or below `key + '.'`. */
  constructor(store: ObjectStore, key: string, options: ObjectGuardOptions = {}) {
    this.#store = store;
    this.#key = key;
    this.tally = new Tally(RESOURCE, options.observer);
  }

  /**
   * Replaces the object. Rejects StaleTokenError, and it stays as it was; CONFLICT when it is
   * guarded by another lock; UNKNOWN_OUTCOME when the store did not say, and trying again is safe.
   */
  async write(fence: Fence, body: Uint8Array, contentType: string = TYPE_DEFAULT): Promise<void> {
    const checked = checkFence(fence);
    const found = await this.#find();
    // Before the data travel, so that a stale writer is told soon.
    this.#judge(checked, found.head, 'none');
    const nonce = newNonce();
    const data = `${this.#key}.${String(checked.token).padStart(16, '0')}-${nonce}`;
    await this.#upload(checked, data, body, contentType);
    await this.#replace(checked, found, { nonce, data, contentType });
  }

  /**
   * Shows the token before the first write, and gives the object: from then on every older token is
   * refused, so what was read here can only be replaced by this holder or a newer one. Rejects as
   * `write` does.
   */
  async claim(fence: Fence): Promise<GuardedObject | null> {
    const checked = checkFence(fence);
    await this.#replace(checked, await this.#find(), { nonce: newNonce() });
    return this.read();
  }

  /** Removes the object. The head stays, with the mark. Rejects as `write` does. */
  async remove(fence: Fence): Promise<void> {
    const checked = checkFence(fence);
    const found = await this.#find();
    await this.#replace(checked, found, { nonce: newNonce(), data: null, contentType: '' });
  }

  /** The object as it is now, or null when there is none. Needs no token. */
  async read(): Promise<GuardedObject | null> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const { head } = await this.#find();
      if (head === null || head.data === null) return null;
      const stored = await this.#store.get(head.data);
      const { contentType, token } = head;
      if (stored !== null) return { body: stored.body, contentType, token };
      await pauseBefore(attempt); // replaced between the two looks: the next head is newer
    }
    throw new Error(`${this.#key} was replaced ${ATTEMPTS_MAX} times while it was read`);
  }

  async raise(lock: string, token: number): Promise<Mark> {
    const fence = checkFence({ lock, token: checkToken(token) });
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const { head, etag } = await this.#find();
      this.#checkLock(fence, head);
      if (head !== null && head.token >= token) break;
      const { data, contentType } = head ?? { data: null, contentType: '' };
      const next = { lock, token, nonce: newNonce(), data, contentType };
      const isDone = await this.#store.put(this.#key, encodeHead(next), { condition: etag });
      if (isDone) break;
      await pauseBefore(attempt);
    }
    const mark = await this.mark(lock);
    if (mark.token < token) throw unknownWrite(RESOURCE, fence, new Error('too many writers'));
    this.tally.onRaised(fence, mark.token);
    return mark;
  }

  async mark(lock: string): Promise<Mark> {
    const { head } = await this.#find();
    if (head !== null && head.lock !== checkName(lock)) throw this.#otherLock(head);
    return { lock, token: head?.token ?? 0, refused: null };
  }

  async #find(): Promise<Found> {
    const stored = await this.#store.get(this.#key);
    if (stored === null) return { head: null, etag: null };
    const head = decodeHead(stored.body);
    if (head !== null) return { head, etag: stored.etag };
    const message = `${this.#key} is no guarded object: it was written past the guard, or copied`;
    throw new HoldfastError(ErrorCode.Conflict, { message, outcome: 'none' });
  }

  /** The new mark. Throws StaleTokenError, or CONFLICT for another lock. */
  #judge(fence: Required<Fence>, head: Head | null, outcome: ErrorOutcome): number {
    this.#checkLock(fence, head);
    const seen = head?.token ?? 0;
    const { isAccepted, mark } = judge(seen, fence.token, fence.kind);
    if (isAccepted) return mark;
    this.tally.onRefused(fence, seen);
    throw new StaleTokenError(RESOURCE, fence, seen, outcome);
  }

  #checkLock(fence: Fence, head: Head | null): void {
    if (head !== null && head.lock !== fence.lock) throw this.#otherLock(head);
  }

  #otherLock(head: Head): HoldfastError {
    return otherLock(RESOURCE, `object ${this.#key}`, head.lock);
  }

  async #upload(
    fence: Required<Fence>,
    data: string,
    body: Uint8Array,
    contentType: string,
  ): Promise<void> {
    try {
      // False: a lost answer to the same bytes under the same key; the key is ours alone.
      await this.#store.put(data, body, { condition: null, contentType });
    } catch (error) {
      // Nothing refers to the data, so the object is as it was.
      const message = `${RESOURCE} did not take the data of a write under ${fence.lock}`;
      const failure = new HoldfastError(ErrorCode.UnknownOutcome, {
        message,
        outcome: 'none',
        cause: error,
      });
      await this.#clean(data);
      throw failure;
    }
  }

  /** Puts the new head in place of the one that was judged, or of a newer one judged again. */
  async #replace(fence: Required<Fence>, first: Found, next: NextHead): Promise<void> {
    const { nonce, data = null } = next;
    let found = first;
    let cause: unknown = new Error('other writers came first each time');
    let outcome: ErrorOutcome = 'none';
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const seen = found.head?.token ?? 0;
      const token = await this.#judgeOrClean(fence, found.head, data, outcome);
      const kept = found.head ?? { data: null, contentType: '' };
      const { data: keptData, contentType } = kept;
      const bytes = encodeHead({
        lock: fence.lock,
        token,
        data: keptData,
        contentType,
        ...next,
      });
      try {
        const isDone = await this.#store.put(this.#key, bytes, { condition: found.etag });
        if (isDone) return await this.#onReplaced(fence, seen, found.head, next);
      } catch (error) {
        cause = error; // done or not: the next look tells, unless a newer write came over it
        outcome = 'unknown';
      }
      await pauseBefore(attempt);
      const { head } = found;
      try {
        found = await this.#find();
      } catch (error) {
        suppress(error, cause);
        this.tally.onUnknown(fence);
        throw unknownWrite(RESOURCE, fence, error);
      }
      if (found.head?.nonce === nonce) return await this.#onReplaced(fence, seen, head, next);
    }
    this.tally.onUnknown(fence);
    throw unknownWrite(RESOURCE, fence, cause);
  }

  async #judgeOrClean(
    fence: Required<Fence>,
    head: Head | null,
    data: string | null,
    outcome: ErrorOutcome,
  ): Promise<number> {
    try {
      return this.#judge(fence, head, outcome);
    } catch (error) {
      await this.#clean(data);
      throw error;
    }
  }

  async #onReplaced(
    fence: Required<Fence>,
    seen: number,
    replaced: Head | null,
    next: NextHead,
  ): Promise<void> {
    this.tally.onAccepted(fence, seen);
    if (replaced !== null && next.data !== undefined) await this.#clean(replaced.data);
  }

  async #clean(data: string | null): Promise<void> {
    if (data === null) return;
    try {
      await this.#store.delete(data);
    } catch {
      this.cleanupErrors += 1; // the write is decided; only space is lost
    }
  }
}

function newNonce(): string {
  return randomBytes(NONCE_BYTES).toString('hex');
}

/** Full jitter, doubling. */
async function pauseBefore(attempt: number): Promise<void> {
  const most = Math.min(PAUSE_MS_MOST, PAUSE_MS_LEAST * 2 ** attempt);
  await delay(Math.random() * most);
}

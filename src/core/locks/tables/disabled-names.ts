/**
 * Names and prefixes under which no new acquire is taken, until somebody enables them again.
 *
 * Owns: the rules, in the order in which they were made, each with who made it and why. Few by
 * design, so they are looked through one by one; without a rule an acquire pays one comparison.
 * Never: holders or waiters, which stay as they are. Used by: acquire.ts, admin.ts, snapshots.
 */
import type { ByteStore } from '../../../collections/byte-store.js';
import type { RecordHash, StateDigest } from '../../../collections/digest.js';

const TAG_DISABLED = 9;

/** One rule. Names are handles of the byte store, which the rule owns. */
export interface DisabledRule {
  readonly name: number;
  /** True: every name that starts with it; the empty prefix is every lock. */
  readonly isPrefix: boolean;
  /** Revision of the event that told of it, and the stamp of its entry in ms. */
  readonly revision: number;
  readonly since: number;
  readonly principal: number;
  /** Who asked for it, as they named themselves, and why; 0 when they did not say. */
  readonly actor: number;
  readonly reason: number;
}

export class DisabledNames {
  private rules: DisabledRule[] = [];

  constructor(private readonly store: ByteStore) {}

  get count(): number {
    return this.rules.length;
  }

  at(position: number): DisabledRule {
    return this.rules[position] as DisabledRule;
  }

  add(rule: DisabledRule): void {
    this.rules.push(rule);
  }

  /** Takes the rule out. Its name lives on until the caller releases it. */
  remove(rule: DisabledRule): void {
    this.rules = this.rules.filter((each) => each !== rule);
    if (rule.actor !== 0) this.store.release(rule.actor);
    if (rule.reason !== 0) this.store.release(rule.reason);
  }

  /** The rule made for exactly this name or prefix, or undefined. */
  find(
    bytes: Uint8Array,
    offset: number,
    length: number,
    isPrefix: boolean,
  ): DisabledRule | undefined {
    return this.rules.find((rule) => {
      if (rule.isPrefix !== isPrefix || this.store.lengthOf(rule.name) !== length) return false;
      return this.startsWith(bytes, offset, rule.name);
    });
  }

  /** The first rule that covers the lock of this name, or undefined. */
  covering(bytes: Uint8Array, offset: number, length: number): DisabledRule | undefined {
    if (this.rules.length === 0) return undefined;
    return this.rules.find((rule) => {
      const ruled = this.store.lengthOf(rule.name);
      if (rule.isPrefix ? length < ruled : length !== ruled) return false;
      return this.startsWith(bytes, offset, rule.name);
    });
  }

  /** Adds each rule to the state digest. */
  addTo(sum: StateDigest, hash: RecordHash): void {
    for (const rule of this.rules) {
      hash.begin(TAG_DISABLED);
      hash.word(rule.isPrefix ? 1 : 0);
      hash.number(rule.revision);
      hash.number(rule.since);
      hash.number(rule.principal);
      for (const handle of [rule.name, rule.actor, rule.reason]) this.hashBytes(hash, handle);
      hash.finish();
      sum.add(hash.h0, hash.h1, hash.h2, hash.h3);
    }
  }

  private hashBytes(hash: RecordHash, handle: number): void {
    const { store } = this;
    hash.word(handle === 0 ? 0 : 1);
    if (handle === 0) return;
    hash.bytes(store.pageOf(handle), store.offsetOf(handle), store.lengthOf(handle));
  }

  private startsWith(bytes: Uint8Array, offset: number, name: number): boolean {
    const page = this.store.pageOf(name);
    const from = this.store.offsetOf(name);
    const length = this.store.lengthOf(name);
    for (let at = 0; at < length; at += 1) {
      if (page[from + at] !== bytes[offset + at]) return false;
    }
    return true;
  }
}

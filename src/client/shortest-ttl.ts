/**
 * The shortest TTL among many leases, without looking at all of them for each change.
 *
 * Owns: how many leases have which TTL. Programs use few different TTLs, so the table is small.
 * Never: time. Used by: presence.ts, to pace the renewals of a session.
 */
export class ShortestTtl {
  readonly #ttlByKey = new Map<string, number>();
  readonly #countByTtl = new Map<number, number>();
  #leastMs = Number.POSITIVE_INFINITY;

  /** Infinity when there is none. */
  get leastMs(): number {
    return this.#leastMs;
  }

  /** A lease has this TTL from now on. */
  set(key: string, ttlMs: number): void {
    if (this.#ttlByKey.get(key) === ttlMs) return;
    this.delete(key);
    this.#ttlByKey.set(key, ttlMs);
    this.#countByTtl.set(ttlMs, (this.#countByTtl.get(ttlMs) ?? 0) + 1);
    this.#leastMs = Math.min(this.#leastMs, ttlMs);
  }

  delete(key: string): void {
    const ttlMs = this.#ttlByKey.get(key);
    if (ttlMs === undefined) return;
    this.#ttlByKey.delete(key);
    const left = (this.#countByTtl.get(ttlMs) ?? 0) - 1;
    if (left > 0) {
      this.#countByTtl.set(ttlMs, left);
      return;
    }
    this.#countByTtl.delete(ttlMs);
    if (ttlMs === this.#leastMs) this.#findLeast();
  }

  #findLeast(): void {
    this.#leastMs = Number.POSITIVE_INFINITY;
    for (const ttlMs of this.#countByTtl.keys()) this.#leastMs = Math.min(this.#leastMs, ttlMs);
  }
}

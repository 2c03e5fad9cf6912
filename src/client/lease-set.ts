/**
 * Several leases that were acquired one after the other, for locks that cannot share a commit.
 *
 * Owns: the order, which is that of the names' bytes in every client, so that two of them never
 * wait for each other in a circle; and giving all back when one cannot be had. Never: a common
 * commit: each has its own token. Used by: client.acquireInOrder.
 */
import { attended } from './attended.js';
import { badRequest, type HoldfastError } from './errors.js';
import type { Lease } from './lease.js';

/** Leases held together. Released together, the last acquired first. */
export class LeaseSet implements AsyncDisposable {
  /** In the order of the names' bytes. */
  readonly leases: readonly Lease[];
  /** Aborts as soon as one of the leases is lost. */
  readonly signal: AbortSignal;

  /** Programs call client.acquireInOrder. */
  constructor(leases: readonly Lease[]) {
    this.leases = leases;
    this.signal = AbortSignal.any(leases.map((lease) => lease.signal));
  }

  /** The lease of `name`. Throws BAD_REQUEST `name` when it is not among them. */
  get(name: string): Lease {
    const found = this.leases.find((lease) => lease.name === name);
    if (found === undefined) throw badRequest('name', `${name} is not in this set`);
    return found;
  }

  /** True while every lease is held. */
  get isHeld(): boolean {
    return this.leases.every((lease) => lease.state === 'held');
  }

  /** Milliseconds until the first safe deadline. */
  remainingMs(): number {
    return Math.min(...this.leases.map((lease) => lease.remainingMs()));
  }

  /** Releases all. Rejects with the first failure, the others among its `suppressed`. */
  release(): Promise<void> {
    return attended(this.#release());
  }

  /** Releases all; what fails is counted. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const lease of [...this.leases].reverse()) await lease.dispose();
  }

  async #release(): Promise<void> {
    const failures: HoldfastError[] = [];
    for (const lease of [...this.leases].reverse()) {
      const failure = await lease.dispose();
      if (failure !== undefined) failures.push(failure);
    }
    const [first, ...others] = failures;
    if (first === undefined) return;
    first.suppressed.push(...others);
    throw first;
  }
}

const ENCODER = new TextEncoder();

/** The names in the order of their bytes. Throws BAD_REQUEST `name` for none or a repeated one. */
export function inByteOrder(names: readonly string[]): string[] {
  if (names.length === 0) throw badRequest('name', 'acquireInOrder got no name');
  if (new Set(names).size !== names.length) throw badRequest('name', 'a name stands twice');
  const keyed = names.map((name) => ({ name, bytes: ENCODER.encode(name) }));
  keyed.sort((one, other) => Buffer.compare(one.bytes, other.bytes));
  return keyed.map(({ name }) => name);
}

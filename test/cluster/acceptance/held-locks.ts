/**
 * What clients were told they hold, to be compared with what the cluster says later.
 *
 * Owns: the record of acknowledged acquires, and of releases that were begun (whether or not they
 * were acknowledged). Never: a guess; an acquire without an acknowledgement is not in the record.
 * Used by: tests in which nodes die under load.
 */
import { type Client, isHoldfastError } from '../../../src/client/index.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { acquireOperation, type Grant, grantIn } from './operations.js';
import type { RawConnection } from './raw-connection.js';

const READS_AT_ONCE = 64;

interface Hold extends Grant {
  readonly name: string;
  /** A release was sent, so the lock may be free or held by somebody later. */
  isReleaseBegun: boolean;
}

export class HeldLocks {
  private readonly holds: Hold[] = [];

  /** Acquires that were acknowledged. */
  get count(): number {
    return this.holds.length;
  }

  /** Acquires that were acknowledged and nobody began to release. */
  get kept(): readonly Hold[] {
    return this.holds.filter((hold) => !hold.isReleaseBegun);
  }

  note(name: string, grant: Grant): Hold {
    const hold = { ...grant, name, isReleaseBegun: false };
    this.holds.push(hold);
    return hold;
  }

  /** Acquires `count` locks over one connection, without sessions. */
  async acquire(
    connection: RawConnection,
    prefix: string,
    count: number,
    ttlMs: number,
  ): Promise<void> {
    const names = Array.from({ length: count }, (_, at) => `${prefix}/${at}`);
    const grants = names.map(async (name) => {
      const reply = await connection.call(acquireOperation(`of ${name}`, name, ttlMs));
      if (reply.code !== ErrorCode.Ok) throw new Error(`${name} was refused with ${reply.code}`);
      this.note(name, grantIn(reply));
    });
    await Promise.all(grants);
  }

  /**
   * Reads every lock from the cluster. Returns a line for each that does not have the token that
   * was acknowledged; one whose release was begun may be free, or held under a later token.
   */
  async missing(client: Client): Promise<string[]> {
    const found: string[] = [];
    for (let at = 0; at < this.holds.length; at += READS_AT_ONCE) {
      const some = this.holds.slice(at, at + READS_AT_ONCE);
      found.push(...(await Promise.all(some.map((hold) => compare(client, hold)))));
    }
    return found.filter((line) => line !== '');
  }
}

/** A line that says what is wrong, '' when the lock is as it was acknowledged. */
async function compare(client: Client, hold: Hold): Promise<string> {
  const view = await readLock(client, hold.name);
  const token = view.holder?.token;
  if (token === hold.token) return '';
  if (hold.isReleaseBegun && (token === undefined || token > hold.token)) return '';
  return `${hold.name}: acknowledged ${hold.token}, now ${String(token)}`;
}

/** A read that is refused while a leader is elected is asked again. */
async function readLock(
  client: Client,
  name: string,
): Promise<{ holder: { token: number } | null }> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await client.get(name, { deadlineMs: 30_000 });
    } catch (error) {
      if (!isHoldfastError(error) || attempt === 3) throw error;
    }
  }
}

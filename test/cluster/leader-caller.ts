/**
 * Operations by hand to whoever leads, asked again under the same request id when nobody has.
 *
 * Owns: one connection, replaced when its node leads no more. Never: an error for a refusal; only
 * "not here, not now" is asked again. Used by: tests of other things than failover, which a busy
 * machine must not break by an election.
 */
import { ErrorCode } from '../../src/wire/errors.js';
import type { PackValue } from '../../src/wire/msgpack-writer.js';
import type { Reply } from '../../src/wire/response.js';
import { RawConnection } from './acceptance/raw-connection.js';
import type { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const CALL_MS_MAX = 90_000;
const NOT_HERE_NOT_NOW: ReadonlySet<number> = new Set([
  ErrorCode.NotLeader,
  ErrorCode.NoQuorum,
  ErrorCode.UnknownOutcome,
  ErrorCode.ShuttingDown,
]);

export class LeaderCaller {
  /** The node that answered last. */
  leader = 0;
  private opening: Promise<RawConnection> | null = null;

  constructor(private readonly cluster: Cluster) {}

  /** Resolves with the final reply. The operation names itself, or may be repeated. */
  call(operation: readonly PackValue[]): Promise<Reply> {
    return waitFor('the answer of a leader', () => this.ask(operation), CALL_MS_MAX);
  }

  /** Many at once, their replies in order. */
  callAll(operations: readonly (readonly PackValue[])[]): Promise<Reply[]> {
    return Promise.all(operations.map((operation) => this.call(operation)));
  }

  close(): void {
    this.opening?.then(
      (connection) => connection.close(),
      () => undefined, // there is none
    );
    this.opening = null;
  }

  private async ask(operation: readonly PackValue[]): Promise<Reply | null> {
    this.opening ??= this.open();
    const { opening } = this;
    try {
      const connection = await opening;
      const reply = await connection.call(operation);
      if (!NOT_HERE_NOT_NOW.has(reply.code)) return reply;
      connection.close();
    } catch (error) {
      if (this.opening === opening) this.opening = null;
      throw error;
    }
    if (this.opening === opening) this.opening = null;
    return null;
  }

  private async open(): Promise<RawConnection> {
    this.leader = await this.cluster.leader(CALL_MS_MAX);
    return RawConnection.open(this.cluster.endpoint(this.leader));
  }
}

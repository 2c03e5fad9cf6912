/**
 * Tells the cluster what guards refused: it shows in watches, the audit stream and metrics.
 *
 * Owns: how a report becomes a command. Never: a retry beyond that of the client, or a wait: a
 * report that fails is counted by RefusalBatches, and the write was refused long before.
 * Used by: programs, as the reporter of their RefusalBatches; the write proxy's command.
 */
import type { Admin } from '../client/admin.js';
import type { Refusal, RefusalReporter } from './refusals.js';

/**
 * @example
 * const refusals = new RefusalBatches(new ClusterReporter(client.admin));
 * const guard = new PostgresGuard(pool, { observer: refusals });
 */
export class ClusterReporter implements RefusalReporter {
  readonly #admin: Pick<Admin, 'reportRefusal'>;

  /** @param admin `client.admin` of a connected client. */
  constructor(admin: Pick<Admin, 'reportRefusal'>) {
    this.#admin = admin;
  }

  /** Resolves when the cluster has it on a majority of disks. Rejects as the client does. */
  async report({ lock, resource, offered, seen, count }: Refusal): Promise<void> {
    const report = { token: offered, mark: seen, refusals: count, guard: resource };
    await this.#admin.reportRefusal(lock, report);
  }
}

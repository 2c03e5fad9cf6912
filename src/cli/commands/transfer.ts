/**
 * `holdfast transfer NODE`: makes another node lead, without an election time-out.
 *
 * Owns: the request and the wait until it shows. Never: forces; a node that is behind or gone does
 * not take over, and the time-out says so. Used by: commands/table.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ErrorCode, HoldfastError } from '../../client/errors.js';
import type { Endpoint } from '../../server/options.js';
import { CommandKind } from '../../wire/request.js';
import { readClusterOptions, readNodeId } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { ExitCode } from '../exit-codes.js';
import { withLeader } from '../leader-call.js';
import { findLeader } from '../node-status.js';

const LOOK_MS = 50;

/** Resolves when `nodeId` serves as leader. Rejects with NO_QUORUM when the time is up. */
async function waitUntilLeads(
  endpoints: readonly Endpoint[],
  nodeId: number,
  timeoutMs: number,
): Promise<void> {
  const started = performance.now();
  for (;;) {
    const leader = await findLeader(endpoints);
    if (leader === nodeId) return;
    if (performance.now() - started > timeoutMs) {
      const found = leader === null ? 'no node leads' : `node ${leader} leads`;
      const message = `node ${nodeId} has not taken over in ${timeoutMs} ms: ${found}`;
      throw new HoldfastError(ErrorCode.NoQuorum, { message });
    }
    await delay(LOOK_MS);
  }
}

async function run(input: CommandInput): Promise<number> {
  const { endpoints, timeoutMs } = readClusterOptions(input);
  const nodeId = readNodeId('NODE', input.words[0] ?? '');
  const previous = await withLeader(endpoints, timeoutMs, async (call) => {
    const leader = call.greeting?.nodeId ?? 0;
    if (leader !== nodeId) await call.request([CommandKind.Transfer, nodeId]);
    return leader;
  });
  await waitUntilLeads(endpoints, nodeId, timeoutMs);
  const words =
    previous === nodeId
      ? `node ${nodeId} leads already`
      : `node ${nodeId} leads now (was ${previous})`;
  input.output.result({ leader: nodeId, previous }, [words]);
  return ExitCode.Ok;
}

export const transferCommand: CommandSpec = {
  path: ['transfer'],
  summary: 'make another node the leader',
  arguments: [{ name: 'NODE', summary: 'id of the node that is to lead', isRequired: true }],
  options: [...CLUSTER_OPTIONS],
  examples: [{ words: 'transfer 3', says: 'before node 1, which leads, is taken down' }],
  run,
};

/**
 * `holdfast transfer NODE`: makes another node lead, without an election time-out.
 *
 * Owns: the request and the wait until it shows. Never: forces; a node that is behind or gone does
 * not take over, and the time-out says so. Used by: commands/table.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ErrorCode, HoldfastError } from '../../client/errors.js';
import type { Member } from '../../client/reply.js';
import { type Endpoint, parseEndpoint } from '../../server/options.js';
import { CommandKind } from '../../wire/request.js';
import { readClusterOptions, readNodeId } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { CliError, ExitCode } from '../exit-codes.js';
import { withLeader } from '../leader-call.js';
import { findLeader, readStatus } from '../node-status.js';

const LOOK_MS = 50;
/** A node that lives answers within this. */
const TARGET_TIMEOUT_MS = 1_500;

/** Resolves when `nodeId` serves as leader. Rejects with TRANSFER_FAILED when the time is up. */
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
      throw new CliError('TRANSFER_FAILED', message, { leader: leader ?? 0 });
    }
    await delay(LOOK_MS);
  }
}

/** The node that is to lead, if it is a member. Throws BAD_REQUEST otherwise. */
export function findTarget(members: readonly Member[], nodeId: number): Endpoint {
  const voters = members.filter((member) => member.role === 'voter');
  const target = voters.find((member) => member.nodeId === nodeId);
  if (target !== undefined) return parseEndpoint('members', target.address);
  const ids = voters.map((member) => member.nodeId).join(', ');
  const message = `node ${nodeId} is no voter; voters: ${ids}`;
  throw new HoldfastError(ErrorCode.BadRequest, { message, details: { field: 'node_id' } });
}

/** A node that does not answer takes nothing over: said at once, and nothing is asked. */
async function checkAnswers(target: Endpoint, nodeId: number, leader: number): Promise<void> {
  try {
    await readStatus(target, TARGET_TIMEOUT_MS);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const message = `node ${nodeId} does not answer; node ${leader} leads on (${error.message})`;
    throw new CliError('NODE_UNREACHABLE', message, { leader });
  }
}

async function run(input: CommandInput): Promise<number> {
  const options = readClusterOptions(input);
  const nodeId = readNodeId('NODE', input.words[0] ?? '');
  let endpoints = options.endpoints;
  const previous = await withLeader(options, async (call) => {
    const leader = call.greeting?.nodeId ?? 0;
    const members = call.greeting?.members ?? [];
    const target = findTarget(members, nodeId);
    if (leader === nodeId) return leader;
    await checkAnswers(target, nodeId, leader);
    endpoints = [target, ...members.map(({ address }) => parseEndpoint('members', address))];
    await call.request([CommandKind.Transfer, nodeId]);
    return leader;
  });
  if (previous !== nodeId) await waitUntilLeads(endpoints, nodeId, options.timeoutMs);
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

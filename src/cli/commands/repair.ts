/**
 * `holdfast repair`: brings a damaged data folder back, from another node's snapshot where needed.
 *
 * Owns: what is repaired and what is refused, and how long a snapshot is waited for. Never: a file
 * (server/repair.ts), or a folder whose identity is damaged: a node that does not know for whom it
 * voted must not come back. Used by: commands/table.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { FolderReport } from '../../io/scrub/folder-check.js';
import {
  type Endpoint,
  OptionError,
  parseEndpoint,
  parseMemberList,
} from '../../server/options.js';
import type { RepairTask } from '../../server/repair.js';
import type { SnapshotManifest } from '../../wire/snapshot-manifest.js';
import { readClusterOptions } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { formatDuration, parseDuration } from '../duration.js';
import { CliError, ExitCode } from '../exit-codes.js';
import { readLeaderBound } from '../repair/leader-bound.js';
import { demandClosed } from '../verify/closed-folder.js';

const WAIT_DEFAULT = '10m';
const ROUND_MS = 500;

/** Whom to ask: --peers, or as the cluster was founded; this node itself left out. */
function peersOf(input: CommandInput, { state, founding }: RepairTask): Map<number, Endpoint> {
  const text = input.text('peers');
  const peers =
    text === undefined
      ? new Map(
          founding.members.map(({ nodeId, peer }) => [nodeId, parseEndpoint('--peers', peer)]),
        )
      : parseMemberList('--peers', text);
  peers.delete(state.nodeId);
  return peers;
}

interface Fetched {
  readonly nodeId: number;
  readonly manifest: SnapshotManifest;
}

/** Asks one member after the other until one has a snapshot that is new enough. */
async function fetchAny(
  input: CommandInput,
  task: RepairTask,
  peers: ReadonlyMap<number, Endpoint>,
): Promise<Fetched> {
  const { fetchFrom } = await import('../../server/repair.js');
  const waitMs = parseDuration('--wait', input.text('wait') ?? WAIT_DEFAULT);
  const untilMs = performance.now() + waitMs;
  let isTold = false;
  for (;;) {
    const reasons: string[] = [];
    for (const [nodeId, address] of peers) {
      try {
        return { nodeId, manifest: await fetchFrom(task, address) };
      } catch (error) {
        reasons.push(`node ${nodeId}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    const text = reasons.join('; ');
    if (performance.now() >= untilMs) {
      const waited = `within ${formatDuration(waitMs)} no member gave a snapshot`;
      const way = 'They make one each --snapshot-entries entries: start one with fewer, or wait.';
      const what = `of index ${task.leastIndex} or later`;
      throw new CliError('NO_SNAPSHOT', `${waited} ${what}: ${text}. ${way}`);
    }
    if (!isTold) input.output.note(`waiting for a snapshot of index ${task.leastIndex}: ${text}`);
    isTold = true;
    await delay(ROUND_MS);
  }
}

async function fromSnapshot(
  input: CommandInput,
  folder: string,
  report: FolderReport,
): Promise<number> {
  const { state, founding } = report.identity;
  if (state === null || founding === null) throw beyondRepair(folder, 'it says of no cluster');
  // Asked while nobody has the folder open: nothing more is acknowledged from here on.
  const bound = await readLeaderBound(readClusterOptions(input));
  const leastIndex = Math.max(bound, report.log.last);
  const task = { dataFolder: folder, state, founding, leastIndex };
  const { nodeId, manifest } = await fetchAny(input, task, peersOf(input, task));
  const { adoptSnapshot } = await import('../../server/repair.js');
  const aside = adoptSnapshot(folder, manifest);
  const { index } = manifest;
  input.output.result({ folder, repaired: 'snapshot', from_node: nodeId, index, aside }, [
    `the folder has the snapshot of index ${index}, from node ${nodeId}: start the node`,
    `what was there is in ${aside}: delete it when the node follows`,
  ]);
  return ExitCode.Ok;
}

function beyondRepair(folder: string, found: string): CliError {
  const message =
    `Leave the node of ${folder} stopped and keep the folder: ${found}. A node that does not ` +
    'know for whom it voted must not come back, and this release cannot replace a member.';
  return new CliError('BEYOND_REPAIR', message, { folder });
}

async function repairLocked(input: CommandInput, folder: string): Promise<number> {
  const { checkFolder } = await import('../../io/scrub/folder-check.js');
  const report = checkFolder(folder);
  const kinds = new Set(report.faults.map(({ kind }) => kind));
  const identity = report.faults.find(({ kind }) => kind === 'identity');
  if (identity !== undefined) throw beyondRepair(folder, identity.found);
  if (kinds.size === 0) {
    input.output.result({ folder, repaired: null }, ['nothing to repair: no fault']);
    return ExitCode.Ok;
  }
  if (kinds.size > 1 || !kinds.has('history')) return fromSnapshot(input, folder, report);
  const { setHistoryAside } = await import('../../server/repair.js');
  const aside = setHistoryAside(folder);
  input.output.result({ folder, repaired: 'history', aside }, [
    `the audit stream of this node begins with its newest snapshot: start the node`,
    `what was there is in ${aside}: delete it when you do not need it`,
  ]);
  return ExitCode.Ok;
}

async function run(input: CommandInput): Promise<number> {
  const folder = input.text('folder');
  if (folder === undefined || folder === '') throw new OptionError('--folder', 'is required');
  await demandClosed(folder);
  const { FolderLock } = await import('../../io/log/folder-lock.js');
  const lock = await FolderLock.take(folder);
  try {
    return await repairLocked(input, folder);
  } finally {
    await lock.release();
  }
}

export const repairCommand: CommandSpec = {
  path: ['repair'],
  summary: 'bring the damaged data folder of a stopped node back from another node',
  details:
    'Checks the folder as `verify --folder` does. Damage in the log or a snapshot: fetches ' +
    'another node’s snapshot that is at least as new as everything that this node can have ' +
    'acknowledged, and puts it in place with an empty log behind it; the node then follows. ' +
    'Damage in the history alone: sets it aside. Term, vote and disk id stay; a folder where ' +
    'they are damaged is refused. Nothing is deleted: what was there lies in `damaged-1` inside ' +
    'the folder.',
  arguments: [],
  options: [
    { name: 'folder', kind: 'text', value: 'DIR', summary: 'the data folder' },
    {
      name: 'wait',
      kind: 'text',
      value: 'TIME',
      summary: 'how long to wait for a snapshot that is new enough',
      defaultText: WAIT_DEFAULT,
    },
    {
      name: 'peers',
      kind: 'text',
      value: 'ID=HOST:PORT,…',
      summary: 'peer addresses of the members, where they are not those of the founding',
    },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { words: 'repair --folder .holdfast/node-3', says: 'node 3 of the local cluster, stopped' },
  ],
  run,
};

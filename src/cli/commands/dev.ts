/**
 * `holdfast dev`: five durable nodes on this machine, as child processes of this one.
 *
 * Owns: when to found (all five folders empty, or a founding that was interrupted), what is checked
 * before a node starts, and the readiness line. Never: restarts a node; one that ends is reported.
 * Used by: commands/table.ts, npm start.
 */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { findFolderHolder } from '../../io/log/folder-lock.js';
import { makeFolders } from '../../io/log/folders.js';
import {
  type Endpoint,
  formatEndpoint,
  OptionError,
  parseSettings,
  parseWhole,
} from '../../server/options.js';
import type { CommandInput, CommandSpec } from '../command.js';
import { DevChildren } from '../dev-children.js';
import { CliError, ExitCode } from '../exit-codes.js';
import {
  BASE_PORT_DEFAULT,
  clientAddresses,
  httpAddresses,
  LOCAL_NODES,
  type LocalNode,
  localNodes,
} from '../local-cluster.js';
import { findLeader } from '../node-status.js';

const DATA_DEFAULT = '.holdfast';
/** Its presence says: a founding began and was not seen to end. */
const FOUNDING_MARK = 'founding';
const PORT_MAX = 65_535;
/** Between two looks for a leader. */
const LOOK_MS = 100;
/** So many nodes serve without the others. */
const MAJORITY = Math.floor(LOCAL_NODES / 2) + 1;

function isEmpty(folder: string): boolean {
  return !existsSync(folder) || readdirSync(folder).length === 0;
}

/** Which nodes a run of `dev` starts, and whether it founds the cluster. */
export interface DevPlan {
  readonly isFounding: boolean;
  readonly started: readonly LocalNode[];
  /** Nodes whose folders are empty while others are not: they have forgotten their votes. */
  readonly wiped: readonly LocalNode[];
}

/**
 * Looks at the five data folders; `folder` exists. Throws CliError FOLDER_WIPED when too many are
 * empty: a wiped node must not come back as if it remembered its votes.
 */
export function planDev(folder: string, nodes: readonly LocalNode[]): DevPlan {
  const mark = path.join(folder, FOUNDING_MARK);
  const wiped = nodes.filter((node) => isEmpty(node.dataFolder));
  if (wiped.length === nodes.length || existsSync(mark)) {
    writeFileSync(mark, 'holdfast dev is founding a cluster in this folder\n');
    return { isFounding: true, started: nodes, wiped: [] };
  }
  const started = nodes.filter((node) => !wiped.includes(node));
  if (started.length >= MAJORITY) return { isFounding: false, started, wiped };
  const names = wiped.map((node) => path.basename(node.dataFolder)).join(', ');
  throw new CliError(
    'FOLDER_WIPED',
    `restore ${names} in ${folder}: empty, while the others are not, and ${started.length} ` +
      `nodes of ${nodes.length} are no majority. Or delete all of ${folder} for a new cluster; ` +
      'it counts its tokens from 1 again, so whatever has stored a larger token will refuse it',
  );
}

/** Makes the folder of the cluster. Throws CliError FOLDER_UNUSABLE. */
function makeDataFolder(folder: string): void {
  try {
    makeFolders(folder);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new CliError('FOLDER_UNUSABLE', `--data: cannot make the folder ${folder} (${code})`);
  }
}

/** Throws CliError FOLDER_IN_USE when a running node has one of the folders open. */
async function checkFoldersFree(nodes: readonly LocalNode[]): Promise<void> {
  for (const { dataFolder } of nodes) {
    if (isEmpty(dataFolder)) continue;
    const holder = await findFolderHolder(dataFolder);
    if (holder === null) continue;
    const words = `stop ${holder} first, or give another --data: ${dataFolder} is in use`;
    throw new CliError('FOLDER_IN_USE', words);
  }
}

/** Resolves with the system's error when the port cannot be listened on, null when it can. */
function tryPort({ host, port }: Endpoint): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

/** The first port of the nodes that is not free, as words; '' when all are. */
async function findTakenPort(nodes: readonly LocalNode[]): Promise<string> {
  for (const endpoint of nodes.flatMap((node) => [node.client, node.http, node.peer])) {
    const error = await tryPort(endpoint);
    if (error !== null) return `${formatEndpoint(endpoint)} (${error.code ?? error.message})`;
  }
  return '';
}

/** Resolves with the leader's id once a leader serves, or null when `isOver` says so first. */
async function waitForLeader(
  nodes: readonly LocalNode[],
  isOver: () => boolean,
): Promise<number | null> {
  while (!isOver()) {
    const leader = await findLeader(nodes.map((node) => node.client));
    if (leader !== null) return leader;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return null;
}

function readNodes(input: CommandInput, folder: string): LocalNode[] {
  const text = input.text('base-port') ?? String(BASE_PORT_DEFAULT);
  const greatest = PORT_MAX - 2 * LOCAL_NODES - 200;
  return localNodes(folder, parseWhole('--base-port', text, 1, greatest));
}

/** Everything that can be found wrong before a node is started. */
async function prepare(
  input: CommandInput,
  folder: string,
  nodes: readonly LocalNode[],
): Promise<DevPlan> {
  const settings = input.list('setting');
  parseSettings('--setting', settings);
  await checkFoldersFree(nodes);
  const taken = await findTakenPort(nodes);
  if (taken !== '') {
    // Without this check a cluster that is there already would be taken for the new one.
    const words = `cannot listen on ${taken}: is another cluster running? Try --base-port`;
    throw new CliError('PORT_TAKEN', words);
  }
  makeDataFolder(folder);
  const plan = planDev(folder, nodes);
  if (!plan.isFounding && settings.length > 0) {
    throw new OptionError('--setting', `counts at the founding, and ${folder} is founded`);
  }
  return plan;
}

async function run(input: CommandInput): Promise<number> {
  const folder = path.resolve(input.text('data') ?? DATA_DEFAULT);
  const nodes = readNodes(input, folder);
  const { isFounding, started, wiped } = await prepare(input, folder, nodes);
  const children = new DevChildren(path.join(folder, 'logs'), input.output);
  for (const { nodeId, dataFolder } of wiped) {
    children.skip(nodeId, `${dataFolder} is empty, and a wiped node cannot return`);
  }
  children.start(nodes, started, isFounding, input.list('setting'));
  const needed = isFounding ? LOCAL_NODES : MAJORITY;
  const cannotServe = (): boolean => children.runningCount < needed;
  const leader = await waitForLeader(nodes, () => children.isEnding || cannotServe());
  if (leader !== null && !children.isEnding) {
    rmSync(path.join(folder, FOUNDING_MARK), { force: true });
    const addresses = clientAddresses(nodes);
    const http = httpAddresses(nodes);
    const ready = { ready: true, leader, clients: addresses.split(','), http: http.split(',') };
    const ports = `clients ${addresses}  http ${http}`;
    input.output.result({ ...ready, data: folder }, [
      `holdfast: cluster ready  leader ${leader}  ${ports}  data ${folder}`,
    ]);
  } else if (leader === null && !children.isEnding) {
    children.end(`${children.runningCount} nodes run, and it takes ${needed}`);
  }
  await children.allEnded;
  if (!children.hasFailed) return ExitCode.Ok;
  return leader === null ? ExitCode.Configuration : ExitCode.Refused;
}

export const devCommand: CommandSpec = {
  path: ['dev'],
  summary: 'run five durable nodes on this machine until Ctrl-C',
  details:
    'Node i serves clients on the base port + i, HTTP on the base port + 100 + i and other nodes ' +
    'on the base port + 200 + i. The cluster is founded when all five data folders are empty. ' +
    'Founded, it starts with three good nodes of five; the others are reported. Node logs are in ' +
    'DIR/logs.',
  arguments: [],
  options: [
    {
      name: 'data',
      kind: 'text',
      value: 'DIR',
      summary: 'folder for the five data folders and logs',
      defaultText: DATA_DEFAULT,
    },
    {
      name: 'base-port',
      kind: 'text',
      value: 'PORT',
      summary: 'ports are counted from here',
      defaultText: String(BASE_PORT_DEFAULT),
    },
    {
      name: 'setting',
      kind: 'list',
      value: 'NAME=VALUE',
      summary:
        'a replicated setting for the founding (docs/GLOSSARY.md, Settings); may be repeated',
    },
  ],
  examples: [
    { words: 'dev', says: 'five nodes, clients at 127.0.0.1:7401 to 7405' },
    { words: 'dev --data /tmp/trial --base-port 17400', says: 'a second cluster beside it' },
  ],
  run,
};

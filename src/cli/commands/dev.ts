/**
 * `holdfast dev`: five durable nodes on this machine, as child processes of this one.
 *
 * Owns: when to found (all five folders empty, or a founding that was interrupted), the readiness
 * line, and the end of the children: in order on a signal, by the end of their standard input when
 * this process is killed. Never: restarts a node; one that ends is reported with its status.
 * Used by: commands/table.ts, npm start.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { type Endpoint, formatEndpoint, OptionError, parseWhole } from '../../server/options.js';
import type { CommandInput, CommandSpec } from '../command.js';
import { DevChildren } from '../dev-children.js';
import { ExitCode } from '../exit-codes.js';
import {
  BASE_PORT_DEFAULT,
  clientAddresses,
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

function isEmpty(folder: string): boolean {
  return !existsSync(folder) || readdirSync(folder).length === 0;
}

/**
 * True when this run founds the cluster. Throws OptionError when some folders are empty and others
 * are not: a wiped node must not come back as if it remembered its votes.
 */
export function decideFounding(folder: string, nodes: readonly LocalNode[]): boolean {
  const mark = path.join(folder, FOUNDING_MARK);
  const empty = nodes.filter((node) => isEmpty(node.dataFolder));
  if (empty.length === nodes.length) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(mark, 'holdfast dev is founding a cluster in this folder\n');
    return true;
  }
  if (existsSync(mark)) return true;
  if (empty.length === 0) return false;
  const names = empty.map((node) => node.dataFolder).join(', ');
  throw new OptionError(
    '--data',
    `${names} ${empty.length === 1 ? 'is' : 'are'} empty and the other folders are not: a wiped ` +
      `node cannot return. Restore it, or delete ${folder} to start a new cluster`,
  );
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
  for (const endpoint of nodes.flatMap((node) => [node.client, node.peer])) {
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

async function run(input: CommandInput): Promise<number> {
  const folder = path.resolve(input.text('data') ?? DATA_DEFAULT);
  const basePort = parseWhole(
    '--base-port',
    input.text('base-port') ?? String(BASE_PORT_DEFAULT),
    1,
    PORT_MAX - 2 * LOCAL_NODES - 200,
  );
  const nodes = localNodes(folder, basePort);
  const taken = await findTakenPort(nodes);
  if (taken !== '') {
    // Without this check a cluster that is there already would be taken for the new one.
    const words = `cannot listen on ${taken}: is another cluster running? Try --base-port`;
    input.output.failure('PORT_TAKEN', words, {});
    return ExitCode.Configuration;
  }
  const isFounding = decideFounding(folder, nodes);
  const settings = input.list('setting');
  if (!isFounding && settings.length > 0) {
    throw new OptionError('--setting', `counts at the founding, and ${folder} is founded`);
  }
  const children = new DevChildren(path.join(folder, 'logs'), input.output);
  children.start(nodes, isFounding, settings);
  const leader = await waitForLeader(nodes, () => children.isEnding || children.hasFailed);
  if (leader !== null && !children.isEnding) {
    rmSync(path.join(folder, FOUNDING_MARK), { force: true });
    const addresses = clientAddresses(nodes);
    input.output.result({ ready: true, leader, clients: addresses.split(','), data: folder }, [
      `holdfast: cluster ready  leader ${leader}  clients ${addresses}  data ${folder}`,
    ]);
  } else if (children.hasFailed) {
    children.end('a node ended before the cluster was ready');
  }
  await children.allEnded;
  if (!children.hasFailed) return ExitCode.Ok;
  return leader === null ? ExitCode.Configuration : ExitCode.Refused;
}

export const devCommand: CommandSpec = {
  path: ['dev'],
  summary: 'run five durable nodes on this machine until Ctrl-C',
  details:
    'Node i serves clients on the base port + i and other nodes on the base port + 200 + i. ' +
    'The cluster is founded when all five data folders are empty. Node logs are in DIR/logs.',
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
      summary: 'a replicated setting for the founding record; may be repeated',
    },
  ],
  examples: [
    { words: 'dev', says: 'five nodes, clients at 127.0.0.1:7401 to 7405' },
    { words: 'dev --data /tmp/trial --base-port 17400', says: 'a second cluster beside it' },
  ],
  run,
};

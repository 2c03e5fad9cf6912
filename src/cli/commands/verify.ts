/**
 * `holdfast verify`: whether a cluster, or the data folder of a stopped node, is as it should be.
 *
 * Owns: the words of the command, which of the two it is, and the status. Ends with 0 only when
 * everything that was asked for was checked and nothing was found. Never: a check, a repair, or a
 * byte written. Used by: commands/table.ts.
 */
import { type Endpoint, OptionError, parseEndpoint, parseWhole } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { ExitCode } from '../exit-codes.js';
import { BASE_PORT_DEFAULT, localNodes } from '../local-cluster.js';
import { demandClosed } from '../verify/closed-folder.js';

const MIB = 1 << 20;

async function verifyFolder(input: CommandInput, folder: string): Promise<number> {
  const at = input.text('at');
  const options =
    at === undefined ? {} : { at: parseWhole('--at', at, 0, Number.MAX_SAFE_INTEGER) };
  await demandClosed(folder);
  const { checkFolder } = await import('../../io/scrub/folder-check.js');
  const { folderJson, folderLines, isSound } = await import('../verify/folder-words.js');
  const report = checkFolder(folder, {
    ...options,
    onProgress: (bytes) => input.output.note(`read ${Math.round(bytes / MIB)} MiB`),
  });
  // Whoever has opened it meanwhile has written, and what was found may be that.
  await demandClosed(folder);
  input.output.result(folderJson(folder, report), folderLines(report));
  return isSound(report) ? ExitCode.Ok : ExitCode.Disk;
}

/** HTTP addresses: those that are named; those of the local cluster when nothing is. */
function httpOf(input: CommandInput): readonly Endpoint[] | null {
  const text = input.text('http');
  if (text !== undefined) {
    return text.split(',').map((word) => parseEndpoint('--http', word.trim()));
  }
  const isLocal =
    input.text('endpoints') === undefined && process.env['HOLDFAST_ENDPOINTS'] === undefined;
  return isLocal ? localNodes('', BASE_PORT_DEFAULT).map(({ http }) => http) : null;
}

async function verifyCluster(input: CommandInput): Promise<number> {
  if (input.text('at') !== undefined) throw new OptionError('--at', 'goes with --folder');
  const http = httpOf(input);
  const isPassWanted = input.flag('scrub');
  if (isPassWanted && http === null) {
    throw new OptionError('--scrub', 'name the HTTP ports of the nodes with --http');
  }
  const { checkCluster, clusterJson, clusterLines } = await import('../verify/cluster-check.js');
  const { endpoints, timeoutMs } = readClusterOptions(input);
  const isEveryNode = input.flag('every-node');
  const report = await checkCluster({ endpoints, timeoutMs, http, isPassWanted, isEveryNode });
  input.output.result(clusterJson(report), clusterLines(report));
  if (report.findings.told.length > 0) return ExitCode.Refused;
  return report.unproven.length === 0 ? ExitCode.Ok : ExitCode.Unavailable;
}

function run(input: CommandInput): Promise<number> {
  const folder = input.text('folder');
  if (folder === undefined) return verifyCluster(input);
  for (const name of ['scrub', 'every-node']) {
    if (input.flag(name)) throw new OptionError(`--${name}`, 'goes without --folder');
  }
  return verifyFolder(input, folder);
}

export const verifyCommand: CommandSpec = {
  path: ['verify'],
  summary: 'check a running cluster, or the data folder of a stopped node',
  details:
    'A cluster: the states of all nodes at one index, what their checks of their disks have ' +
    'found, and the audit stream from the oldest revision on, event by event, against the locks ' +
    'as they are. Ends with 0 when all of it was verified and nothing found, 1 with a fault, ' +
    '69 when something could not be verified.\n\n' +
    'A folder: every record, chunk and checksum, and the state that they give when they are ' +
    'applied once more. Nothing is written. Ends with 0 without a fault, 74 with one.',
  arguments: [],
  options: [
    {
      name: 'folder',
      kind: 'text',
      value: 'DIR',
      summary: 'check this data folder, which no process may have open',
    },
    {
      name: 'at',
      kind: 'text',
      value: 'INDEX',
      summary: 'with --folder: show the state at this index of the log',
      defaultText: 'the last',
    },
    {
      name: 'http',
      kind: 'text',
      value: 'HOST:PORT,…',
      summary: 'HTTP addresses of the nodes, which tell what their checks have found',
      defaultText: 'without --endpoints: 127.0.0.1:7501 to 7505',
    },
    {
      name: 'scrub',
      kind: 'flag',
      value: '',
      summary: 'every node checks its disk now, and it is waited for',
    },
    {
      name: 'every-node',
      kind: 'flag',
      value: '',
      summary: 'read the audit stream of every node, not of one alone, and compare them',
    },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { words: 'verify', says: 'the local cluster' },
    { words: 'verify --scrub --every-node --json', says: 'everything, now, for a script' },
    { words: 'verify --folder .holdfast/node-3', says: 'the disk of a node that is stopped' },
  ],
  run,
};

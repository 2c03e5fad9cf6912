/**
 * `holdfast verify`: whether a cluster, the data folder of a stopped node, or a backup is as it
 * should be.
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

async function verifyBackup(input: CommandInput, folder: string): Promise<number> {
  for (const name of ['scrub', 'every-node']) {
    if (input.flag(name)) throw new OptionError(`--${name}`, 'goes without --backup');
  }
  for (const name of ['folder', 'at', 'http']) {
    if (input.text(name) !== undefined) throw new OptionError(`--${name}`, 'goes without --backup');
  }
  const { checkBackup, isBackup } = await import('../../io/backup/backup-folder.js');
  const { backupJson, backupLines } = await import('../verify/backup-words.js');
  if (!isBackup(folder)) throw new OptionError('--backup', `${folder} is no backup`);
  const report = checkBackup(folder);
  input.output.result(backupJson(folder, report), backupLines(folder, report));
  if (report.newerFormat > 0) return ExitCode.Configuration;
  return report.faults.length === 0 ? ExitCode.Ok : ExitCode.Disk;
}

function run(input: CommandInput): Promise<number> {
  const backup = input.text('backup');
  if (backup !== undefined) return verifyBackup(input, backup);
  const folder = input.text('folder');
  if (folder === undefined) return verifyCluster(input);
  for (const name of ['scrub', 'every-node']) {
    if (input.flag(name)) throw new OptionError(`--${name}`, 'goes without --folder');
  }
  return verifyFolder(input, folder);
}

export const verifyCommand: CommandSpec = {
  path: ['verify'],
  summary: 'check a running cluster, the data folder of a stopped node, or a backup',
  details:
    'A cluster: the states of all nodes at one index, what their checks of their disks have ' +
    'found, and the audit stream from the oldest revision on, event by event, against the locks ' +
    'as they are. Ends with 0 when all of it was verified and nothing found, 1 with a fault, ' +
    '69 when something could not be verified.\n\n' +
    'A folder: every record, chunk and checksum, and the state that they give when they are ' +
    'applied once more. Nothing is written. Ends with 0 without a fault, 74 with one.\n\n' +
    'A backup: every file, and the state that it gives, through the same code as a restore, ' +
    'against the digest that the live cluster had. Ends with 0 without a fault, 74 with one, 78 ' +
    'when a newer release made it.',
  arguments: [],
  options: [
    {
      name: 'folder',
      kind: 'text',
      value: 'DIR',
      summary: 'check this data folder, which no process may have open',
    },
    {
      name: 'backup',
      kind: 'text',
      value: 'DIR',
      summary: 'check this backup',
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
    { words: 'verify --backup backups/monday', says: 'a backup, before it is needed' },
  ],
  run,
};

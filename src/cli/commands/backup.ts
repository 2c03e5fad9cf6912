/**
 * `holdfast backup`: the state of a running cluster into a folder.
 *
 * Owns: the words of the command, and what the backup has to hold: everything that was acknowledged
 * when the command began. Never: a file or a socket (server/backup.ts). Used by: commands/table.ts.
 */
import { type Endpoint, formatEndpoint, OptionError, parseEndpoint } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { parseDuration } from '../duration.js';
import { ExitCode } from '../exit-codes.js';
import { BASE_PORT_DEFAULT, localNodes } from '../local-cluster.js';
import { readLeaderBound } from '../repair/leader-bound.js';
import { recordJson, recordLines } from '../verify/backup-words.js';

const WAIT_DEFAULT = '10m';

function readPeers(text: string | undefined): Endpoint[] {
  if (text === undefined) return localNodes('', BASE_PORT_DEFAULT).map(({ peer }) => peer);
  return text.split(',').map((word) => parseEndpoint('--peers', word.trim()));
}

async function run(input: CommandInput): Promise<number> {
  const to = input.text('to');
  if (to === undefined || to === '') throw new OptionError('--to', 'is required');
  const peers = readPeers(input.text('peers'));
  const waitMs = parseDuration('--wait', input.text('wait') ?? WAIT_DEFAULT);
  const options = readClusterOptions(input);
  const { demandEmpty } = await import('../../server/new-cluster.js');
  demandEmpty('--to', to);
  const startedMs = performance.now();
  const leastIndex = await readLeaderBound(options);
  const { takeBackup } = await import('../../server/backup.js');
  const onNote = (text: string): void => input.output.note(text);
  const record = await takeBackup({ to, peers, leastIndex, waitMs, onNote });
  const tookMs = Math.round(performance.now() - startedMs);
  input.output.result({ backup: to, ...recordJson(record), took_ms: tookMs }, [
    ...recordLines(record),
    `backup     ${to}: whole, on disk, verified; ${tookMs} ms`,
    'It holds lease ids and secrets of sessions: keep it as you keep those.',
  ]);
  return ExitCode.Ok;
}

export const backupCommand: CommandSpec = {
  path: ['backup'],
  summary: 'write the state of a running cluster into a folder',
  details:
    'A node makes a snapshot that holds at least everything that was acknowledged when the ' +
    'command began, and gives it over its peer port. Every chunk is checked and on disk before ' +
    'the next is asked for; then the state is built from them and held against the digest of ' +
    'the live one. The folder gets its name last: one that is there is whole. Nobody has to ' +
    'stop.',
  arguments: [],
  options: [
    { name: 'to', kind: 'text', value: 'DIR', summary: 'the folder to make; absent or empty' },
    {
      name: 'peers',
      kind: 'text',
      value: 'HOST:PORT,…',
      summary: 'peer addresses of nodes; the first that answers gives the backup',
      defaultText: '127.0.0.1:7601 to 7605',
    },
    {
      name: 'wait',
      kind: 'text',
      value: 'TIME',
      summary: 'how long to wait for the node to make its snapshot',
      defaultText: WAIT_DEFAULT,
    },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { words: 'backup --to backups/monday', says: 'the local cluster' },
    {
      words:
        `backup --to /backups/monday --endpoints 10.0.0.1:7401 ` +
        `--peers ${formatEndpoint({ host: '10.0.0.2', port: 7_601 })}`,
      says: 'from node 2, a follower',
    },
  ],
  run,
};

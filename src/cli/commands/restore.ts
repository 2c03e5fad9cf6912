/**
 * `holdfast restore`: the data folders of a new cluster from a backup.
 *
 * Owns: the words of the command. Never: a check of the backup, a file (server/restore.ts).
 * Used by: commands/table.ts.
 */
import { OptionError } from '../../server/options.js';
import type { CommandInput, CommandSpec } from '../command.js';
import { ExitCode } from '../exit-codes.js';
import {
  NEW_CLUSTER_OPTIONS,
  newClusterJson,
  newClusterLines,
  readNewCluster,
} from '../new-cluster-options.js';
import { recordJson, recordLines } from '../verify/backup-words.js';

async function run(input: CommandInput): Promise<number> {
  const from = input.text('from');
  if (from === undefined || from === '') throw new OptionError('--from', 'is required');
  const options = readNewCluster(input);
  const { restoreBackup } = await import('../../server/restore.js');
  const { record, cluster } = await restoreBackup({ from, ...options });
  input.output.result({ from: recordJson(record), ...newClusterJson(cluster) }, [
    ...recordLines(record).map((line) => `from: ${line}`),
    ...newClusterLines(cluster),
  ]);
  return ExitCode.Ok;
}

export const restoreCommand: CommandSpec = {
  path: ['restore'],
  summary: 'make the data folders of a new cluster from a backup',
  details:
    'Checks the backup, writes one data folder for each member, reads them back, and names them ' +
    'last, all at once: killed before, it leaves nothing that a node would start from. The ' +
    'cluster is a new one: other cluster id, other disk ids, so nodes of the old one and of ' +
    'another restore are refused. Its tokens are larger than any before; every lease and ' +
    'session is gone, request ids are forgotten, and nothing is granted for a grace ' +
    '(docs/SEMANTICS.md, After a restore). The audit stream begins with what was restored, by ' +
    'whom and why.',
  arguments: [],
  options: [
    { name: 'from', kind: 'text', value: 'DIR', summary: 'the backup' },
    ...NEW_CLUSTER_OPTIONS,
    { name: 'reason', kind: 'text', value: 'TEXT', summary: 'why; stands in the audit stream' },
  ],
  examples: [
    {
      words: 'restore --from backups/monday --to .holdfast --reason "the disks of all nodes"',
      says: 'five nodes for npm start; .holdfast must not be there, or be empty',
    },
    {
      words:
        'restore --from /backups/monday --to restored --peers 1=10.0.0.1:7601,2=10.0.0.2:7601,' +
        '3=10.0.0.3:7601 --clients 1=10.0.0.1:7401,2=10.0.0.2:7401,3=10.0.0.3:7401',
      says: 'three nodes; move restored/node-2 to the second',
    },
  ],
  run,
};

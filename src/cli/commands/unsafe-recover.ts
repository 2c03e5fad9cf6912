/**
 * `holdfast unsafe-recover`: a new cluster from what is left when a majority is lost for ever.
 *
 * Owns: the words of the command, its warning, and the consent that it asks for. Never: a file
 * (server/unsafe-recover.ts). Used by: commands/table.ts.
 */
import { OptionError } from '../../server/options.js';
import type { Survey } from '../../server/unsafe-recover.js';
import type { CommandInput, CommandSpec } from '../command.js';
import { ExitCode } from '../exit-codes.js';
import {
  NEW_CLUSTER_OPTIONS,
  newClusterJson,
  newClusterLines,
  readNewCluster,
} from '../new-cluster-options.js';
import { demandClosed } from '../verify/closed-folder.js';

const CONSENT = 'i-know-that-acknowledged-operations-may-be-lost';

function surveyLines({ clusterId, survivors, taken, revision, missing }: Survey): string[] {
  const lines = [`cluster ${clusterId}: nodes ${missing.join(', ')} are missing`];
  for (const { folder, nodeId, term, index, committedIndex } of survivors) {
    const known = `known to be committed up to ${committedIndex}`;
    lines.push(`node ${nodeId}: log up to index ${index} of term ${term}, ${known} (${folder})`);
  }
  lines.push(
    `node ${taken.nodeId} has the most advanced log: its state at index ${taken.index}, revision ` +
      `${revision}, is taken`,
    'WARNING: whatever the missing nodes acknowledged behind that is lost: grants, releases, ' +
      'sessions. Nobody can say what it was. Every lease ends; holders must be told or fenced.',
    'WARNING: if a missing node ever runs again, there are two clusters that grant the same locks.',
  );
  return lines;
}

function surveyJson({ clusterId, survivors, taken, missing }: Survey): Record<string, unknown> {
  return {
    old_cluster_id: clusterId,
    taken_node_id: taken.nodeId,
    missing_node_ids: missing,
    survivors: survivors.map(({ folder, nodeId, term, index, committedIndex }) => {
      return { folder, node_id: nodeId, term, index, committed_index: committedIndex };
    }),
  };
}

async function run(input: CommandInput): Promise<number> {
  const folders = input.list('folder');
  if (folders.length === 0) throw new OptionError('--folder', 'is required');
  const options = readNewCluster(input);
  if (options.reason === '') throw new OptionError('--reason', 'is required');
  for (const folder of folders) await demandClosed(folder);
  const { recoverUnsafely } = await import('../../server/unsafe-recover.js');
  const onSurvey = (survey: Survey): void => {
    for (const line of surveyLines(survey)) input.output.note(line);
    if (!input.flag(CONSENT)) throw new OptionError(`--${CONSENT}`, 'is required: read the above');
  };
  const { survey, cluster } = await recoverUnsafely({ folders, ...options, onSurvey });
  input.output.result(
    { ...surveyJson(survey), ...newClusterJson(cluster) },
    newClusterLines(cluster),
  );
  return ExitCode.Ok;
}

export const unsafeRecoverCommand: CommandSpec = {
  path: ['unsafe-recover'],
  summary: 'make a new cluster of what is left when a majority is lost for ever',
  details:
    'UNSAFE: what the lost nodes had acknowledged and these have not is gone, and nobody can ' +
    'say what it was. Only when a majority of the data folders will never come back; with a ' +
    'majority the nodes are started instead, and nothing is lost. Takes the data folders of the ' +
    'stopped nodes that are left, says which has the most advanced log, and makes of its state ' +
    'what restore makes of a backup: a new cluster with larger tokens, no lease, no session and ' +
    'a grace. The old folders are only read. Without the consent nothing is written, and it ' +
    'says what it would take.',
  arguments: [],
  options: [
    {
      name: 'folder',
      kind: 'list',
      value: 'DIR',
      summary: 'data folder of a node that is left, stopped; once for each',
    },
    ...NEW_CLUSTER_OPTIONS,
    { name: 'reason', kind: 'text', value: 'TEXT', summary: 'why; stands in the audit stream' },
    { name: CONSENT, kind: 'flag', value: '', summary: 'you have read the above and mean it' },
  ],
  examples: [
    {
      words:
        'unsafe-recover --folder .holdfast/node-1 --folder .holdfast/node-2 --to recovered ' +
        '--reason "nodes 3, 4 and 5 burnt"',
      says: 'only look: what would be taken, and what may be lost',
    },
    {
      words:
        'unsafe-recover --folder .holdfast/node-1 --folder .holdfast/node-2 --to recovered ' +
        `--reason "nodes 3, 4 and 5 burnt" --${CONSENT}`,
      says: 'five new nodes from what nodes 1 and 2 have',
    },
  ],
  run,
};

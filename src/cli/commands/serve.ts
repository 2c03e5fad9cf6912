/**
 * `holdfast serve`: one node of a cluster, in this process.
 *
 * Owns: the option names. Never: their checks (server/options.ts) or the node (server/main.ts,
 * loaded only here, since it brings the log and the logger with it). Used by: commands/table.ts.
 */
import {
  HISTORY_BYTES_KEPT,
  LOG_TAIL_ENTRIES,
  SCRUB_BYTES_PER_SECOND,
  SCRUB_PAUSE_MS,
  SNAPSHOT_ENTRIES,
} from '../../limits.js';
import { LOG_LEVELS } from '../../observe/logger.js';
import { parseServeOptions } from '../../server/options.js';
import type { CommandInput, CommandSpec, OptionSpec } from '../command.js';
import { ExitCode } from '../exit-codes.js';

const OPTIONS: readonly OptionSpec[] = [
  { name: 'node-id', kind: 'text', value: 'N', summary: 'this node’s id, 1 to 65535' },
  { name: 'data', kind: 'text', value: 'DIR', summary: 'folder of its log and identity' },
  { name: 'client', kind: 'text', value: 'HOST:PORT', summary: 'where clients connect' },
  { name: 'http', kind: 'text', value: 'HOST:PORT', summary: 'where HTTP and WebSockets connect' },
  {
    name: 'http-name',
    kind: 'list',
    value: 'NAME',
    summary: 'a name by which the HTTP port may be asked; may be repeated',
  },
  {
    name: 'dashboard-admin',
    kind: 'flag',
    value: '',
    summary: 'let the dashboard free a lock by force; without it the page is read-only',
  },
  { name: 'peer', kind: 'text', value: 'HOST:PORT', summary: 'where the other nodes connect' },
  {
    name: 'peers',
    kind: 'text',
    value: 'ID=HOST:PORT,…',
    summary: 'peer address of every member, this node included',
  },
  {
    name: 'clients',
    kind: 'text',
    value: 'ID=HOST:PORT,…',
    summary: 'client address of every member, as clients reach it',
  },
  {
    name: 'bootstrap',
    kind: 'flag',
    value: '',
    summary: 'found the cluster if no member is founded; on one node only',
  },
  { name: 'zone', kind: 'text', value: 'ZONE', summary: 'label of the failure domain' },
  {
    name: 'setting',
    kind: 'list',
    value: 'NAME=VALUE',
    summary: 'a replicated setting for the founding (docs/GLOSSARY.md, Settings); may be repeated',
  },
  {
    name: 'log-level',
    kind: 'text',
    value: 'LEVEL',
    summary: LOG_LEVELS.join(', '),
    defaultText: 'info',
  },
  {
    name: 'snapshot-entries',
    kind: 'text',
    value: 'N',
    summary: 'entries of the log after which this node makes a snapshot',
    defaultText: String(SNAPSHOT_ENTRIES),
  },
  {
    name: 'log-tail-entries',
    kind: 'text',
    value: 'N',
    summary: 'entries before a snapshot that stay in the log, for followers that lag a little',
    defaultText: String(LOG_TAIL_ENTRIES),
  },
  {
    name: 'history-mib',
    kind: 'text',
    value: 'N',
    summary:
      'MiB of log and snapshots kept behind the last snapshot, for the audit stream; 0: none',
    defaultText: String(HISTORY_BYTES_KEPT >> 20),
  },
  {
    name: 'scrub-mib',
    kind: 'text',
    value: 'N',
    summary: 'MiB a second that the background check of the disk reads; 0: there is none',
    defaultText: String(SCRUB_BYTES_PER_SECOND >> 20),
  },
  {
    name: 'scrub-pause-s',
    kind: 'text',
    value: 'N',
    summary: 'seconds from the end of one pass of that check to the next',
    defaultText: String(SCRUB_PAUSE_MS / 1_000),
  },
  {
    name: 'otlp-endpoint',
    kind: 'text',
    value: 'URL',
    summary:
      'collector that takes spans by OTLP over HTTP, without /v1/traces; ' +
      'absent: OTEL_EXPORTER_OTLP_ENDPOINT, or no spans',
  },
  {
    name: 'until-stdin-ends',
    kind: 'flag',
    value: '',
    summary: 'stop when standard input ends, for supervisors',
  },
];

const STATUS_BY_END = {
  stopped: ExitCode.Ok,
  refused: ExitCode.Configuration,
  disk: ExitCode.Disk,
  fault: ExitCode.Fault,
} as const;

async function run(input: CommandInput): Promise<number> {
  const options = parseServeOptions({
    nodeId: input.text('node-id'),
    data: input.text('data'),
    client: input.text('client'),
    peer: input.text('peer'),
    http: input.text('http'),
    httpName: input.list('http-name'),
    dashboardAdmin: input.flag('dashboard-admin'),
    peers: input.text('peers'),
    clients: input.text('clients'),
    bootstrap: input.flag('bootstrap'),
    zone: input.text('zone'),
    setting: input.list('setting'),
    logLevel: input.text('log-level'),
    snapshotEntries: input.text('snapshot-entries'),
    logTailEntries: input.text('log-tail-entries'),
    historyMib: input.text('history-mib'),
    scrubMib: input.text('scrub-mib'),
    scrubPauseS: input.text('scrub-pause-s'),
    otlpEndpoint: input.text('otlp-endpoint'),
    environment: process.env,
    untilStdinEnds: input.flag('until-stdin-ends'),
  });
  const { serve } = await import('../../server/main.js');
  return STATUS_BY_END[await serve(options)];
}

export const serveCommand: CommandSpec = {
  path: ['serve'],
  summary: 'run one node of a cluster',
  details:
    'Logs JSON lines to standard output, one of them `serving`. SIGTERM and SIGINT end the node ' +
    'in order: it hands leadership over, answers what it can, closes its log. A node whose disk ' +
    'fails ends by SIGKILL.',
  arguments: [],
  options: OPTIONS,
  examples: [
    {
      words:
        'serve --node-id 1 --data /var/lib/holdfast --client 10.0.0.1:7401 --peer 10.0.0.1:7601 ' +
        '--peers 1=10.0.0.1:7601,2=10.0.0.2:7601,3=10.0.0.3:7601 ' +
        '--clients 1=10.0.0.1:7401,2=10.0.0.2:7401,3=10.0.0.3:7401 --bootstrap',
      says: 'the node that founds a cluster of three; the others run the same without --bootstrap',
    },
  ],
  run,
};

/**
 * `holdfast guard proxy` and `holdfast guard lift`: the write proxy, and the end of a quarantine.
 *
 * Owns: the process that the proxy runs in, until a signal. Never: what the proxy lets through.
 * Used by: commands/table.ts.
 */
import type { RefusalBatches } from '../../guards/refusals.js';
import type { GuardEvent } from '../../guards/tally.js';
import { OptionError, parseEndpoint, parseWhole } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import {
  CLUSTER_OPTIONS,
  type CommandInput,
  type CommandSpec,
  type OptionSpec,
} from '../command.js';
import { parseDuration } from '../duration.js';
import { CliError, ExitCode } from '../exit-codes.js';
import { untilStopped } from './watch.js';

const MARKS_OPTION: OptionSpec = {
  name: 'marks',
  kind: 'text',
  value: 'FILE',
  summary: 'the SQLite file of marks and quarantines, of this proxy alone',
};
const LISTEN_DEFAULT = '127.0.0.1:8081';
const UPSTREAM_TIMEOUT_DEFAULT = '30s';

async function openMarks(input: CommandInput) {
  const file = input.text('marks');
  if (file === undefined) throw new OptionError('--marks', 'name the file of the marks');
  const { openDatabase } = await import('../../guards/open-guard.js');
  try {
    return await openDatabase(file);
  } catch (error) {
    throw new CliError('GUARD_FAILED', `${file}: ${(error as Error).message}`, { store: 'sqlite' });
  }
}

function upstreamOf(input: CommandInput): string {
  const upstream = input.text('upstream') ?? '';
  if (!/^https?:\/\/[^/]+\/?$/.test(upstream) || !URL.canParse(upstream)) {
    throw new OptionError('--upstream', `give http://HOST:PORT, not '${upstream}'`);
  }
  return upstream;
}

/** What tells the cluster of refusals. */
interface Reporting {
  readonly refusals: RefusalBatches;
  close(): Promise<void>;
}

/** Null without --report: then refusals are told on standard error only. */
async function openReporting(input: CommandInput): Promise<Reporting | null> {
  if (!input.flag('report')) return null;
  const { ClientHolder } = await import('../client-holder.js');
  const { ClusterReporter } = await import('../../guards/cluster-reporter.js');
  const { RefusalBatches: Batches } = await import('../../guards/refusals.js');
  const holder = new ClientHolder(readClusterOptions(input));
  const client = await holder.connect();
  const refusals = new Batches(new ClusterReporter(client.admin));
  const close = async (): Promise<void> => {
    refusals.flush();
    await holder.close();
  };
  return { refusals, close };
}

async function proxy(input: CommandInput): Promise<number> {
  const upstream = upstreamOf(input);
  const { host, port } = parseEndpoint('--listen', input.text('listen') ?? LISTEN_DEFAULT);
  const timeout = input.text('upstream-timeout') ?? UPSTREAM_TIMEOUT_DEFAULT;
  const upstreamMsMax = parseDuration('--upstream-timeout', timeout);
  const reporting = await openReporting(input);
  const database = await openMarks(input);
  const { WriteProxy } = await import('../../guards/proxy/write-proxy.js');
  const stopped = untilStopped();
  const observer = {
    onRefused: (event: GuardEvent) => {
      const { lock, offered, seen } = event;
      input.output.note(`refused a write under ${lock}: token ${offered}, ${seen} was seen`);
      reporting?.refusals.onRefused(event);
    },
    onUnknown: ({ lock }: { lock: string }) =>
      input.output.note(`lock ${lock} is in quarantine: the upstream did not answer`),
  };
  const running = await WriteProxy.start(
    { upstream, database, upstreamMsMax, observer },
    host,
    port,
  );
  const listen = `${host}:${running.port}`;
  const quarantined = running.flights.list().map(({ lock }) => lock);
  input.output.result({ listen, upstream, quarantined }, [`proxy on ${listen} to ${upstream}`]);
  for (const lock of quarantined) input.output.note(`lock ${lock} is in quarantine`);
  await new Promise<void>((resolve) => {
    if (stopped.aborted) resolve();
    else stopped.addEventListener('abort', () => resolve(), { once: true });
  });
  await running.close();
  database.close();
  await reporting?.close();
  return ExitCode.Ok;
}

async function lift(input: CommandInput): Promise<number> {
  const name = input.words[0] ?? '';
  const barrier = input.text('barrier');
  const token =
    barrier === undefined
      ? undefined
      : parseWhole('--barrier', barrier, 1, Number.MAX_SAFE_INTEGER);
  const database = await openMarks(input);
  try {
    const { FlightLog } = await import('../../guards/proxy/flight-log.js');
    const lifted = await new FlightLog(database).lift(name, token);
    if (lifted === null) {
      input.output.result({ lock: name, lifted: false }, [`${name} is in no quarantine`]);
      return ExitCode.Ok;
    }
    const words = `${name} is open again: ${lifted.what} under token ${lifted.token} is over`;
    input.output.result({ lifted: true, ...lifted }, [words]);
    return ExitCode.Ok;
  } finally {
    database.close();
  }
}

export const guardProxyCommands: readonly CommandSpec[] = [
  {
    path: ['guard', 'proxy'],
    summary: 'run a proxy before an HTTP service: one fenced write a lock passes at a time',
    details:
      'The weakest of the guards: it checks only what comes through it. A write needs the ' +
      'headers holdfast-lock (percent-encoded) and holdfast-token. When the service does not ' +
      'answer, the lock is in quarantine until guard lift. Runs until SIGINT or SIGTERM.',
    arguments: [],
    options: [
      { name: 'upstream', kind: 'text', value: 'URL', summary: 'the service, http://HOST:PORT' },
      MARKS_OPTION,
      {
        name: 'listen',
        kind: 'text',
        value: 'HOST:PORT',
        summary: 'where to listen',
        defaultText: LISTEN_DEFAULT,
      },
      {
        name: 'upstream-timeout',
        kind: 'text',
        value: 'TIME',
        summary: 'how long the service may take to answer',
        defaultText: UPSTREAM_TIMEOUT_DEFAULT,
      },
      {
        name: 'report',
        kind: 'flag',
        value: '',
        summary: 'tell the cluster of refused writes: they show in audit, watches and metrics',
      },
      ...CLUSTER_OPTIONS,
    ],
    examples: [
      {
        words: 'guard proxy --upstream http://127.0.0.1:8080 --marks marks.sqlite',
        says: 'writes go to port 8081',
      },
    ],
    run: proxy,
  },
  {
    path: ['guard', 'lift'],
    summary: 'end the quarantine of a lock at a write proxy, once its lost write cannot arrive',
    arguments: [{ name: 'NAME', summary: 'the lock', isRequired: true }],
    options: [
      MARKS_OPTION,
      {
        name: 'barrier',
        kind: 'text',
        value: 'NUMBER',
        summary: 'raise the mark to this token first',
      },
    ],
    examples: [
      {
        words: 'guard lift jobs/7 --marks marks.sqlite --barrier 42',
        says: 'open it again for tokens from 42 on',
      },
    ],
    run: lift,
  },
];

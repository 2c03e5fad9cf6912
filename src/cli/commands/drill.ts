/**
 * `holdfast drill NAME`, `drill all`, `drill --canary`: plays failures and says what came of them.
 *
 * Owns: which drills a command line means, how their records are told, and the exit status: 0 only
 * when every record is complete. Ended by a signal it takes down what it has put up. Never: a
 * drill. Used by: commands/table.ts.
 */
import { constants } from 'node:os';
import { OptionError } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import {
  CLUSTER_OPTIONS,
  type CommandInput,
  type CommandSpec,
  type OptionSpec,
  type Output,
} from '../command.js';
import { Backstage } from '../drills/backstage.js';
import { DRILL_NAMES, type DrillName } from '../drills/names.js';
import type { RecoveryRecord } from '../drills/record.js';
import { readTestMode, type TestMode } from '../drills/test-mode.js';
import { parseDuration } from '../duration.js';
import { EXIT_SIGNAL_BASE, ExitCode } from '../exit-codes.js';
import { reportFailure } from '../program.js';

const ALL = 'all';
const EVERY_DEFAULT = '1m';
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Options that go with --canary alone. */
const CANARY_ONLY = ['every', 'endpoints', 'timeout'];

function isDrillName(word: string): word is DrillName {
  return (DRILL_NAMES as readonly string[]).includes(word);
}

function namesOf(word: string | undefined): readonly DrillName[] {
  if (word === ALL) return DRILL_NAMES;
  if (word !== undefined && isDrillName(word)) return [word];
  const given = word === undefined ? '' : `, not '${word}'`;
  throw new OptionError('NAME', `give ${[ALL, ...DRILL_NAMES].join(', ')}, or --canary${given}`);
}

/** What is put up is taken down with this process, however it ends, but for SIGKILL. */
function openBackstage(): Backstage {
  const backstage = new Backstage();
  process.once('exit', () => backstage.strike());
  return backstage;
}

function endNow(signal: NodeJS.Signals): void {
  process.exit(EXIT_SIGNAL_BASE + constants.signals[signal]);
}

/** Tells a record; true when it is complete. */
function tell(output: Output, name: string, record: RecoveryRecord): boolean {
  output.result(record.json, record.lines);
  if (record.isComplete) return true;
  const { faults } = record;
  output.failure('DRILL_FAILED', `${name}: ${faults.join('; ')}`, { drill: name, faults });
  return false;
}

async function playAll(input: CommandInput, test: TestMode): Promise<number> {
  const names = namesOf(input.words[0]);
  const given = CANARY_ONLY.find((name) => input.text(name) !== undefined);
  if (given !== undefined || input.flag('once')) {
    const reason = 'goes with --canary: a drill starts a cluster of its own';
    throw new OptionError(`--${given ?? 'once'}`, reason);
  }
  const [{ DRILLS }, { runDrill }] = await Promise.all([
    import('../drills/table.js'),
    import('../drills/run-drill.js'),
  ]);
  const backstage = openBackstage();
  for (const signal of STOP_SIGNALS) process.once(signal, () => endNow(signal));
  let status: number = ExitCode.Ok;
  for (const name of names) {
    try {
      const options = { test, isKept: input.flag('keep'), backstage };
      const isComplete = tell(input.output, name, await runDrill(DRILLS[name], options));
      if (!isComplete) status = ExitCode.Refused;
    } catch (error) {
      // One drill that cannot be played does not keep the others from it, nor is it passed over.
      const failed = reportFailure(error, input.output);
      status = status === ExitCode.Ok ? failed : ExitCode.Refused;
    }
  }
  return status;
}

async function playCanary(input: CommandInput, test: TestMode): Promise<number> {
  if (input.words[0] !== undefined) throw new OptionError('NAME', 'not beside --canary');
  if (input.flag('keep')) throw new OptionError('--keep', 'not beside --canary');
  const options = readClusterOptions(input);
  const everyMs = parseDuration('--every', input.text('every') ?? EVERY_DEFAULT);
  const { runCanary, repeatCanary } = await import('../drills/canary.js');
  const backstage = openBackstage();
  const play = async (): Promise<number> => {
    try {
      const isComplete = tell(input.output, 'canary', await runCanary(options, test, backstage));
      return isComplete ? ExitCode.Ok : ExitCode.Refused;
    } catch (error) {
      return reportFailure(error, input.output);
    }
  };
  const stopped = new AbortController();
  for (const signal of STOP_SIGNALS) {
    // The run under way gives its locks back first; a second signal does not wait for that.
    process.on(signal, () => {
      if (stopped.signal.aborted || input.flag('once')) endNow(signal);
      stopped.abort();
    });
  }
  if (input.flag('once')) return play();
  const { runs, failed } = await repeatCanary(everyMs, stopped.signal, async () => {
    return (await play()) === ExitCode.Ok;
  });
  input.output.note(`${runs} runs, ${failed} failed`);
  return failed === 0 ? ExitCode.Ok : ExitCode.Refused;
}

async function run(input: CommandInput): Promise<number> {
  const test = readTestMode();
  return input.flag('canary') ? playCanary(input, test) : playAll(input, test);
}

const OPTIONS: readonly OptionSpec[] = [
  {
    name: 'keep',
    kind: 'flag',
    value: '',
    summary: 'leave the folder with the data and logs of the nodes, and say where it is',
  },
  {
    name: 'canary',
    kind: 'flag',
    value: '',
    summary: 'play the first drill on the cluster of --endpoints, on a prefix of its own',
  },
  {
    name: 'every',
    kind: 'text',
    value: 'TIME',
    summary: '--canary: from the begin of one run to that of the next',
    defaultText: EVERY_DEFAULT,
  },
  { name: 'once', kind: 'flag', value: '', summary: '--canary: one run, for a timer' },
  ...CLUSTER_OPTIONS,
];

export const drillCommand: CommandSpec = {
  path: ['drill'],
  summary: 'play a failure on real processes, and say whether everything held',
  details:
    'Each drill starts five nodes of its own in a temporary folder, breaks something by kill -9, ' +
    'SIGSTOP or a full disk, repairs it, checks everything against the audit stream, and ends ' +
    'in a recovery record (docs/DRILLS.md). Complete, and 0, only when every check was kept and ' +
    'success rate, p99 and lag are back within 10 % of before. A cluster that is there already ' +
    'is touched by --canary alone, which runs until a signal.',
  arguments: [{ name: 'NAME', summary: `${DRILL_NAMES.join(', ')}, or all`, isRequired: false }],
  options: OPTIONS,
  examples: [
    { words: 'drill paused-owner', says: 'the case that fencing tokens are for, as a story' },
    { words: 'drill all --json', says: 'every drill, a record a line' },
    {
      words: 'drill --canary --endpoints 10.0.0.1:7401,10.0.0.2:7401',
      says: 'once a minute on a cluster that others use',
    },
  ],
  run,
};

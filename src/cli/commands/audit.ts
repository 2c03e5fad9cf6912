/**
 * `holdfast audit`, `audit send`, `audit retry`: what happened and why, and its delivery.
 *
 * Owns: the words of these commands. Never: an event of its own, or one that is skipped in silence:
 * what no node has any more ends the command with COMPACTED, unless it was told to go on.
 * Used by: commands/table.ts.
 */
import type { AuditPages, WirePage } from '../../client/audit-pages.js';
import { AUDIT_ROWS_MAX } from '../../limits.js';
import { OptionError, parseWhole } from '../../server/options.js';
import { readCheckpoint, writeCheckpoint } from '../audit/checkpoint.js';
import type { Delivery } from '../audit/delivery.js';
import { auditLine } from '../audit/line.js';
import { readClusterOptions } from '../cluster-options.js';
import {
  CLUSTER_OPTIONS,
  type CommandInput,
  type CommandSpec,
  type OptionSpec,
} from '../command.js';
import { CliError, ExitCode } from '../exit-codes.js';
import { untilStopped } from './watch.js';

/** Events delivered together, and how long a page waits for the first. */
const BATCH_EVENTS = 100;
const WAIT_MS = 5_000;
const ATTEMPTS_DEFAULT = '5';
const ATTEMPTS_MAX = 1_000;

const PREFIX: OptionSpec = {
  name: 'prefix',
  kind: 'text',
  value: 'PREFIX',
  summary: 'only locks whose name starts so',
};
const FROM: OptionSpec = {
  name: 'from',
  kind: 'text',
  value: 'REVISION',
  summary: 'begin with this revision; oldest: with the oldest that is kept',
};
const LETTERS: OptionSpec = {
  name: 'dead-letters',
  kind: 'text',
  value: 'FILE',
  summary: 'where events go that the sink refused',
  defaultText: 'the checkpoint with .dead behind it',
};
const TO: OptionSpec = {
  name: 'to',
  kind: 'text',
  value: 'SINK',
  summary: 'a file for JSON lines, or an http or https address that takes POST',
};

/** The first revision; null: the next one. */
async function startOf(pages: AuditPages, from: string | undefined): Promise<number | null> {
  if (from === undefined) return null;
  if (from !== 'oldest') return parseWhole('--from', from, 1, Number.MAX_SAFE_INTEGER);
  const page = await pages.page({ prefix: '', from: null, limit: 1, waitMs: 0 });
  return page?.oldest ?? null;
}

async function show(input: CommandInput): Promise<number> {
  const { openPages } = await import('../audit/source.js');
  const signal = untilStopped();
  const pages = openPages(readClusterOptions(input), signal);
  const prefix = input.text('prefix') ?? '';
  const isFollowing = input.flag('follow');
  const limit = parseWhole('--count', input.text('count') ?? '0', 0, Number.MAX_SAFE_INTEGER);
  try {
    const waitMs = isFollowing ? WAIT_MS : 0;
    let from = await startOf(pages, input.text('from') ?? (isFollowing ? undefined : 'oldest'));
    for (let told = 0; !signal.aborted; ) {
      const page = await pages.page({ prefix, from, limit: AUDIT_ROWS_MAX, waitMs });
      if (page === undefined) break;
      for (const event of page.events) {
        input.output.result(event, [auditLine(event)]);
        told += 1;
        if (told === limit) return ExitCode.Ok;
      }
      from = page.next;
      if (!isFollowing && page.next > page.revision) break;
    }
  } finally {
    pages.close();
  }
  return ExitCode.Ok;
}

function needed(input: CommandInput, name: string): string {
  const text = input.text(name);
  if (text === undefined || text === '') throw new OptionError(`--${name}`, 'is required');
  return text;
}

/** Where a consumer goes on, and what it must agree with. */
interface Place {
  readonly prefix: string;
  next: number | null;
  clusterId: string;
}

async function placeOf(input: CommandInput, file: string, pages: AuditPages): Promise<Place> {
  const known = readCheckpoint(file);
  const prefix = input.text('prefix') ?? known?.prefix ?? '';
  if (known === null) {
    const next = await startOf(pages, input.text('from') ?? 'oldest');
    return { prefix, next, clusterId: '' };
  }
  if (known.prefix !== prefix) {
    const text = `the checkpoint is of prefix '${known.prefix}', not '${prefix}'`;
    throw new OptionError('--prefix', text);
  }
  return { prefix, next: known.next, clusterId: known.clusterId };
}

function demandSameCluster(place: Place, page: WirePage): void {
  if (place.clusterId === '') place.clusterId = page.clusterId;
  if (place.clusterId === page.clusterId) return;
  const text = `the checkpoint is of cluster ${place.clusterId}, this one is ${page.clusterId}`;
  throw new CliError('USAGE', text, { option: '--checkpoint' });
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** The next page; where history was cut, the oldest if that is allowed. Undefined: to stop. */
async function nextPage(
  input: CommandInput,
  pages: AuditPages,
  place: Place,
): Promise<WirePage | undefined> {
  const isOnce = input.flag('once');
  for (let isTold = false; ; ) {
    try {
      const { prefix, next: from } = place;
      const waitMs = isOnce ? 0 : WAIT_MS;
      return await pages.page({ prefix, from, limit: BATCH_EVENTS, waitMs });
    } catch (error) {
      const code = codeOf(error);
      if (code === 'COMPACTED' && input.flag('skip-lost')) {
        const oldest = await startOf(pages, 'oldest');
        input.output.note(`revisions ${place.next} to ${Number(oldest) - 1} are no longer kept`);
        place.next = oldest;
      } else if (code === 'NO_QUORUM' && !isOnce) {
        if (!isTold) input.output.note(`no node answers, trying on: ${(error as Error).message}`);
        isTold = true;
      } else {
        throw error;
      }
    }
  }
}

/** Writes how the delivery stands, when a file for it was named. */
type Tell = (delivery: Delivery, lag: number) => void;

async function openMetrics(input: CommandInput): Promise<Tell> {
  const file = input.text('metrics');
  if (file === undefined) return () => undefined;
  const { writeMetrics } = await import('../audit/metrics-file.js');
  return ({ delivered, dead, isSinkAway }, lag) => {
    writeMetrics(file, { delivered, dead, lag, isSinkAway });
  };
}

async function openDelivery(
  input: CommandInput,
  file: string,
  signal: AbortSignal,
  onChange: () => void,
): Promise<Delivery> {
  const [{ pause }, { Delivery: Opened }, { sinkOf }] = await Promise.all([
    import('../audit/source.js'),
    import('../audit/delivery.js'),
    import('../audit/sinks.js'),
  ]);
  const attempts = input.text('attempts') ?? ATTEMPTS_DEFAULT;
  return new Opened({
    sink: sinkOf(needed(input, 'to')),
    deadLetters: input.text('dead-letters') ?? `${file}.dead`,
    attemptsMax: parseWhole('--attempts', attempts, 1, ATTEMPTS_MAX),
    signal,
    pause: (ms) => pause(ms, signal),
    note: (text) => input.output.note(text),
    onChange,
  });
}

async function send(input: CommandInput): Promise<number> {
  const { openPages } = await import('../audit/source.js');
  const tell = await openMetrics(input);
  const signal = untilStopped();
  const file = needed(input, 'checkpoint');
  let lag = 0;
  const delivery: Delivery = await openDelivery(input, file, signal, () => tell(delivery, lag));
  const pages = openPages(readClusterOptions(input), signal);
  try {
    const place = await placeOf(input, file, pages);
    while (!signal.aborted) {
      const page = await nextPage(input, pages, place);
      if (page === undefined) break;
      demandSameCluster(place, page);
      lag = page.revision - (place.next ?? page.next) + 1;
      if (!(await delivery.deliver(page.events))) break;
      const { clusterId, prefix } = place;
      if (page.next !== place.next) writeCheckpoint(file, { clusterId, next: page.next, prefix });
      place.next = page.next;
      lag = page.revision - page.next + 1;
      tell(delivery, lag);
      if (input.flag('once') && page.next > page.revision) break;
    }
    const { delivered, dead } = delivery;
    const result = { delivered, dead_letters: dead, next_revision: place.next };
    input.output.result(result, [`delivered ${delivered}, dead letters ${dead}`]);
  } finally {
    pages.close();
  }
  return ExitCode.Ok;
}

async function retry(input: CommandInput): Promise<number> {
  const [{ retryLetters }, { sinkOf }] = await Promise.all([
    import('../audit/dead-letters.js'),
    import('../audit/sinks.js'),
  ]);
  const file = needed(input, 'dead-letters');
  const to = needed(input, 'to');
  const result = await retryLetters(file, sinkOf(to, true), untilStopped());
  input.output.result(result, [`delivered ${result.delivered}, left ${result.left}`]);
  return result.left === 0 ? ExitCode.Ok : ExitCode.Refused;
}

const showCommand: CommandSpec = {
  path: ['audit'],
  summary: 'show committed events with what caused them, also old ones',
  details:
    'Who granted, released, cancelled: the command, its request id and its principal; `by time` ' +
    'is an expiry. Events are kept as long as --history-mib of the nodes allows; what is older ' +
    'is refused with COMPACTED. With --json one event a line, each with an id for ever.',
  arguments: [],
  options: [
    PREFIX,
    FROM,
    { name: 'follow', kind: 'flag', value: '', summary: 'go on with what happens, until a signal' },
    { name: 'count', kind: 'text', value: 'N', summary: 'end after so many events' },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { words: 'audit --prefix jobs/', says: 'all that is known of the locks below jobs/' },
    { words: 'audit --follow --json', says: 'for a program: what happens from now on' },
  ],
  run: show,
};

const sendCommand: CommandSpec = {
  path: ['audit', 'send'],
  summary: 'deliver committed events to a file or an HTTP address, each at least once, in order',
  details:
    'The checkpoint is written after the sink has the events, so a crash repeats some and loses ' +
    'none; a file gets none twice. A sink that cannot be reached is waited for, and so is a ' +
    'cluster; an event that the sink refuses --attempts times is put aside, and `audit retry` ' +
    'offers it again.',
  arguments: [],
  options: [
    TO,
    { name: 'checkpoint', kind: 'text', value: 'FILE', summary: 'remembers how far it has come' },
    PREFIX,
    { ...FROM, summary: `without a checkpoint: ${FROM.summary}`, defaultText: 'oldest' },
    LETTERS,
    {
      name: 'attempts',
      kind: 'text',
      value: 'N',
      summary: 'times that an event is offered before it is put aside',
      defaultText: ATTEMPTS_DEFAULT,
    },
    {
      name: 'metrics',
      kind: 'text',
      value: 'FILE',
      summary: 'keep counts, lag and the state of the sink there, for the textfile collector',
    },
    { name: 'once', kind: 'flag', value: '', summary: 'end when everything was delivered' },
    {
      name: 'skip-lost',
      kind: 'flag',
      value: '',
      summary: 'go on with the oldest where history was cut, and say so',
    },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    {
      words: 'audit send --to /var/log/holdfast.jsonl --checkpoint /var/lib/holdfast/audit',
      says: 'a line for each event, for as long as it runs',
    },
    {
      words: 'audit send --to https://siem.example/in --checkpoint siem --once',
      says: 'what is new since the last time',
    },
  ],
  run: send,
};

const retryCommand: CommandSpec = {
  path: ['audit', 'retry'],
  summary: 'offer events that were put aside to a sink again',
  arguments: [],
  options: [
    TO,
    { name: 'dead-letters', kind: 'text', value: 'FILE', summary: 'the file that they are in' },
  ],
  examples: [
    {
      words: 'audit retry --to https://siem.example/in --dead-letters siem.dead',
      says: 'those that are taken leave the file',
    },
  ],
  run: retry,
};

export const auditCommands: readonly CommandSpec[] = [showCommand, sendCommand, retryCommand];

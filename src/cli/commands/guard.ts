/**
 * `holdfast guard …`: marks of guarded resources: look at them, raise them, prepare their stores.
 *
 * Owns: which store a command line means, and the barrier token when none is given: the cluster's
 * own number for the lock. Never: a check of a token; the guards do that. Used by: table.ts.
 */
import { HoldfastError } from '../../client/errors.js';
import type { Mark } from '../../guards/fence.js';
import type { OpenGuard, Store } from '../../guards/open-guard.js';
import { OptionError, parseWhole } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import {
  CLUSTER_OPTIONS,
  type CommandInput,
  type CommandSpec,
  type OptionSpec,
} from '../command.js';
import { CliError, ExitCode } from '../exit-codes.js';

const STORE_OPTIONS: readonly OptionSpec[] = [
  { name: 'postgres', kind: 'text', value: 'URL', summary: 'a PostgreSQL database' },
  { name: 'redis', kind: 'text', value: 'URL', summary: 'a Redis server' },
  {
    name: 's3',
    kind: 'text',
    value: 'URL',
    summary: 'a guarded object, https://HOST/BUCKET/KEY; credentials as AWS_ACCESS_KEY_ID …',
  },
  {
    name: 'sqlite',
    kind: 'text',
    value: 'FILE',
    summary: 'a SQLite file, such as the marks of a write proxy',
  },
];

const NAME_ARGUMENT = { name: 'NAME', summary: 'the lock', isRequired: true };

/** Runs `work` with the guard of the one store that is named, and closes it. */
async function withGuard<T>(
  input: CommandInput,
  work: (opened: OpenGuard) => Promise<T>,
): Promise<T> {
  const { openGuard, STORES } = await import('../../guards/open-guard.js');
  const named = STORES.filter((store) => input.text(store) !== undefined);
  const [store] = named;
  if (store === undefined || named.length > 1) {
    const wanted = STORES.map((each) => `--${each}`).join(', ');
    throw new OptionError('--postgres', `name one store: ${wanted}`);
  }
  let opened: OpenGuard | null = null;
  try {
    opened = await openGuard(store, input.text(store) ?? '', process.env);
    return await work(opened);
  } catch (error) {
    throw asGuardFailure(store, error);
  } finally {
    await opened?.close();
  }
}

/** What a driver throws, as one code; errors of ours stay as they are. */
function asGuardFailure(store: Store, error: unknown): unknown {
  const isOurs = error instanceof HoldfastError || error instanceof CliError;
  if (isOurs || error instanceof OptionError) return error;
  const { message, code } = error as { message?: string; code?: string };
  const words = message === undefined || message === '' ? String(code ?? error) : message;
  return new CliError('GUARD_FAILED', `${store}: ${words}`, { store });
}

function markJson({ lock, token, refused }: Mark): Record<string, unknown> {
  return { lock, fencing_token: token, refused };
}

function markLines({ lock, token, refused }: Mark): string[] {
  const seen = token === 0 ? 'no token was seen yet' : `tokens below ${token} are refused`;
  return [refused === null ? `${lock}  ${seen}` : `${lock}  ${seen}; ${refused} refused so far`];
}

async function show(input: CommandInput): Promise<number> {
  const name = input.words[0] ?? '';
  return withGuard(input, async (opened) => {
    const mark = await opened.guard.mark(name);
    const weaknesses = await opened.weaknesses();
    input.output.result({ ...markJson(mark), weaknesses }, markLines(mark));
    if (!input.output.isJson) for (const each of weaknesses) input.output.note(each);
    return ExitCode.Ok;
  });
}

/** The holder's token, else the revision of the lock's last event: whoever comes next is above. */
async function barrierOf(input: CommandInput, name: string): Promise<number> {
  const options = readClusterOptions(input);
  const { withClient } = await import('../client-holder.js');
  const reading = { deadlineMs: options.timeoutMs };
  const lock = await withClient(options, 'leader', (client) => client.get(name, reading));
  const token = lock.holder?.token ?? lock.revision;
  if (token > 0) return token;
  throw new OptionError('--token', `give a token: the cluster knows no event of lock ${name}`);
}

async function raise(input: CommandInput): Promise<number> {
  const name = input.words[0] ?? '';
  const given = input.text('token');
  const token =
    given === undefined
      ? await barrierOf(input, name)
      : parseWhole('--token', given, 1, Number.MAX_SAFE_INTEGER);
  return withGuard(input, async (opened) => {
    const mark = await opened.guard.raise(name, token);
    input.output.result(markJson(mark), markLines(mark));
    return ExitCode.Ok;
  });
}

async function migrate(input: CommandInput): Promise<number> {
  if (input.flag('print')) {
    const { marksSql } = await import('../../guards/postgres/postgres-guard.js');
    const text = marksSql();
    input.output.result({ sql: text }, [text.trimEnd()]);
    return ExitCode.Ok;
  }
  return withGuard(input, async (opened) => {
    await opened.migrate();
    input.output.result({ migrated: true }, ['the store can check fencing tokens']);
    return ExitCode.Ok;
  });
}

export const guardCommands: readonly CommandSpec[] = [
  {
    path: ['guard', 'show'],
    summary: 'show the mark of a lock at a guarded resource, and what could make it forget it',
    arguments: [NAME_ARGUMENT],
    options: [...STORE_OPTIONS],
    examples: [
      {
        words: 'guard show jobs/nightly --redis redis://127.0.0.1:6379',
        says: 'the mark, and how often it refused',
      },
    ],
    run: show,
  },
  {
    path: ['guard', 'raise'],
    summary: 'raise the mark of a lock, so that every older token is refused from now on',
    details:
      'A barrier. For after a forced release, or after the resource was restored from a backup. ' +
      'Without --token the cluster is asked: the token of the holder, or the revision of the ' +
      'last event of a free lock; whoever is granted it next has a larger one. A mark is never ' +
      'lowered.',
    arguments: [NAME_ARGUMENT],
    options: [
      { name: 'token', kind: 'text', value: 'NUMBER', summary: 'the barrier token' },
      ...STORE_OPTIONS,
      ...CLUSTER_OPTIONS,
    ],
    examples: [
      {
        words: 'guard raise jobs/nightly --token 42 --postgres postgres://127.0.0.1/app',
        says: 'refuse tokens below 42',
      },
      {
        words: 'guard raise jobs/nightly --redis redis://127.0.0.1:6379',
        says: 'refuse everybody before the present holder',
      },
    ],
    run: raise,
  },
  {
    path: ['guard', 'migrate'],
    summary: 'create what a store needs to check fencing tokens',
    details: 'Repeating it changes nothing. Redis and S3 need nothing.',
    arguments: [],
    options: [
      ...STORE_OPTIONS,
      { name: 'print', kind: 'flag', value: '', summary: 'print the SQL for PostgreSQL instead' },
    ],
    examples: [
      { words: 'guard migrate --postgres postgres://127.0.0.1/app', says: 'create the marks' },
      { words: 'guard migrate --print', says: 'the same for a migration tool of your own' },
    ],
    run: migrate,
  },
];

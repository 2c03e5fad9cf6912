/**
 * `holdfast admin …`: what an operator does to locks and sessions, with who asks and why.
 *
 * Owns: which lease a command line means, who asks when nobody is named, and the next thing to do:
 * a forced release stops no write before its barrier is raised. Never: removes whoever holds unless
 * that is said (--any). Used by: commands/table.ts.
 */
import { hostname, userInfo } from 'node:os';
import type { AdminChange, AdminOptions, Client } from '../../client/index.js';
import { isHoldfastError } from '../../client/index.js';
import { OWNER_BYTES_MAX } from '../../limits.js';
import { OptionError, parseWhole } from '../../server/options.js';
import { readClusterOptions, readId } from '../cluster-options.js';
import {
  CLUSTER_OPTIONS,
  type CommandInput,
  type CommandSpec,
  type OptionSpec,
} from '../command.js';
import { ExitCode } from '../exit-codes.js';
import { reworded } from '../explain.js';

const SAID: readonly OptionSpec[] = [
  { name: 'reason', kind: 'text', value: 'TEXT', summary: 'why: it stands in the audit stream' },
  {
    name: 'actor',
    kind: 'text',
    value: 'NAME',
    summary: 'who asks, as the audit stream shows it',
    defaultText: 'user@host',
  },
  {
    name: 'request',
    kind: 'text',
    value: 'ID',
    summary: 'names the command: asked again under the same name it has no second effect',
  },
];

const PREFIX: OptionSpec = {
  name: 'prefix',
  kind: 'text',
  value: 'PREFIX',
  summary: 'every lock whose name starts so, instead of one; empty for all',
};

/** Who types, as far as the system knows; it need not know a name. */
function typist(): string {
  let user = `uid-${process.getuid?.() ?? 0}`;
  try {
    user = userInfo().username;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
  }
  const bytes = Buffer.from(`${user}@${hostname()}`).subarray(0, OWNER_BYTES_MAX);
  return new TextDecoder('utf-8').decode(bytes, { stream: true });
}

function saidOf(input: CommandInput, deadlineMs: number): AdminOptions {
  const reason = input.text('reason') ?? '';
  if (reason === '') throw new OptionError('--reason', 'say why: it stands in the audit stream');
  const requestId = input.text('request');
  return {
    actor: input.text('actor') ?? typist(),
    reason,
    deadlineMs,
    ...(requestId === undefined ? {} : { requestId }),
  };
}

async function atLeader<T>(
  input: CommandInput,
  work: (client: Client, said: AdminOptions) => Promise<T>,
): Promise<T> {
  const options = readClusterOptions(input);
  const said = saidOf(input, options.timeoutMs);
  const { withClient } = await import('../client-holder.js');
  return withClient(options, 'leader', (client) => work(client, said));
}

/** As a shell takes it. */
function quoted(word: string): string {
  return /^[\w./@:+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

interface Meant {
  readonly lease?: string;
  readonly token?: number;
  readonly any?: true;
}

/** Exactly one of --token, --lease and --any. */
function meantBy(input: CommandInput): Meant {
  const [token, lease] = [input.text('token'), input.text('lease')];
  const isAny = input.flag('any');
  if ([token !== undefined, lease !== undefined, isAny].filter(Boolean).length !== 1) {
    const words = 'say which lease is meant: --token N, --lease ID, or --any for whoever holds';
    throw new OptionError('--token', words);
  }
  if (isAny) return { any: true };
  if (lease !== undefined) return { lease: Buffer.from(readId('--lease', lease)).toString('hex') };
  return { token: parseWhole('--token', token ?? '', 1, Number.MAX_SAFE_INTEGER) };
}

async function forceRelease(input: CommandInput): Promise<number> {
  const name = input.words[0] ?? '';
  const meant = meantBy(input);
  const forced = await atLeader(input, (client, said) =>
    client.admin.forceRelease(name, meant, said),
  ).catch((error: unknown) => {
    if (!isHoldfastError(error, 'CONFLICT')) throw error;
    throw reworded(error, `${error.message}; look again: holdfast get ${quoted(name)}`);
  });
  const { barrierToken, token, sinceMs, deadlineMs, principal } = forced;
  const metadata = forced.metadata === null ? null : new TextDecoder().decode(forced.metadata);
  const next = `holdfast guard raise ${quoted(name)} --token ${barrierToken}`;
  const json = {
    name,
    barrier_token: barrierToken,
    fencing_token: token,
    since: sinceMs,
    expires_at: deadlineMs,
    principal,
    metadata,
    next,
  };
  input.output.result(json, [
    `${name}  token ${token} of ${metadata ?? `principal ${principal}`} is ended`,
    `barrier token  ${barrierToken}`,
    'Its holder may write until it hears of it. At every guard of the lock (--postgres URL, …):',
    `  ${next} --postgres URL`,
  ]);
  return ExitCode.Ok;
}

interface Ruled {
  readonly name?: string;
  readonly prefix?: string;
}

function ruledBy(input: CommandInput): Ruled {
  const [name] = input.words;
  const prefix = input.text('prefix');
  if ((name === undefined) === (prefix === undefined)) {
    throw new OptionError('NAME', 'give a lock, or --prefix, and not both');
  }
  return name === undefined ? { prefix: prefix ?? '' } : { name };
}

function changeJson({ name = null, prefix = null }: Record<string, unknown>, change: AdminChange) {
  return { name, prefix, revision: change.revision };
}

async function disable(input: CommandInput): Promise<number> {
  const ruled = ruledBy(input);
  const change = await atLeader(input, (client, said) => client.admin.disable(ruled, said));
  const which = ruled.name ?? `${ruled.prefix}*`;
  const back = ruled.name === undefined ? `--prefix ${quoted(which.slice(0, -1))}` : quoted(which);
  input.output.result(changeJson({ ...ruled }, change), [
    `${which}  disabled since revision ${change.revision}; who holds and who waits stay`,
    `back: holdfast admin enable ${back} --reason …`,
  ]);
  return ExitCode.Ok;
}

async function enable(input: CommandInput): Promise<number> {
  const ruled = ruledBy(input);
  const change = await atLeader(input, (client, said) => client.admin.enable(ruled, said));
  const which = ruled.name ?? `${ruled.prefix}*`;
  const { revision } = change;
  const what = revision === 0 ? 'was not disabled' : `enabled since revision ${revision}`;
  input.output.result(changeJson({ ...ruled }, change), [`${which}  ${what}`]);
  return ExitCode.Ok;
}

async function expireSession(input: CommandInput): Promise<number> {
  const id = Buffer.from(readId('SESSION', input.words[0] ?? '')).toString('hex');
  const { revision } = await atLeader(input, (client, said) =>
    client.admin.expireSession(id, said),
  ).catch((error: unknown) => {
    if (!isHoldfastError(error, 'SESSION_EXPIRED')) throw error;
    throw reworded(error, `session ${id} has ended already, or never was`);
  });
  input.output.result({ session: id, revision }, [
    `session ${id}  ended with its waits and leases, revision ${revision}`,
  ]);
  return ExitCode.Ok;
}

const NAME = { name: 'NAME', summary: 'the lock', isRequired: false };

export const adminCommands: readonly CommandSpec[] = [
  {
    path: ['admin', 'force-release'],
    summary: 'end the lease that holds a lock, whoever owns it',
    details:
      'The next in line is granted in the same entry. Prints the barrier token and the command ' +
      'that raises it at a guard: until then the old holder may write. Ends with 1 and CONFLICT ' +
      'when another lease holds than the one that is meant, or none, with 76 when the outcome is ' +
      'unknown: ask again under the same --request.',
    arguments: [{ ...NAME, isRequired: true }],
    options: [
      { name: 'token', kind: 'text', value: 'N', summary: 'the lease with this fencing token' },
      { name: 'lease', kind: 'text', value: 'ID', summary: 'the lease with this id' },
      { name: 'any', kind: 'flag', value: '', summary: 'whoever holds now' },
      ...SAID,
      ...CLUSTER_OPTIONS,
    ],
    examples: [
      {
        words: 'admin force-release jobs/nightly --token 41 --reason "worker-7 hangs"',
        says: 'the token is that of `holdfast get`: who has it by then is not touched',
      },
      {
        words: 'admin force-release jobs/nightly --any --reason "restore" --actor ops@bastion',
        says: 'whoever holds it',
      },
    ],
    run: forceRelease,
  },
  {
    path: ['admin', 'disable'],
    summary: 'refuse new acquires of a lock, or of every lock under a prefix',
    details:
      'They get DISABLED (status 75) until it is enabled again. Who holds and who waits stay; ' +
      '`admin force-release` is for those. At most 256 names and prefixes; then LIMIT, 75.',
    arguments: [NAME],
    options: [PREFIX, ...SAID, ...CLUSTER_OPTIONS],
    examples: [
      { words: 'admin disable jobs/nightly --reason "restore of the database"', says: 'one lock' },
      { words: 'admin disable --prefix jobs/ --reason "restore"', says: 'all below jobs/' },
    ],
    run: disable,
  },
  {
    path: ['admin', 'enable'],
    summary: 'take back a disable of exactly this name or prefix',
    details: 'What was not disabled is a success too, with revision 0.',
    arguments: [NAME],
    options: [PREFIX, ...SAID, ...CLUSTER_OPTIONS],
    examples: [
      { words: 'admin enable --prefix jobs/ --reason "restored"', says: 'all below jobs/' },
    ],
    run: enable,
  },
  {
    path: ['admin', 'expire-session'],
    summary: 'end a session, whoever owns it, with its waits and leases',
    details: 'Ends with 70 and SESSION_EXPIRED when it has ended already, or never was.',
    arguments: [{ name: 'SESSION', summary: 'the session’s id', isRequired: true }],
    options: [...SAID, ...CLUSTER_OPTIONS],
    examples: [
      {
        words: 'admin expire-session 5f0c9e3a6b1d47c28e90a1b2c3d4e5f6 --reason "its host is gone"',
        says: 'the id is in the audit stream, with what its owner did',
      },
    ],
    run: expireSession,
  },
];

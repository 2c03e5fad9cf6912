/**
 * `holdfast session open | renew | close`: sessions that outlive one process, for scripts.
 *
 * Owns: the three commands. The secret goes in by the environment or an option and comes out once,
 * at open. Never: keeps a session alive by itself; whoever opens one renews it within its TTL.
 * Used by: commands/table.ts.
 */
import { randomUUID } from 'node:crypto';
import { HoldfastError } from '../../client/errors.js';
import { bytesAt, numberAt } from '../../client/reply.js';
import { OptionError } from '../../server/options.js';
import { CommandKind } from '../../wire/request.js';
import type { Reply } from '../../wire/response.js';
import { readClusterOptions, readId } from '../cluster-options.js';
import {
  CLUSTER_OPTIONS,
  type CommandInput,
  type CommandSpec,
  type OptionSpec,
} from '../command.js';
import { formatDuration, parseDuration } from '../duration.js';
import { ExitCode } from '../exit-codes.js';
import { explainField, reworded } from '../explain.js';
import { withLeader } from '../leader-call.js';
import type { NodeCall } from '../node-call.js';

const SECRET_VARIABLE = 'HOLDFAST_SESSION_SECRET';

const SECRET_OPTION: OptionSpec = {
  name: 'secret',
  kind: 'text',
  value: 'SECRET',
  summary: `the session’s secret (or ${SECRET_VARIABLE}, which other users cannot see)`,
};

const TTL_OPTION: OptionSpec = {
  name: 'ttl',
  kind: 'text',
  value: 'TIME',
  summary: 'how long the session lives without a renewal',
  defaultText: 'the cluster’s, 30s',
};

const NEW_TTL_OPTION: OptionSpec = {
  name: 'ttl',
  kind: 'text',
  value: 'TIME',
  summary: 'its TTL from now on; a shorter one moves no deadline back',
  defaultText: 'the session’s own',
};

const SESSION_ARGUMENT = { name: 'SESSION', summary: 'the session’s id', isRequired: true };

function readTtl(input: CommandInput): number | null {
  const text = input.text('ttl');
  return text === undefined ? null : parseDuration('--ttl', text);
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** What the cluster refuses, in the words of the command line. */
function explain(error: unknown, input: CommandInput): unknown {
  if (error instanceof HoldfastError && error.code === 'SESSION_EXPIRED') {
    const which = input.words[0] ?? '';
    const why = 'is expired or closed, or its id or secret is wrong';
    return reworded(error, `session ${which} ${why}: open a new one`);
  }
  const text = input.text('ttl') ?? '';
  const range = ['sessionTtlMsLeast', 'sessionTtlMsGreatest'] as const;
  return explainField(error, { ttl_ms: { option: '--ttl', text, range } });
}

/** `work` at the leader; a refusal is explained. */
async function atLeader(
  input: CommandInput,
  work: (call: NodeCall) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await withLeader(readClusterOptions(input), work);
  } catch (error) {
    throw explain(error, input);
  }
}

async function open(input: CommandInput): Promise<number> {
  const ttlMs = readTtl(input);
  // One id for all attempts: a session whose answer was lost is found again, not opened twice.
  const request = randomUUID();
  const reply = await atLeader(input, (call) =>
    call.request([CommandKind.SessionOpen, request, null, null, null, ttlMs]),
  );
  const session = hexOf(bytesAt(reply.fields, 0));
  const secret = hexOf(bytesAt(reply.fields, 1));
  const grantedMs = numberAt(reply.fields, 3);
  input.output.result({ session, secret, ttl_ms: grantedMs }, [
    `session ${session}`,
    `secret  ${secret}`,
    `ttl     ${formatDuration(grantedMs)}`,
  ]);
  return ExitCode.Ok;
}

interface NamedSession {
  readonly session: Uint8Array;
  readonly secret: Uint8Array;
}

function readSession(input: CommandInput): NamedSession {
  const secret = input.text('secret') ?? process.env[SECRET_VARIABLE];
  if (secret === undefined || secret === '') {
    throw new OptionError('--secret', `is required (or ${SECRET_VARIABLE})`);
  }
  const session = readId('SESSION', input.words[0] ?? '');
  return { session, secret: readId('--secret', secret) };
}

function attach(call: NodeCall, named: NamedSession): Promise<unknown> {
  return call.request([CommandKind.SessionAttach, named.session, named.secret]);
}

async function renew(input: CommandInput): Promise<number> {
  const named = readSession(input);
  const ttlMs = readTtl(input);
  const reply = await atLeader(input, async (call) => {
    await attach(call, named);
    return call.request([CommandKind.SessionRenew, null, named.session, null, null, ttlMs]);
  });
  const leftMs = Math.max(0, numberAt(reply.fields, 0) - reply.clusterTimeMs);
  const session = hexOf(named.session);
  // Where a shorter TTL is asked for, the time that is left surprises.
  const why = ttlMs !== null && leftMs > ttlMs ? ': a renewal never shortens' : '';
  input.output.result({ session, expires_at: numberAt(reply.fields, 0), expires_in_ms: leftMs }, [
    `session ${session} lives ${formatDuration(leftMs)} more${why}`,
  ]);
  return ExitCode.Ok;
}

async function close(input: CommandInput): Promise<number> {
  const named = readSession(input);
  await atLeader(input, async (call) => {
    await attach(call, named);
    return call.request([CommandKind.SessionClose, null, named.session, null, null]);
  });
  const session = hexOf(named.session);
  input.output.result({ session, closed: true }, [`session ${session} closed`]);
  return ExitCode.Ok;
}

export const sessionCommands: readonly CommandSpec[] = [
  {
    path: ['session', 'open'],
    summary: 'open a session and print its id and secret',
    arguments: [],
    options: [TTL_OPTION, ...CLUSTER_OPTIONS],
    examples: [{ words: 'session open --ttl 1m --json', says: 'id and secret, for a script' }],
    run: open,
  },
  {
    path: ['session', 'renew'],
    summary: 'renew a session and all its leases',
    arguments: [SESSION_ARGUMENT],
    options: [SECRET_OPTION, NEW_TTL_OPTION, ...CLUSTER_OPTIONS],
    examples: [
      {
        words: 'session renew 5b3f0a6c2d1e4f708192a3b4c5d6e7f8',
        says: `with the secret in ${SECRET_VARIABLE}`,
      },
    ],
    run: renew,
  },
  {
    path: ['session', 'close'],
    summary: 'close a session: its leases end, its waits are cancelled',
    arguments: [SESSION_ARGUMENT],
    options: [SECRET_OPTION, ...CLUSTER_OPTIONS],
    examples: [
      {
        words: 'session close 5b3f0a6c2d1e4f708192a3b4c5d6e7f8',
        says: `with the secret in ${SECRET_VARIABLE}`,
      },
    ],
    run: close,
  },
];

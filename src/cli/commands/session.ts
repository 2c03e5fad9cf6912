/**
 * `holdfast session open | renew | close`: sessions that outlive one process, for scripts.
 *
 * Owns: the three commands. The secret goes in by the environment or an option and comes out once,
 * at open. Never: keeps a session alive by itself; whoever opens one renews it within its TTL.
 * Used by: commands/table.ts.
 */
import { randomUUID } from 'node:crypto';
import { bytesAt, numberAt } from '../../client/reply.js';
import { OptionError } from '../../server/options.js';
import { CommandKind } from '../../wire/request.js';
import { readClusterOptions, readId } from '../cluster-options.js';
import {
  CLUSTER_OPTIONS,
  type CommandInput,
  type CommandSpec,
  type OptionSpec,
} from '../command.js';
import { formatDuration, parseDuration } from '../duration.js';
import { ExitCode } from '../exit-codes.js';
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
  defaultText: 'the cluster’s',
};

const SESSION_ARGUMENT = { name: 'SESSION', summary: 'the session’s id', isRequired: true };

function readTtl(input: CommandInput): number | null {
  const text = input.text('ttl');
  return text === undefined ? null : parseDuration('--ttl', text);
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

async function open(input: CommandInput): Promise<number> {
  const { endpoints, timeoutMs } = readClusterOptions(input);
  const ttlMs = readTtl(input);
  // One id for all attempts: a session whose answer was lost is found again, not opened twice.
  const request = randomUUID();
  const reply = await withLeader(endpoints, timeoutMs, (call) =>
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
  const { endpoints, timeoutMs } = readClusterOptions(input);
  const named = readSession(input);
  const ttlMs = readTtl(input);
  const reply = await withLeader(endpoints, timeoutMs, async (call) => {
    await attach(call, named);
    return call.request([CommandKind.SessionRenew, null, named.session, null, null, ttlMs]);
  });
  const leftMs = Math.max(0, numberAt(reply.fields, 0) - reply.clusterTimeMs);
  const session = hexOf(named.session);
  input.output.result({ session, expires_at: numberAt(reply.fields, 0), expires_in_ms: leftMs }, [
    `session ${session} lives ${formatDuration(leftMs)} more`,
  ]);
  return ExitCode.Ok;
}

async function close(input: CommandInput): Promise<number> {
  const { endpoints, timeoutMs } = readClusterOptions(input);
  const named = readSession(input);
  await withLeader(endpoints, timeoutMs, async (call) => {
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
    options: [SECRET_OPTION, TTL_OPTION, ...CLUSTER_OPTIONS],
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

/**
 * `holdfast explain`: why a lock is mine or not mine, what would free it, what became of a request.
 *
 * Owns: how an explanation is laid out. Never: a cause of its own; those are wire/explain.ts, the
 * same over HTTP. Used by: commands/table.ts.
 */
import { isHoldfastError } from '../../client/errors.js';
import { OptionError, parseWhole } from '../../server/options.js';
import type { Json } from '../../wire/event-json.js';
import { type ExplainTarget, explainSteps } from '../../wire/explain-steps.js';
import type { Reply } from '../../wire/response.js';
import { readClusterOptions, readId } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { ExitCode } from '../exit-codes.js';
import { withLeader } from '../leader-call.js';
import type { NodeCall } from '../node-call.js';

/** A sequence where a session is named, else a free-form id. */
function requestOf(input: CommandInput): string | number | null {
  const request = input.text('request') ?? null;
  if (request === null || input.text('session') === undefined) return request;
  return parseWhole('--request', request, 1, Number.MAX_SAFE_INTEGER);
}

function idOf(input: CommandInput, name: string): Uint8Array | null {
  const text = input.text(name);
  return text === undefined ? null : readId(`--${name}`, text);
}

function linesOf(explanation: Json): string[] {
  const { name } = explanation;
  const lines = [`${name ?? 'a lock that nothing names any more'}: ${explanation['cause']}`];
  for (const sentence of explanation['says'] as readonly string[]) lines.push(`  ${sentence}`);
  if (name === null) return lines;
  lines.push(`  Frees it: ${explanation['frees']}.`);
  const fencing = explanation['fencing'] === 'required' ? 'fenced' : 'best effort, not fenced';
  lines.push(`  Guarded resources: ${fencing}.`);
  const queue = explanation['queue'] as readonly Json[];
  for (const [at, waiter] of queue.entries()) {
    const who = waiter['metadata'] ? `  ${waiter['metadata']}` : '';
    lines.push(`  ${at + 1}. place ${waiter['place']}${who}`);
  }
  const events = explanation['events'] as readonly Json[];
  const said = explanation['said'] as readonly Json[];
  for (const { revision, type, fencing_token: token, cause } of events) {
    const asked = said.find((each) => each['revision'] === revision)?.['asked_by'] ?? null;
    const by = asked === null ? '' : `by ${asked}`;
    const words = [type, token === 0 ? '' : `token ${token}`, cause ?? '', by].filter(Boolean);
    lines.push(`  ${revision}  ${words.join(', ')}`);
  }
  return lines;
}

/** Asks what is to be asked, one after the other. */
async function explain(call: NodeCall, target: ExplainTarget): Promise<Json> {
  const steps = explainSteps(target);
  let at = steps.next();
  while (at.done !== true) {
    const { operation, mayBeRefused } = at.value;
    let reply: Reply | null = null;
    try {
      reply = await call.request(operation);
    } catch (error) {
      if (!(mayBeRefused && isHoldfastError(error, 'COMPACTED'))) throw error;
    }
    at = steps.next(reply);
  }
  return at.value;
}

async function run(input: CommandInput): Promise<number> {
  const target = {
    name: input.words[0] ?? null,
    session: idOf(input, 'session'),
    request: requestOf(input),
    lease: idOf(input, 'lease'),
  };
  if (target.name === null && target.request === null && target.lease === null) {
    throw new OptionError('NAME', 'give a lock, --request or --lease');
  }
  const explanation = await withLeader(readClusterOptions(input), (call) => explain(call, target));
  input.output.result(explanation, linesOf(explanation));
  return ExitCode.Ok;
}

export const explainCommand: CommandSpec = {
  path: ['explain'],
  summary: 'say why a lock is held or free, and what became of a request or a lease',
  details:
    'A cause in one word for programs, then sentences: holder, since when, until when, what ' +
    'would free it, who stands in line, the newest events. With --lease or --request: why it is ' +
    'yours or not; the lock is then found by them when NAME is left out, as long as the nodes ' +
    'keep the event that has its name.',
  arguments: [{ name: 'NAME', summary: 'the lock', isRequired: false }],
  options: [
    { name: 'lease', kind: 'text', value: 'LEASE', summary: 'a lease id of yours' },
    {
      name: 'request',
      kind: 'text',
      value: 'ID',
      summary: 'a request id of yours; with --session a sequence in it',
    },
    { name: 'session', kind: 'text', value: 'SESSION', summary: 'the session of the sequence' },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { words: 'explain jobs/nightly', says: 'who has it, and until when' },
    { words: 'explain jobs/nightly --request nightly-7', says: 'why that request has it not' },
    { words: 'explain --request nightly-7', says: 'what became of a request, and of its lock' },
  ],
  run,
};

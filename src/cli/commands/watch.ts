/**
 * `holdfast watch`: what happens to a lock, or to all locks under a prefix, as it happens.
 *
 * Owns: how events are told. Never: an event of its own; the client resumes by itself, on any node.
 * Ends with 0 on a signal. Used by: commands/table.ts.
 */
import type { WatchItem } from '../../client/index.js';
import { OptionError, parseWhole } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { ExitCode } from '../exit-codes.js';

/** A signal that aborts when the program is told to end. */
export function untilStopped(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => controller.abort());
  }
  return controller.signal;
}

function jsonOf(item: WatchItem): unknown {
  if (item.type === 'progress') return { type: 'progress', revision: item.revision };
  if (item.type === 'snapshot') {
    const locks = item.locks.map(({ name, revision, holder, waiters }) => {
      return { name, revision, fencing_token: holder?.token ?? null, waiters };
    });
    return { type: 'snapshot', first: item.isFirst, locks };
  }
  const { token, clusterTimeMs, ...rest } = item;
  return { ...rest, fencing_token: token, cluster_time: clusterTimeMs };
}

function linesOf(item: WatchItem): string[] {
  if (item.type === 'progress') return [];
  if (item.type === 'snapshot') {
    return item.locks.map(({ name, holder, waiters, revision }) => {
      const held = holder === null ? 'free' : `held with token ${holder.token}`;
      return `${revision}  ${name}  is ${held}, ${waiters} waiting`;
    });
  }
  const { revision, name, type, token, cause, place } = item;
  if (type === 'granted') return [`${revision}  ${name}  granted with token ${token}`];
  if (type === 'ended') return [`${revision}  ${name}  token ${token} ended: ${cause}`];
  if (type === 'queued') return [`${revision}  ${name}  queued at ${place}`];
  if (type === 'restored') return [`${revision}  the cluster was restored: every lease is gone`];
  return [`${revision}  ${name}  left its place ${place}: ${cause}`];
}

async function run(input: CommandInput): Promise<number> {
  const [name] = input.words;
  const prefix = input.text('prefix');
  if ((name === undefined) === (prefix === undefined)) {
    throw new OptionError('NAME', 'give a lock, or --prefix, and not both');
  }
  const from = input.text('from');
  const snapshot = input.flag('snapshot');
  if (from !== undefined && snapshot) throw new OptionError('--snapshot', 'not beside --from');
  const signal = untilStopped();
  const options = {
    signal,
    snapshot,
    recovers: snapshot,
    ...(from === undefined
      ? {}
      : { fromRevision: parseWhole('--from', from, 1, Number.MAX_SAFE_INTEGER) }),
  };
  const limit = parseWhole('--count', input.text('count') ?? '0', 0, Number.MAX_SAFE_INTEGER);
  const { withClient } = await import('../client-holder.js');
  await withClient(readClusterOptions(input), 'node', async (client) => {
    const items =
      name === undefined ? client.watchPrefix(prefix ?? '', options) : client.watch(name, options);
    let told = 0;
    for await (const item of items) {
      if (item.type !== 'progress' || input.output.isJson) {
        input.output.result(jsonOf(item), linesOf(item));
      }
      if (item.type === 'progress' || item.type === 'snapshot') continue;
      told += 1;
      if (told === limit) return;
    }
  });
  return ExitCode.Ok;
}

export const watchCommand: CommandSpec = {
  path: ['watch'],
  summary: 'follow what happens to a lock, or to every lock under a prefix',
  details:
    'Each event once, in order, a line each, over lost nodes and changes of leader, until a ' +
    'signal. With --snapshot first the locks as they are, and again when a watch that was away ' +
    'for long finds that events are missing; without it that ends the command with COMPACTED.',
  arguments: [{ name: 'NAME', summary: 'the lock', isRequired: false }],
  options: [
    {
      name: 'prefix',
      kind: 'text',
      value: 'PREFIX',
      summary: 'every lock whose name starts so; empty for all',
    },
    { name: 'from', kind: 'text', value: 'REVISION', summary: 'begin with this revision' },
    { name: 'snapshot', kind: 'flag', value: '', summary: 'begin with how things are' },
    { name: 'count', kind: 'text', value: 'N', summary: 'end after so many events' },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { words: 'watch jobs/nightly', says: 'one lock, from now on' },
    {
      words: 'watch --prefix jobs/ --snapshot --json',
      says: 'for a program: how it is, then how it goes on',
    },
  ],
  run,
};

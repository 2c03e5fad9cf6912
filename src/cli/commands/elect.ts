/**
 * `holdfast elect NAME [VALUE]`: stand for election and lead until told to end; or observe.
 *
 * Owns: how leading is told. Never: goes on when leading can no longer be believed in: it ends with
 * the status of a lost lease. Used by: commands/table.ts.
 */
import type { Client } from '../../client/client.js';
import type { LeaderView } from '../../client/index.js';
import { OptionError } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { parseDuration } from '../duration.js';
import { ExitCode } from '../exit-codes.js';
import { untilStopped } from './watch.js';

const WAIT_DEFAULT = '1h';
const TTL_DEFAULT = '10s';

function tell(input: CommandInput, name: string, view: LeaderView): void {
  if (view.type === 'no-leader') {
    input.output.result({ election: name, leader: null }, [`${name}  nobody leads`]);
    return;
  }
  const leader = { value: view.value, fencing_token: view.token };
  const words = `${name}  ${view.value ?? 'somebody'} leads with token ${view.token}`;
  input.output.result({ election: name, leader }, [words]);
}

async function watchLeaders(input: CommandInput, client: Client, name: string): Promise<number> {
  for await (const view of client.observe(name, { signal: untilStopped() }))
    tell(input, name, view);
  return ExitCode.Ok;
}

async function lead(
  input: CommandInput,
  client: Client,
  name: string,
  value: string,
): Promise<number> {
  const signal = untilStopped();
  const waitMs = parseDuration('--wait', input.text('wait') ?? WAIT_DEFAULT);
  const ttlMs = parseDuration('--ttl', input.text('ttl') ?? TTL_DEFAULT);
  await using leadership = await client.elect(name, value, { waitMs, ttlMs, signal });
  tell(input, name, { type: 'leader', token: leadership.token, value });
  await new Promise<void>((resolve) => {
    for (const each of [signal, leadership.signal]) {
      if (each.aborted) resolve();
      else each.addEventListener('abort', () => resolve(), { once: true });
    }
  });
  if (!leadership.signal.aborted) return ExitCode.Ok;
  throw leadership.signal.reason;
}

async function run(input: CommandInput): Promise<number> {
  const [name = '', value] = input.words;
  const observes = input.flag('observe');
  if (observes === (value !== undefined)) {
    throw new OptionError('VALUE', 'give a value to stand with, or --observe, and not both');
  }
  const { withClient } = await import('../client-holder.js');
  return withClient(readClusterOptions(input), 'leader', (client) => {
    if (value === undefined) return watchLeaders(input, client, name);
    return lead(input, client, name, value);
  });
}

export const electCommand: CommandSpec = {
  path: ['elect'],
  summary: 'stand for election and lead until a signal, or observe who leads',
  details:
    'An election is the lock of its name; who holds it leads. Prints a line when it leads, and ' +
    'gives the lock back on a signal. With --observe a line at every change, the times without a ' +
    'leader included.',
  arguments: [
    { name: 'NAME', summary: 'the election', isRequired: true },
    { name: 'VALUE', summary: 'what observers see, such as an address', isRequired: false },
  ],
  options: [
    { name: 'observe', kind: 'flag', value: '', summary: 'do not stand: tell who leads' },
    {
      name: 'wait',
      kind: 'text',
      value: 'TIME',
      summary: 'how long to stand in line',
      defaultText: WAIT_DEFAULT,
    },
    {
      name: 'ttl',
      kind: 'text',
      value: 'TIME',
      summary: 'how long a leader that is gone still counts',
      defaultText: TTL_DEFAULT,
    },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { words: 'elect primary 10.0.0.7:5432', says: 'lead until Ctrl-C' },
    { words: 'elect primary --observe', says: 'who leads, now and at every change' },
  ],
  run,
};

import { readFileSync } from 'node:fs';
import t from 'tap';
import ts from 'typescript';
import { connectWith } from '../../../src/client/connect.js';
import { isHoldfastError } from '../../../src/client/errors.js';
import { ACQUIRE_OPTIONS } from '../../../src/client/options.js';
import { projectFile } from '../../gate/paths.js';
import { tableUnder } from '../docs/markdown.js';
import { FakeClock } from './fake-clock.js';
import { FakeCluster } from './fake-cluster.js';
import { advanced } from './ground.js';

const PAGE = readFileSync(projectFile('docs/CLIENT.md'), 'utf8');
const EXAMPLES = [...PAGE.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1] ?? '');

/** Runs an example as it stands in the page, against a fake cluster; returns what it printed. */
async function run(source: string): Promise<{ printed: string[]; live: number; timers: number }> {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  const printed: string[] = [];
  const world = {
    connect: (options: { endpoints: readonly string[] }) => {
      t.ok(options.endpoints.length > 0);
      return connectWith(
        { ...options, endpoints: cluster.endpoints },
        { clock, dial: cluster.network.dial },
      );
    },
    isHoldfastError,
    console: { log: (...words: unknown[]) => printed.push(words.join(' ')) },
  };
  const body = source.replace(/^import .*;$/gm, '');
  const { outputText } = ts.transpileModule(`async function example() {${body}}`, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  });
  const names = Object.keys(world);
  const program = new Function(...names, `${outputText}; return example();`);
  const running: unknown = program(...Object.values(world));
  if (!(running instanceof Promise)) throw new Error('the example is not asynchronous');
  await advanced(clock, running);
  return { printed, live: cluster.live.length, timers: clock.timers };
}

t.test('every example of docs/CLIENT.md runs and leaves nothing behind', async (t) => {
  t.equal(EXAMPLES.length, 3);
  const wanted = [/written under token \d+/, /\d+ held \d+/, /free 0\nunknown/];
  for (const [index, source] of EXAMPLES.entries()) {
    const { printed, live, timers } = await run(source);
    t.match(printed.join('\n'), wanted[index]);
    t.equal(live, 0);
    t.equal(timers, 0);
  }
});

t.test('the table of options names each option of the client, and no other', async (t) => {
  const written = tableUnder(PAGE, 'Options').flatMap(([cell = '']) => cell.split(/`? `?/));
  const others = [
    'endpoints',
    'clientName',
    'needs',
    'tracerProvider',
    'stale',
    'atLeastRevision',
    'after',
  ];
  const known: readonly string[] = [...ACQUIRE_OPTIONS, ...others, 'pageSize'];
  t.same([...new Set(written)].sort(), [...known].sort());
});

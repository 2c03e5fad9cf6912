import t from 'tap';
import type { CommandInput, CommandSpec } from '../../../src/cli/command.js';
import { ExitCode } from '../../../src/cli/exit-codes.js';
import { Program } from '../../../src/cli/program.js';
import { OptionError } from '../../../src/server/options.js';

interface Shown {
  readonly status: number;
  readonly out: string;
  readonly err: string;
  readonly inputs: CommandInput[];
}

type Work = (input: CommandInput) => Promise<number>;

function spec(path: readonly string[], run: Work): CommandSpec {
  return {
    path,
    summary: 'do a thing',
    arguments: [
      { name: 'NAME', summary: 'a name', isRequired: true },
      { name: 'COMMAND', summary: 'a command', isRequired: false, isVariadic: true },
    ],
    options: [
      { name: 'ttl-ms', kind: 'text', value: 'TIME', summary: 'a time', defaultText: '1s' },
      { name: 'setting', kind: 'list', value: 'N=V', summary: 'a setting' },
      { name: 'force', kind: 'flag', value: '', summary: 'a flag' },
    ],
    examples: [{ words: 'thing a', says: 'do it to a' }],
    run,
  };
}

async function show(words: readonly string[], work?: Work): Promise<Shown> {
  let out = '';
  let err = '';
  const inputs: CommandInput[] = [];
  const run: Work = async (input) => {
    inputs.push(input);
    return work === undefined ? 0 : work(input);
  };
  const program = new Program([spec(['thing'], run), spec(['session', 'open'], run)], {
    standardOutput: { write: (text) => (out += text) },
    standardError: { write: (text) => (err += text) },
    version: '1.2.3',
  });
  const status = await program.run(words);
  return { status, out, err, inputs };
}

t.test('words and options reach the command', async (t) => {
  const shown = await show(
    ['thing', 'a', '--ttl-ms', '5s', '--setting', 'x=1', '--setting', 'y=2', '--force'],
    async () => 7,
  );
  t.equal(shown.status, 7);
  const input = shown.inputs[0];
  t.same(input?.words, ['a']);
  t.equal(input?.text('ttl-ms'), '5s');
  t.same(input?.list('setting'), ['x=1', 'y=2']);
  t.equal(input?.flag('force'), true);
  t.equal(input?.output.isJson, false);
});

t.test('what is not given is absent', async (t) => {
  const { inputs } = await show(['thing', 'a']);
  t.equal(inputs[0]?.text('ttl-ms'), undefined);
  t.same(inputs[0]?.list('setting'), []);
  t.equal(inputs[0]?.flag('force'), false);
});

t.test('after -- every word belongs to the command to run, options too', async (t) => {
  const { inputs } = await show(['thing', 'a', '--', 'sh', '-c', 'exit 1', '--force', '--', 'x']);
  t.same(inputs[0]?.words, ['a', 'sh', '-c', 'exit 1', '--force', '--', 'x']);
  t.equal(inputs[0]?.flag('force'), false);
});

t.test('unknown words and options are refused with 64 and never ignored', async (t) => {
  const cases = [
    ['nothing'],
    ['thing'],
    ['thing', 'a', '--unknown'],
    ['thing', 'a', '--ttl-ms'],
    ['session'],
    ['session', 'shut'],
    [],
  ];
  for (const words of cases) {
    const shown = await show(words);
    t.equal(shown.status, ExitCode.Usage, words.join(' '));
    t.equal(shown.inputs.length, 0);
    t.not(shown.err, '');
    t.equal(shown.out, '');
  }
});

t.test('help and version go to standard output and succeed', async (t) => {
  const help = await show(['thing', '--help']);
  t.equal(help.status, 0);
  t.match(help.out, /Do a thing\./);
  t.match(help.out, /--ttl-ms <TIME>/);
  t.match(help.out, /default: 1s/);
  t.match(help.out, /# do it to a\n {2}holdfast thing a/);
  const version = await show(['--version']);
  t.equal(version.status, 0);
  t.equal(version.out, '1.2.3\n');
});

t.test('a bad value is 64, in words and as JSON', async (t) => {
  const work: Work = async () => {
    throw new OptionError('--ttl-ms', 'give a time');
  };
  const plain = await show(['thing', 'a'], work);
  t.equal(plain.status, ExitCode.Usage);
  t.equal(plain.err, 'holdfast: USAGE: --ttl-ms: give a time\n');
  const json = await show(['thing', 'a', '--json'], work);
  t.same(JSON.parse(json.err), {
    error: { code: 'USAGE', message: '--ttl-ms: give a time', option: '--ttl-ms' },
  });
});

t.test('a refusal of the cluster keeps its code, and has a status of its own', async (t) => {
  const cases: readonly [string, number][] = [
    ['LOCK_BUSY', 75],
    ['WAIT_TIMEOUT', 75],
    ['NO_QUORUM', 69],
    ['LEASE_EXPIRED', 70],
    ['UNKNOWN_OUTCOME', 76],
    ['FORBIDDEN', 77],
    ['CONFLICT', 1],
  ];
  for (const [code, status] of cases) {
    const shown = await show(['thing', 'a', '--json'], async () => {
      throw Object.assign(new Error('no'), { code, outcome: 'none', retryable: true });
    });
    t.equal(shown.status, status, code);
    t.same(JSON.parse(shown.err), {
      error: { code, message: 'no', outcome: 'none', retryable: true },
    });
  }
});

t.test('a fault shows its stack and is 71', async (t) => {
  const shown = await show(['thing', 'a'], async () => {
    throw new TypeError('broken');
  });
  t.equal(shown.status, ExitCode.Fault);
  t.match(shown.err, /FAULT: TypeError: broken\n\s+at /);
});

t.test('results are lines for people and one JSON line for programs', async (t) => {
  const work: Work = async (input) => {
    input.output.result({ name: 'a' }, ['one', 'two']);
    input.output.note('by the way');
    return 0;
  };
  const plain = await show(['session', 'open', 'a'], work);
  t.equal(plain.out, 'one\ntwo\n');
  t.equal(plain.err, 'holdfast: by the way\n');
  const json = await show(['session', 'open', 'a', '--json'], work);
  t.equal(json.out, '{"name":"a"}\n');
  t.equal(json.err, '');
});

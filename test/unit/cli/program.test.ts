import t from 'tap';
import type { CommandInput, CommandSpec } from '../../../src/cli/command.js';
import { ExitCode } from '../../../src/cli/exit-codes.js';
import { Program } from '../../../src/cli/program.js';
import { ErrorCode, HoldfastError } from '../../../src/client/errors.js';
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

t.test('what is wrong with a command line is one line, in words or as JSON', async (t) => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['thing'], /^missing required argument 'NAME'; usage: holdfast thing \[options\] NAME/],
    [['thing', 'a', '--frob'], /^unknown option '--frob'.*see holdfast thing --help$/],
    [['thing', 'a', '--forc'], /Did you mean --force/],
    [['thign'], /^unknown command 'thign' \(Did you mean thing\?\); see holdfast --help$/],
    [['-V'], /^unknown option '-V'.*see holdfast --help$/],
    [['session', 'shut'], /^unknown command 'shut'/],
    [['session'], /^name a command; see holdfast --help$/],
    [[], /^name a command; see holdfast --help$/],
  ];
  for (const [words, message] of cases) {
    const plain = await show(words);
    t.equal(plain.status, ExitCode.Usage, words.join(' '));
    const last = plain.err.trimEnd().split('\n').at(-1) ?? '';
    t.match(last, /^holdfast: USAGE: /);
    t.match(last.slice('holdfast: USAGE: '.length), message);
    for (const given of [
      [...words, '--json'],
      ['--json', ...words],
    ]) {
      const json = await show(given);
      t.equal(json.status, ExitCode.Usage);
      t.equal(json.err.split('\n').length, 2, 'one line');
      t.match(JSON.parse(json.err).error, { code: 'USAGE', message });
    }
  }
  t.match((await show([])).err, /^Usage: holdfast/, 'no word at all shows the help too');
});

t.test('--json of the command that is run does not count', async (t) => {
  const shown = await show(['thing', '--frob', 'a', '--', 'x', '--json']);
  t.match(shown.err, /^holdfast: USAGE: /);
});

t.test('--json may stand before the command', async (t) => {
  for (const words of [
    ['--json', 'thing', 'a'],
    ['thing', '--json', 'a'],
    ['thing', 'a', '--json'],
  ]) {
    t.equal((await show(words)).inputs[0]?.output.isJson, true, words.join(' '));
  }
});

t.test('help and version go to standard output and succeed', async (t) => {
  const help = await show(['thing', '--help']);
  t.equal(help.status, 0);
  t.match(help.out, /Do a thing\./);
  t.match(help.out, /--ttl-ms <TIME>/);
  t.match(help.out, /default: 1s/);
  t.match(help.out, /# do it to a\n {2}holdfast thing a/);
  t.match(help.out, /Usage: holdfast thing \[options\] NAME \[-- COMMAND…\]/);
  t.match(help.out, /--json/);
  t.equal((await show(['help', 'thing'])).out, help.out, 'help NAME is NAME --help');
  const group = await show(['session', '--help']);
  t.match(group.out, /Examples:\n/);
  t.match(group.out, /--json/);
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
  t.same(JSON.parse(json.err), { remark: 'by the way' });
});

t.test('an error of the cluster brings its field and its holder into the JSON', async (t) => {
  const metadata = new TextEncoder().encode('vm pid 7');
  const holder = { token: 9, sinceMs: 1, deadlineMs: 50, endsInMs: 20, principal: 1, metadata };
  const shown = await show(['thing', 'a', '--json'], async () => {
    throw new HoldfastError(ErrorCode.LockBusy, { details: { holder, field: 'x' } });
  });
  t.match(JSON.parse(shown.err).error, {
    code: 'LOCK_BUSY',
    field: 'x',
    holder: { fencing_token: 9, expires_at: 50, expires_in_ms: 20, metadata: 'vm pid 7' },
  });
});

t.test('what the operating system refuses is no fault of the program', async (t) => {
  const shown = await show(['thing', 'a'], async () => {
    throw Object.assign(new Error('EMFILE: too many open files, open'), {
      code: 'EMFILE',
      syscall: 'open',
    });
  });
  t.equal(shown.status, ExitCode.Refused);
  t.equal(shown.err, 'holdfast: SYSTEM: EMFILE: too many open files, open\n');
});

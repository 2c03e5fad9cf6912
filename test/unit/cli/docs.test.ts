import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { COMMANDS } from '../../../src/cli/commands/table.js';
import { CLI_CODES, EXIT_MEANINGS, ExitCode, exitCodeOf } from '../../../src/cli/exit-codes.js';
import { ERROR_ROWS } from '../../../src/wire/errors.js';
import { projectFile } from '../../gate/paths.js';
import { GENERATED_MARK, renderReference } from './cli-reference.js';

const FILE = projectFile('docs/CLI.md');

t.test('docs/CLI.md agrees with the command table and the exit statuses', async (t) => {
  const text = readFileSync(FILE, 'utf8');
  const cut = text.indexOf(GENERATED_MARK);
  t.ok(cut > 0, 'the mark is there');
  const wanted = text.slice(0, cut) + renderReference(COMMANDS);
  if (process.env['HOLDFAST_WRITE_DOCS'] === '1') writeFileSync(FILE, wanted);
  t.equal(readFileSync(FILE, 'utf8'), wanted, 'write it with HOLDFAST_WRITE_DOCS=1');
});

t.test('every command has an example, and no option twice', async (t) => {
  for (const { path, examples, options } of COMMANDS) {
    t.ok(examples.length > 0, path.join(' '));
    for (const { words } of examples) t.ok(words.startsWith(path.join(' ')), words);
    const names = options.map((option) => option.name);
    t.equal(new Set(names).size, names.length, path.join(' '));
  }
});

t.test('exit statuses differ and keep clear of the shell’s own', async (t) => {
  const statuses = Object.values(ExitCode);
  t.equal(new Set(statuses).size, statuses.length);
  t.same(Object.keys(EXIT_MEANINGS).map(Number).sort(), [...statuses].map(Number).sort());
  for (const status of statuses) t.ok(status <= 1 || (status >= 64 && status < 128), `${status}`);
});

/** Every file below src/cli and src/server, as text. */
function sources(): string[] {
  const files = ['src/cli', 'src/server'].flatMap((folder) =>
    readdirSync(projectFile(folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => path.join(folder, name)),
  );
  return files.map((file) => readFileSync(projectFile(file), 'utf8'));
}

t.test('every code that the program gives by itself is in the table, and in use', async (t) => {
  const pattern =
    /(?:new (?:CliError|RestoreRefused)\(|\.failure\(|run\.fail\(|exitCodeOf\()\s*'([A-Z_]+)'/g;
  const used = new Set<string>(['USAGE']);
  for (const text of sources()) {
    for (const [, code = ''] of text.matchAll(pattern)) used.add(code);
  }
  const ofErrors = new Set(ERROR_ROWS.map((row) => row.code));
  for (const code of used) t.ok(Object.hasOwn(CLI_CODES, code) || ofErrors.has(code), code);
  for (const [code, { status }] of Object.entries(CLI_CODES)) {
    t.ok(used.has(code), `${code} is used`);
    t.notOk(ofErrors.has(code), `${code} is no code of the cluster`);
    t.equal(exitCodeOf(code), status);
  }
});

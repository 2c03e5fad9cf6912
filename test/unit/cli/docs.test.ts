import { readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { COMMANDS } from '../../../src/cli/commands/table.js';
import { EXIT_MEANINGS, ExitCode } from '../../../src/cli/exit-codes.js';
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

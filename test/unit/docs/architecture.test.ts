import { existsSync } from 'node:fs';
import t from 'tap';
import { reach } from '../../gate/import-rules.js';
import { projectFile } from '../../gate/paths.js';
import { readPage, tableUnder } from './markdown.js';

const PAGE = readPage('docs/ARCHITECTURE.md');

function isBuilt(part: string): boolean {
  return part === 'limits' || existsSync(projectFile(`src/${part}`));
}

t.test('the table of imports is the one that the gate enforces', async (t) => {
  const drawn = new Map<string, string[]>();
  for (const [part = '', below = ''] of tableUnder(PAGE, 'The house')) {
    drawn.set(part, below === '—' ? [] : below.split(/\s+/).sort());
  }
  const enforced = new Map<string, string[]>();
  for (const [part, below] of Object.entries(reach)) {
    if (isBuilt(part)) enforced.set(part, below.filter(isBuilt).sort());
  }
  t.same(drawn, enforced);
});

t.test('both tables of parts have the same parts', async (t) => {
  const text = PAGE.slice(PAGE.indexOf('## The parts'));
  const where = tableUnder(text, 'The parts');
  const rest = text.slice(text.indexOf('| part | the simpler way, refused |'));
  const why = tableUnder(`# why\n${rest}`, 'why');
  t.same(
    why.map((row) => row[0]),
    where.map((row) => row[0]),
  );
  t.equal(where.length, 14);
  for (const row of where) t.equal(row.length, 3, row[0] ?? '');
  for (const row of why) t.equal(row.length, 4, row[0] ?? '');
});

t.test('a part says where it is, or that it is not there yet', async (t) => {
  for (const [part, where = ''] of tableUnder(PAGE, 'The parts')) {
    t.match(where, /src\/|^not yet/, part ?? '');
  }
});

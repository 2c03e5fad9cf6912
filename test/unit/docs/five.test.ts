/**
 * What every page of advice says in the same five words, and the bound that the guards' page names.
 */
import t from 'tap';
import { REFUSED_LOCKS_MAX } from '../../../src/limits.js';
import { readPage } from './markdown.js';

const FIVE = ['invariant', 'mechanism', 'one failure', 'signal', 'cost of the alternative'];
/** The sections of advice, each with a table of its own. */
const SECTIONS: readonly (readonly [page: string, heading: string])[] = [
  ['GUARDS', '## The case of record'],
  ['GUARDS', '## Your own resource'],
  ['CHOOSING_TTL', '# Choosing a TTL'],
  ['SEVERAL_LOCKS', '# Several locks at once'],
  ['IDEMPOTENCY', '# Idempotency beside fencing'],
  ['WHEN_NOT', '# When not to use a distributed lock'],
  ['WHEN_NOT', '## Elections and locks'],
  ['MOVING', '## The move'],
  ['MOVING', '## What is different from Redlock'],
  ['MOVING', '## What is different from etcd'],
];
/** A cell that says less says nothing. */
const CELL_LEAST = 20;

/** The rows of the five under a heading, up to the next heading. */
function fiveUnder(page: string, heading: string): string[][] {
  const start = page.indexOf(`${heading}\n`);
  const after = page.slice(start + heading.length);
  const end = after.search(/^#/m);
  const lines = (end < 0 ? after : after.slice(0, end)).split('\n');
  const rows = lines.map((line) => line.split('|').map((cell) => cell.trim()));
  return start < 0 ? [] : rows.filter(([, name = '']) => FIVE.includes(name));
}

t.test('every section of advice says its five', async (t) => {
  for (const [name, heading] of SECTIONS) {
    const rows = fiveUnder(readPage(`docs/${name}.md`), heading);
    const label = `${name}: ${heading}`;
    t.same(
      rows.map((row) => row[1]),
      FIVE,
      label,
    );
    for (const [, which, text = ''] of rows) t.ok(text.length >= CELL_LEAST, `${label}: ${which}`);
  }
});

t.test('a section without them would be seen', async (t) => {
  t.same(fiveUnder('## A\n| signal | x |\n## B\n| invariant | y |\n', '## A'), [
    ['', 'signal', 'x', ''],
  ]);
  t.same(fiveUnder('## A\n', '## C'), []);
});

t.test('the number of locks whose refusals are kept is the code’s', async (t) => {
  const said = REFUSED_LOCKS_MAX.toLocaleString('en-US');
  t.match(readPage('docs/GUARDS.md'), `more than ${said} locks within one second`);
});

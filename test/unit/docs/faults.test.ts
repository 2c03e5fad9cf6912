import { readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { FAULT_ROWS, faultTable } from '../../../src/io/scrub/fault.js';
import { projectFile } from '../../gate/paths.js';

const PAGE = projectFile('docs/OPERATIONS.md');
const TABLE = /<!-- faults: .*? -->\n([\s\S]*?)\n?<!-- end of faults -->/;

t.test('the table of faults is that of the code', async (t) => {
  const page = readFileSync(PAGE, 'utf8');
  if (process.env['HOLDFAST_WRITE_DOCS'] === '1') {
    const [whole = '', old = ''] = TABLE.exec(page) ?? [];
    const head = whole.slice(0, whole.indexOf('\n') + 1);
    t.ok(old !== whole);
    writeFileSync(PAGE, page.replace(whole, `${head}${faultTable()}\n<!-- end of faults -->`));
  }
  t.equal(TABLE.exec(readFileSync(PAGE, 'utf8'))?.[1], faultTable());
});

t.test('each kind names a section of the page', async (t) => {
  const headings = readFileSync(PAGE, 'utf8').match(/^## .+$/gm) ?? [];
  for (const [kind, { section }] of Object.entries(FAULT_ROWS)) {
    const isThere = headings.some((heading) => heading.replaceAll('`', '') === `## ${section}`);
    t.ok(isThere, `${kind}: ${section}`);
  }
});

import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { projectFile } from '../../gate/paths.js';
import { anchors, codeSpans, linkTargets, pages, prose, readPage, tableUnder } from './markdown.js';

/** Folders that only exist once something was built or run. */
const MADE = /^(dist|dist-test|node_modules)\//;
/** A path of the project, as the pages write one: from the root, never with a placeholder. */
const PATH = /^(src|test|docs|loadtest|native-bench)\/[\w./-]*$/;
/** A suite that has no test yet: git keeps no empty folder, and the gate knows it by name. */
const EMPTY_SUITE = 'test/golden/';

t.test('every relative link of every page leads somewhere', async (t) => {
  let links = 0;
  for (const page of pages()) {
    for (const target of linkTargets(readPage(page))) {
      if (/^[a-z]+:/.test(target)) continue;
      links += 1;
      const [file = '', anchor] = target.split('#');
      const name = file === '' ? page : path.join(path.dirname(page), file);
      const isThere = existsSync(projectFile(name));
      t.ok(isThere, `${page} links to ${target}`);
      if (!isThere || anchor === undefined) continue;
      t.ok(anchors(readPage(name)).has(anchor), `${page} links to a heading of ${name}: ${anchor}`);
    }
  }
  t.ok(links > 10, `${links} links`);
});

t.test('every path that a page names in code exists', async (t) => {
  let paths = 0;
  for (const page of pages()) {
    for (const span of codeSpans(readPage(page))) {
      if (!PATH.test(span) || MADE.test(span) || span === EMPTY_SUITE) continue;
      paths += 1;
      const isThere = existsSync(projectFile(span));
      t.ok(isThere, `${page} names ${span}`);
      if (isThere && span.endsWith('/')) t.ok(statSync(projectFile(span)).isDirectory(), span);
    }
  }
  t.ok(paths > 50, `${paths} paths`);
});

t.test('the index of docs links to every page, or to its folder', async (t) => {
  const reached = linkTargets(readPage('docs/README.md')).map((target) => {
    return path.join('docs', target.split('#')[0] ?? '');
  });
  for (const page of pages()) {
    if (!page.startsWith('docs/') || page === 'docs/README.md') continue;
    const isReached = reached.includes(page) || reached.includes(`${path.dirname(page)}/`);
    t.ok(isReached, `docs/README.md links to ${page}`);
  }
});

t.test('a broken link, path, heading or table would be seen', async (t) => {
  const page = [
    '# A page: with *marks*',
    '[one](a.md#b) and `[no](link)` and `src/none.ts`',
    '```ts',
    '[no](link) `src/code.ts`',
    '```',
    '| number | name |',
    '|---|---|',
    '| 1 | `One` |',
    '## Next',
  ].join('\n');
  t.same(linkTargets(page), ['a.md#b']);
  t.same(codeSpans(page), ['[no](link)', 'src/none.ts', 'One']);
  t.same([...anchors(page)], ['a-page-with-marks', 'next']);
  t.notMatch(prose(page), /code\.ts/);
  t.same(tableUnder(page, 'A page: with *marks*'), [['1', 'One']]);
  t.throws(() => tableUnder(page, 'Next'), /no table/);
  t.throws(() => tableUnder(page, 'Nowhere'), /no heading/);
});

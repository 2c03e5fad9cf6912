/** docs/BENCHMARKS.md is what the kept reports give: nobody types a figure into it. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { benchmarksPage, PAGE_FILE, readHistory } from '../../../loadtest/history.js';
import { projectFile } from '../../gate/paths.js';

t.test('the page is the one that the history gives', async (t) => {
  const page = readFileSync(projectFile(PAGE_FILE), 'utf8');
  t.equal(page, benchmarksPage(readHistory()), 'npm run bench -- --report writes it');
});

t.test('what is kept was sound', async (t) => {
  const history = readHistory();
  t.ok(history.length > 0, `${history.length} reports`);
  for (const { profile, commit, errors, verified } of history) {
    t.equal(errors, 0, `${profile} at ${commit}`);
    const broken = verified.filter((check) => check.isKept === false);
    t.same(broken, [], `${profile} at ${commit}`);
  }
});

t.test('a row says what its report says', async (t) => {
  const [first] = readHistory();
  if (first === undefined) throw new Error('no history');
  const changed = { ...first, note: 'another run', ops_per_second: 1_234_567 };
  const page = benchmarksPage([first, changed]);
  t.match(page, /another run \| [^|]+ \| \*\*1,234,567\*\*/);
  t.equal(page.split(`| ${first.note} |`).length, 2, 'and the row before it stays');
});

/**
 * Protocol behaviour in several steps: each script tells what it told when it was reviewed.
 *
 * HOLDFAST_UPDATE_GOLDEN=1 writes what the scripts tell now; read the difference before you commit.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { filesBelow, projectFile } from '../gate/paths.js';
import { runScript } from './script.js';

const isUpdate = process.env['HOLDFAST_UPDATE_GOLDEN'] === '1';
const files = filesBelow('test/golden').filter((file) => file.endsWith('.txt'));

t.ok(files.length >= 8, 'the scripts are there');

for (const file of files) {
  t.test(path.basename(file, '.txt'), (t) => {
    const expected = readFileSync(projectFile(file), 'utf8');
    const told = runScript(expected);
    if (isUpdate && told !== expected) writeFileSync(projectFile(file), told);
    t.equal(told, isUpdate ? told : expected);
    t.equal(runScript(told), told, 'and tells it again');
    t.end();
  });
}

t.test('a script that tells something else is found out', (t) => {
  const told = runScript('cluster 1\n----\n\ncampaign 1\ndisk 1\n----\nnonsense\n');
  t.notMatch(told, 'nonsense');
  t.match(told, '1 leads term 1');
  t.throws(() => runScript('fly 1\n----\n'), /no such command/);
  t.throws(() => runScript('cluster 3\n'), /no ----/);
  t.end();
});

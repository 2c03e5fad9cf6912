/** What makes a backup whole: every byte of every file of it. */

import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { checkBackup } from '../../../src/io/backup/backup-folder.js';
import { makeBackup } from './backup-maker.js';
import { flipAt } from './scrub-ground.js';

const INDEX = 120;

t.test('a flipped byte of a backup is found, by the name of its file', async (t) => {
  const from = path.join(t.testdir({}), 'backup');
  makeBackup(from, INDEX);
  t.strictSame(checkBackup(from).faults, []);
  for (const name of fs.readdirSync(from)) {
    const file = path.join(from, name);
    const { size } = fs.statSync(file);
    const step = name === 'BACKUP.json' ? 1 : Math.ceil(size / 40);
    for (let at = 0; at < size; at += step) {
      flipAt(file, at);
      const { faults, machine, newerFormat } = checkBackup(from);
      flipAt(file, at);
      if (faults.length === 1 && faults[0]?.file === file && machine === null) continue;
      t.fail(`${name} at ${at}: ${JSON.stringify({ faults, newerFormat })}`);
    }
  }
  t.strictSame(checkBackup(from).faults, [], 'the last flip was undone');
});

t.test('a file that is missing, cut, strange or of another backup is found', async (t) => {
  const parent = t.testdir({});
  const from = path.join(parent, 'backup');
  makeBackup(from, INDEX);
  const chunk = path.join(from, 'chunk-000001');
  const bytes = fs.readFileSync(chunk);
  fs.rmSync(chunk);
  t.match(checkBackup(from).faults, [{ file: chunk, found: 'is missing' }]);
  fs.writeFileSync(chunk, bytes.subarray(1));
  t.match(checkBackup(from).faults, [{ file: chunk, found: /has \d+ bytes, wanted \d+/ }]);
  fs.writeFileSync(chunk, bytes);
  fs.writeFileSync(path.join(from, 'chunk-000999'), '');
  t.match(checkBackup(from).faults, [{ file: /chunk-000999$/, found: /no part/ }]);
  fs.rmSync(path.join(from, 'chunk-000999'));
  const other = path.join(parent, 'other');
  makeBackup(other, INDEX + 1);
  fs.cpSync(path.join(other, 'BACKUP.json'), path.join(from, 'BACKUP.json'));
  t.match(checkBackup(from).faults[0], { file: /BACKUP.json$/, found: /says index 121/ });
  fs.rmSync(path.join(from, 'MANIFEST'));
  t.match(checkBackup(from).faults, [{ file: /MANIFEST$/, found: 'is missing' }]);
});

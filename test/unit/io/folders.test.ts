import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { makeFolders } from '../../../src/io/log/folders.js';
import { openLog } from '../../../src/io/log/log.js';

t.test('folders are made level by level, and those that are there stay', async (t) => {
  const folder = path.join(t.testdir({ a: { file: 'x' } }), 'a', 'b', 'c');
  makeFolders(folder);
  t.ok(fs.statSync(folder).isDirectory());
  makeFolders(folder);
  t.equal(fs.readFileSync(path.join(folder, '../../file'), 'utf8'), 'x');
});

t.test('what cannot be made ends with the system’s code, below /proc too', async (t) => {
  const file = path.join(t.testdir({ file: '' }), 'file');
  t.throws(() => makeFolders(file), { code: 'ENOTDIR' });
  t.throws(() => makeFolders(path.join(file, 'x')), { code: 'ENOTDIR' });
  t.throws(() => makeFolders('/proc/nc/x'), { code: 'ENOENT' });
});

t.test('a log names the data folder that cannot be made', async (t) => {
  const opening = openLog({ folder: '/proc/nc', nodeId: 1, onFatal: (reason) => t.fail(reason) });
  await t.rejects(opening, {
    code: 'FOLDER_UNUSABLE',
    message: 'Choose another data folder: /proc/nc cannot be made (ENOENT).',
  });
});

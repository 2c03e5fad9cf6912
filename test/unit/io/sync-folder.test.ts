/** A sync that the system refuses is never taken for one that was done. */

import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { FailedWrite, writing } from '../../../src/io/failed-write.js';
import { syncFolder } from '../../../src/io/sync-folder.js';
import { hasShim, Shim } from '../../shim/fsync-shim.js';
import { Child } from './child.js';

const noShim = hasShim() ? false : 'there is no C compiler';
const SYNCER = 'test/unit/io/folder-syncer.ts';

/** Linux has folders of its own that refuse fsync with EINVAL. */
const REFUSES = '/proc/self';
const noProc = fs.existsSync(REFUSES) ? false : `there is no ${REFUSES}`;

t.test('a folder that the system will not sync is an error', { skip: noProc }, async (t) => {
  t.throws(() => syncFolder(REFUSES), { code: 'EINVAL', syscall: 'fsync' });
  t.throws(() => writing(() => syncFolder(REFUSES)), FailedWrite);
  const before = fs.readdirSync('/proc/self/fd').length;
  t.throws(() => syncFolder(REFUSES));
  t.equal(fs.readdirSync('/proc/self/fd').length, before, 'it leaves nothing open');
});

t.test('a folder that is not there is an error', async (t) => {
  t.throws(() => syncFolder(path.join(t.testdir({}), 'none')), { code: 'ENOENT' });
});

t.test('what is no error of the system keeps its name', async (t) => {
  const fault = new TypeError('a fault of the program');
  t.throws(() => {
    writing(() => {
      throw fault;
    });
  }, fault);
  t.equal(
    writing(() => 7),
    7,
  );
});

t.test('on a disk that fails, every way to sync a folder says so', { skip: noShim }, async (t) => {
  const folder = t.testdir({ data: { snapshots: { removed: { MANIFEST: 'a' } } } });
  const data = path.join(folder, 'data');
  const shim = new Shim(folder);
  for (const code of ['EIO', 'ENOSPC'] as const) {
    fs.rmSync(path.join(data, 'snapshots'), { recursive: true });
    fs.mkdirSync(path.join(data, 'snapshots', 'removed'), { recursive: true });
    fs.writeFileSync(path.join(data, 'snapshots', 'removed', 'MANIFEST'), 'a');
    shim.fail(code);
    const failing = new Child(t, SYNCER, [data], shim.environment);
    t.equal((await failing.ended).code, 0, failing.errors);
    t.match(failing.lines, [
      new RegExp(`^a folder: Error ${code}: .*, fsync$`),
      new RegExp(`^the start: Error ${code}: .*, fsync$`),
      new RegExp(`^a file: FailedWrite ${code}: .*, fsync$`),
      new RegExp(`^a rename: Error ${code}: .*, fsync$`),
      new RegExp(`^a removal: FailedWrite ${code}: .*, fsync$`),
    ]);
  }
  fs.rmSync(path.join(data, 'snapshots'), { recursive: true });
  shim.pass();
  const sound = new Child(t, SYNCER, [data], shim.environment);
  await sound.ended;
  t.equal(sound.lines.filter((line) => line.endsWith(': done')).length, 5, `${sound.lines}`);
});

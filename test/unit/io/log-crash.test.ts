/** The log across kills, bad disks, silent disks and a second process on its folder. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { openLog } from '../../../src/io/log/log.js';
import { LogError } from '../../../src/io/log/log-error.js';
import { SpaceGuard } from '../../../src/io/log/space-guard.js';
import { waitFor } from '../../cluster/wait-for.js';
import { LogDriver, makeEntries, makeEntry, plain } from '../../conformance/log-driver.js';
import { hasShim, Shim } from '../../shim/fsync-shim.js';
import { Child } from './child.js';

const noShim = hasShim() ? false : 'there is no C compiler';
const WRITER = 'test/unit/io/log-writer.ts';

async function open(folder: string, segmentBytesMax = 64 << 20) {
  const notes: string[] = [];
  const opened = await openLog({
    folder,
    nodeId: 1,
    segmentBytesMax,
    onFatal: (reason) => t.fail(reason),
    onNote: (text) => notes.push(text),
  });
  const { log, state, identity } = opened;
  const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
  return { log, state, identity, driver, notes };
}

function lastDurable(child: Child): number {
  const line = child.lines.filter((text) => text.startsWith('durable')).at(-1);
  return Number(line?.split(' ')[1] ?? 0);
}

async function killAndReopen(t: Test, words: string[], least: number) {
  const folder = t.testdir({});
  const child = new Child(t, WRITER, [folder, ...words]);
  await child.reach('durable', least);
  await child.kill();
  const durable = lastDurable(child);
  const { log, state, driver } = await open(folder, Number(words[2]));
  t.ok(state.lastIndex >= durable, `index ${durable} was reported, ${state.lastIndex} is there`);
  const bytes = Number(words[0]);
  for (let from = 1; from <= state.lastIndex; from += 100) {
    const to = Math.min(from + 99, state.lastIndex);
    const found = plain(await driver.read(from, to));
    t.strictSame(found, plain(makeEntries(from, to, 1, bytes)), `entries ${from} to ${to}`);
  }
  const votes = Math.floor(durable / 10) * 10;
  t.ok(state.hardState.term >= votes, `term ${votes} was reported`);
  await log.close();
}

t.test('kill -9 between appends loses nothing that was reported', async (t) => {
  await killAndReopen(t, ['20000', '1', String(64 << 20)], 150);
});

t.test('kill -9 with many orders in flight, rolling segments all the time', async (t) => {
  await killAndReopen(t, ['3000', '32', '20000'], 500);
});

t.test('a process that was killed is followed by one that goes on', async (t) => {
  const folder = t.testdir({});
  for (const from of [0, 1, 2]) {
    const child = new Child(t, WRITER, [folder, '500', '4', '50000']);
    const opened = Number((await child.line(/^open/)).split(' ')[1]);
    if (from > 0) t.ok(opened > 0, 'it found what the last one wrote');
    await child.reach('durable', opened + 20);
    await child.kill();
    t.match(child.errors, /^$/);
  }
});

t.test('a second process on the folder is refused and told who holds it', async (t) => {
  const folder = t.testdir({});
  const first = new Child(t, WRITER, [folder, '100', '1']);
  await first.reach('durable', 2);
  const second = new Child(t, WRITER, [folder, '100', '1']);
  const { code } = await second.ended;
  t.equal(code, 3);
  t.match(second.lines.join('\n'), /^refused FOLDER_LOCKED Stop process \d+ first/);
  await first.kill();
  const third = new Child(t, WRITER, [folder, '100', '1']);
  t.match(await third.line(/^open|^refused/), /^open \d+/, 'a kill gives the folder free');
});

t.test('a folder is locked against this process too, until close', async (t) => {
  const folder = t.testdir({});
  const { log } = await open(folder);
  await t.rejects(open(folder), { code: 'FOLDER_LOCKED' });
  await log.close();
  const again = await open(folder);
  await again.log.close();
});

t.test(
  'a LOCK file alone holds off another network namespace while its writer lives',
  async (t) => {
    const folder = t.testdir({});
    const own = { pid: process.pid, startedAt: startOf(process.pid), bootId: bootId() };
    const lock = path.join(folder, 'LOCK');
    fs.writeFileSync(lock, JSON.stringify(own));
    await t.rejects(open(folder), { code: 'FOLDER_LOCKED', message: `process ${process.pid}` });
    for (const stale of [{ startedAt: '1' }, { bootId: 'another' }, { pid: 2 ** 22 + 1 }]) {
      fs.writeFileSync(lock, JSON.stringify({ ...own, ...stale }));
      const { log } = await open(folder);
      await log.close();
    }
    fs.writeFileSync(lock, '{"pid":');
    const { log } = await open(folder);
    await log.close();
    t.notOk(fs.existsSync(lock), 'a closed log leaves no LOCK');
  },
);

function startOf(pid: number): string {
  const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19]!;
}

function bootId(): string {
  return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

t.test('a folder of another node is refused, and the identity is kept', async (t) => {
  const folder = t.testdir({});
  const first = await open(folder);
  t.equal(first.identity.founding, null);
  t.ok(first.log.freeMiB() > 64, `${first.log.freeMiB()} MiB are free`);
  t.equal(first.identity.diskId.length, 16);
  const founding = new Uint8Array([1, 2, 3]);
  await first.log.storeFounding(founding);
  await first.driver.append({ hardState: { term: 5, votedFor: 1 } });
  await first.log.close();
  const other = openLog({ folder, nodeId: 2, onFatal: () => undefined });
  await t.rejects(other, { code: 'FOLDER_FOREIGN', message: /belongs to node 1/ });
  const again = await open(folder);
  t.strictSame(again.identity, { ...first.identity, founding });
  t.strictSame(again.state.hardState, { term: 5, votedFor: 1 });
  await again.log.close();
  const elsewhere = await open(t.testdir({ other: {} }));
  t.notSame(elsewhere.identity.diskId, first.identity.diskId, 'a disk id is drawn for each folder');
  await elsewhere.log.close();
});

t.test('whole old segments are dropped, and what is left opens', async (t) => {
  const folder = t.testdir({});
  const { log, driver } = await open(folder, 5_000);
  for (let index = 1; index <= 50; index++) driver.give({ entries: [makeEntry(index, 1, 1_000)] });
  await driver.durable(50);
  await log.dropBefore(23);
  t.strictSame(await driver.read(1, 5), [], 'what was dropped reads as nothing');
  t.strictSame(plain(await driver.read(23, 24)), plain(makeEntries(23, 24, 1, 1_000)));
  await log.close();
  const again = await open(folder, 5_000);
  const { firstIndex, lastIndex } = again.state;
  t.ok(firstIndex > 1 && firstIndex <= 23, `starts at ${firstIndex}`);
  t.equal(lastIndex, 50);
  t.strictSame(again.state.termStarts, [{ index: firstIndex, term: 1 }]);
  await again.log.dropBefore(1_000);
  t.strictSame(plain(await again.driver.read(50, 50)), plain([makeEntry(50, 1, 1_000)]));
  await again.driver.append({ truncateFrom: again.state.lastIndex });
  await again.log.close();
  const last = await open(folder, 5_000);
  t.equal(last.state.lastIndex, 49, 'the newest segment always stays, and goes on from its name');
  await last.log.close();
});

t.test(
  'on a disk that fails or fills up the node ends and never retries',
  { skip: noShim },
  async (t) => {
    for (const code of ['EIO', 'ENOSPC'] as const) {
      const folder = t.testdir({ data: {} });
      const shim = new Shim(folder);
      const words = [path.join(folder, 'data'), '2000', '4'];
      const child = new Child(t, WRITER, words, shim.environment);
      await child.reach('durable', 20);
      shim.fail(code);
      const { signal } = await child.ended;
      t.equal(signal, 'SIGKILL');
      t.match(child.lines.at(-1), /^fatal/, 'nothing is reported durable after the failure');
      t.match(child.errors, /^holdfast: node 1 ends: /);
      const durable = lastDurable(child);
      const { log, state } = await open(path.join(folder, 'data'));
      t.ok(state.lastIndex >= durable, `${code}: what was reported is still there`);
      await log.close();
    }
  },
);

t.test(
  'a disk that stays silent ends the node, one that is slow does not',
  { skip: noShim },
  async (t) => {
    const folder = t.testdir({ data: {} });
    const shim = new Shim(folder);
    const words = [path.join(folder, 'data'), '2000', '4', String(64 << 20), '800'];
    const child = new Child(t, WRITER, words, shim.environment);
    await child.reach('durable', 20);
    shim.delay(100);
    const slow = lastDurable(child);
    await child.reach('durable', slow + 12);
    shim.hold();
    const { signal } = await child.ended;
    t.equal(signal, 'SIGKILL');
    t.match(child.lines.at(-1), /^fatal the log has not answered for 800 ms$/);
  },
);

t.test('a node that was stopped for longer than the silence allows goes on', async (t) => {
  const folder = t.testdir({});
  const child = new Child(t, WRITER, [folder, '2000', '4', String(64 << 20), '300']);
  await child.reach('durable', 20);
  child.signal('SIGSTOP');
  const stoppedAt = performance.now();
  await waitFor('more than the allowed silence', () => performance.now() - stoppedAt > 700);
  const before = lastDurable(child);
  child.signal('SIGCONT');
  await child.reach('durable', before + 60);
  t.pass('it still writes');
  await child.kill();
});

t.test('the log stops before its disk is full', (t) => {
  const told: number[] = [];
  let free = 100 << 20;
  const guard = new SpaceGuard(
    '/data',
    () => free,
    (mib) => told.push(mib),
  );
  guard.expect(1_000);
  t.strictSame(told, [100]);
  free = 90 << 20;
  for (let written = 0; written <= 1 << 20; written += 1 << 16) guard.expect(1 << 16);
  t.strictSame(told, [100, 90], 'it looks again after a MiB at the latest');
  free = 65 << 20;
  guard.expect(1 << 20);
  t.throws(() => guard.expect(2 << 20), /the log stops below 67108864 bytes, there are 68157440/);
  t.equal(guard.toldMib, 65);
  t.end();
});

t.test('errors of opening carry a code', (t) => {
  t.match(new LogError('LOG_CORRUPT', 'text'), { name: 'LogError', code: 'LOG_CORRUPT' });
  t.end();
});

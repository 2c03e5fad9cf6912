import t from 'tap';
import { LockQueue, WAITING_MAX } from '../../../src/guards/proxy/lock-queue.js';

t.test('one at a time for a lock, in order; locks do not wait for one another', async (t) => {
  const queue = new LockQueue();
  const seen: string[] = [];
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const first = queue.run('a', async () => {
    await gate;
    seen.push('a1');
  });
  const second = queue.run('a', async () => {
    seen.push('a2');
  });
  await queue.run('b', async () => {
    seen.push('b');
  });
  t.same(seen, ['b']);
  open();
  await Promise.all([first, second]);
  t.same(seen, ['b', 'a1', 'a2']);
});

t.test('one that fails does not stop the next', async (t) => {
  const queue = new LockQueue();
  const failing = queue.run('a', async () => {
    throw new Error('no');
  });
  const next = queue.run('a', async () => undefined);
  await t.rejects(failing as Promise<void>, /no/);
  await next;
});

t.test('a full queue refuses', async (t) => {
  const queue = new LockQueue();
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const all = Array.from({ length: WAITING_MAX + 1 }, () => queue.run('a', () => gate));
  t.ok(
    all.every((each) => each !== false),
    'the one under way and WAITING_MAX behind it',
  );
  t.equal(
    queue.run('a', () => gate),
    false,
  );
  open();
  await Promise.all(all);
  t.not(
    queue.run('a', () => gate),
    false,
    'there is room again',
  );
});

/**
 * The object guard over a store in memory whose answers the test decides: what real servers do
 * only now and then.
 */
import { createHash } from 'node:crypto';
import t from 'tap';
import { decodeHead, encodeHead } from '../../../src/guards/object-store/head.js';
import { ObjectGuard } from '../../../src/guards/object-store/object-guard.js';
import type {
  ObjectStore,
  PutOptions,
  StoredObject,
} from '../../../src/guards/object-store/object-store.js';

const KEY = 'reports/today';

/** Tags are digests of the content alone, as in S3. */
class MemoryStore implements ObjectStore {
  readonly objects = new Map<string, Uint8Array>();
  /** Called before a write of the head: 'lose' drops it, 'mute' does it and loses the answer. */
  onHead: () => 'answer' | 'mute' | 'lose' = () => 'answer';
  /** Called before each read of the head. */
  onLook: () => void = () => undefined;

  async get(key: string): Promise<StoredObject | null> {
    if (key === KEY) this.onLook();
    const body = this.objects.get(key);
    return body === undefined ? null : { body, etag: tagOf(body) };
  }

  async put(key: string, body: Uint8Array, { condition }: PutOptions): Promise<boolean> {
    const fate = key === KEY ? this.onHead() : 'answer';
    if (fate === 'lose') throw new Error('connection lost on the way there');
    const present = this.objects.get(key);
    const tag = present === undefined ? null : tagOf(present);
    const isDone = tag === condition;
    if (isDone) this.objects.set(key, body);
    if (fate === 'mute') throw new Error('connection lost on the way back');
    return isDone;
  }

  async delete(key: string): Promise<void> {
    this.objects.delete(key);
  }
}

function tagOf(body: Uint8Array): string {
  return createHash('md5').update(body).digest('hex');
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

async function textOf(guard: ObjectGuard): Promise<string> {
  const found = await guard.read();
  return found === null ? '' : new TextDecoder().decode(found.body);
}

t.test('two writes of the same bytes have different heads', async (t) => {
  const store = new MemoryStore();
  const guard = new ObjectGuard(store, KEY);
  await guard.write({ lock: 'l', token: 40 }, bytes('same'));
  const known = (await store.get(KEY))?.etag ?? '';
  await guard.write({ lock: 'l', token: 42 }, bytes('same'));
  // What a writer with token 41 sends that had looked before: its condition is on the old tag.
  const head = { lock: 'l', token: 41, nonce: 'late', data: 'elsewhere', contentType: '' };
  const isDone = await store.put(KEY, encodeHead(head), { condition: known });
  t.equal(isDone, false, 'the tag of the content is another one');
  t.equal(await textOf(guard), 'same');
});

t.test('an answer that was lost is found out by looking', async (t) => {
  const store = new MemoryStore();
  const guard = new ObjectGuard(store, KEY);
  store.onHead = () => 'mute';
  await guard.write({ lock: 'l', token: 1 }, bytes('one'));
  t.equal(await textOf(guard), 'one');
  t.equal(guard.tally.accepted, 1, 'counted once');
  const fates: ('lose' | 'answer')[] = ['lose', 'lose', 'answer'];
  store.onHead = () => fates.shift() ?? 'answer';
  await guard.write({ lock: 'l', token: 2 }, bytes('two'));
  t.equal(await textOf(guard), 'two');
  t.equal(store.objects.size, 2, 'head and data; what was replaced is gone');
});

t.test('a store that never answers is an unknown outcome', async (t) => {
  const store = new MemoryStore();
  const guard = new ObjectGuard(store, KEY);
  await guard.write({ lock: 'l', token: 1 }, bytes('one'));
  store.onHead = () => {
    store.onLook = () => {
      throw new Error('the store is down');
    };
    return 'lose';
  };
  const wanted = { code: 'UNKNOWN_OUTCOME', outcome: 'unknown' };
  await t.rejects(guard.write({ lock: 'l', token: 2 }, bytes('two')), wanted);
  t.equal(guard.tally.unknown, 1);
});

t.test(
  'a write that was overtaken after its answer was lost does not claim to be undone',
  async (t) => {
    const store = new MemoryStore();
    const guard = new ObjectGuard(store, KEY);
    const newer = new ObjectGuard(store, KEY);
    store.onHead = () => 'mute';
    let looks = 0;
    store.onLook = () => {
      looks += 1;
      if (looks !== 2) return;
      const head = { lock: 'l', token: 9, nonce: 'newer', data: null, contentType: '' };
      store.objects.set(KEY, encodeHead(head));
    };
    const wanted = { code: 'STALE_TOKEN', seen: 9, offered: 1, outcome: 'unknown' };
    await t.rejects(guard.write({ lock: 'l', token: 1 }, bytes('one')), wanted);
    t.equal((await newer.mark('l')).token, 9);
  },
);

t.test('a refused write leaves nothing behind', async (t) => {
  const store = new MemoryStore();
  const guard = new ObjectGuard(store, KEY);
  await guard.write({ lock: 'l', token: 5 }, bytes('five'));
  const before = [...store.objects.keys()];
  await t.rejects(guard.write({ lock: 'l', token: 4 }, bytes('four')), { code: 'STALE_TOKEN' });
  t.same([...store.objects.keys()], before);
});

t.test('a removed object keeps its mark', async (t) => {
  const store = new MemoryStore();
  const guard = new ObjectGuard(store, KEY);
  await guard.write({ lock: 'l', token: 5 }, bytes('five'));
  await guard.remove({ lock: 'l', token: 6 });
  t.equal(await guard.read(), null);
  await t.rejects(guard.write({ lock: 'l', token: 5 }, bytes('back')), { code: 'STALE_TOKEN' });
  t.same([...store.objects.keys()], [KEY], 'the data are gone, the head is not');
});

t.test('a claim keeps the object and shuts older tokens out', async (t) => {
  const store = new MemoryStore();
  const guard = new ObjectGuard(store, KEY);
  t.equal(await guard.claim({ lock: 'l', token: 1 }), null, 'nothing is there yet');
  await guard.write({ lock: 'l', token: 2 }, bytes('kept'), 'text/plain');
  const found = await guard.claim({ lock: 'l', token: 7 });
  t.match(found, { contentType: 'text/plain', token: 7 });
  t.equal(await textOf(guard), 'kept');
  await t.rejects(guard.write({ lock: 'l', token: 6 }, bytes('no')), { code: 'STALE_TOKEN' });
});

t.test('what is no head is left alone', async (t) => {
  const store = new MemoryStore();
  const guard = new ObjectGuard(store, KEY);
  for (const text of [
    'plain',
    '{}',
    '[]',
    'null',
    '{"holdfast":2,"lock":"l","token":1}',
    '\u0000',
  ]) {
    store.objects.set(KEY, bytes(text));
    const writing = guard.write({ lock: 'l', token: 1 }, bytes('x'));
    await t.rejects(writing, { code: 'CONFLICT', outcome: 'none' }, text);
    t.same(store.objects.get(KEY), bytes(text));
  }
  const head = { lock: 'é', token: 3, nonce: 'n', data: null, contentType: 'a/b' };
  t.same(decodeHead(encodeHead(head)), head);
});

/**
 * Faults planted into the guards, each of which the suite's comparison with the rule must see.
 *
 * Owns: the faults. They are put between a guard and its driver, so that nothing in the product
 * knows of them: another script for Redis, other functions for PostgreSQL, other statements for
 * SQLite, a store that passes over conditions. Used by: guards.test.ts.
 */
import { DatabaseSync } from '@photostructure/sqlite';
import pg from 'pg';
import type { Test } from 'tap';
import { checkFence, type Fence } from '../../src/guards/fence.js';
import { ObjectGuard } from '../../src/guards/object-store/object-guard.js';
import type { ObjectStore, PutOptions } from '../../src/guards/object-store/object-store.js';
import { marksSql, PostgresGuard } from '../../src/guards/postgres/postgres-guard.js';
import { RedisGuard } from '../../src/guards/redis/redis-guard.js';
import { SqliteGuard } from '../../src/guards/sqlite/sqlite-guard.js';
import { differencesFromTheRule, refusalOf } from './conformance.js';
import type { Door, Kind, Resource } from './resource.js';
import { storeAt } from './resources/s3-resource.js';
import { addressOf } from './servers/postgres-server.js';
import { connectRedis } from './servers/redis-server.js';

/** What is replaced by what; the first must be in the text, or the fault is not planted. */
type Fault = readonly [name: string, find: string, put: string];

const IN_REDIS: readonly Fault[] = [
  ['tokens compared as text', 'offered < tonumber(seen)', 'ARGV[1] < seen'],
  ['shared tokens raise the mark', "ARGV[2] ~= 'shared' and", ''],
  ['the mark is never raised', "redis.call('HSET', KEYS[1], 'token', ARGV[1])", ''],
  ['the mark itself is refused', 'offered < tonumber(seen)', 'offered <= tonumber(seen)'],
];
const IN_POSTGRES: readonly Fault[] = [
  ['everything passes', 'is_accepted := p_token >= seen', 'is_accepted := true'],
  ['shared tokens raise the mark', "p_kind = 'exclusive' AND p_token > seen", 'p_token > seen'],
];
const IN_SQLITE: readonly Fault[] = [
  ['the mark follows every token', 'max(token, excluded.token)', '1'],
];

function plant(text: string, [name, find, put]: Fault): string {
  const planted = text.replaceAll(find, put);
  if (planted === text) throw new Error(`${name}: the source has no ${find}`);
  return planted;
}

/** A door around a guard; what the value is does not matter here but for `read`. */
function doorOf(guard: Door['guard'], write: Door['write'], read: Door['read']): Door {
  return { guard, write, read, claim: () => read(), close: async () => undefined };
}

async function redisFaults(t: Test, { place }: Resource): Promise<void> {
  const client = await connectRedis(place.port);
  for (const [at, fault] of IN_REDIS.entries()) {
    const guard = new RedisGuard(
      async (words) => {
        if (words[0] === 'EVALSHA') throw new Error('NOSCRIPT so that the text is sent');
        const [name = '', text = '', ...rest] = words;
        return client.sendCommand(name === 'EVAL' ? [name, plant(text, fault), ...rest] : words);
      },
      { prefix: `planted:${at}:` },
    );
    const key = `planted:value:${at}`;
    const write = async (fence: Fence, value: string): Promise<void> => {
      await guard.write(fence, { keys: [key], commands: [['SET', key, value]] });
    };
    const door = doorOf(guard, write, async () => (await client.get(key)) ?? '');
    t.not((await differencesFromTheRule(door, 'planted')).length, 0, `redis: ${fault[0]}`);
  }
  client.destroy();
}

async function postgresFaults(t: Test, { place }: Resource): Promise<void> {
  const admin = new pg.Client(addressOf(place.port));
  await admin.connect();
  for (const [at, fault] of IN_POSTGRES.entries()) {
    const database = `planted_${at}`;
    await admin.query(`CREATE DATABASE ${database}`);
    const pool = new pg.Pool({ ...addressOf(place.port), database });
    await pool.query(plant(marksSql(), fault));
    await pool.query('CREATE TABLE cell (value text)');
    await pool.query("INSERT INTO cell VALUES ('')");
    const guard = new PostgresGuard(pool);
    const write = async (fence: Fence, value: string): Promise<void> => {
      await guard.transaction(fence, (client) =>
        client.query('UPDATE cell SET value = $1', [value]),
      );
    };
    const read = async () => (await pool.query('SELECT value FROM cell')).rows[0].value;
    const door = doorOf(guard, write, read);
    t.not((await differencesFromTheRule(door, 'planted')).length, 0, `postgres: ${fault[0]}`);
    await pool.end();
  }
  await admin.end();
}

async function sqliteFaults(t: Test): Promise<void> {
  for (const fault of IN_SQLITE) {
    const inner = new DatabaseSync(':memory:');
    const change = (text: string): string => {
      return text.includes(fault[1]) ? plant(text, fault) : text;
    };
    const guard = new SqliteGuard({
      exec: (text: string) => inner.exec(text),
      prepare: (text: string) => inner.prepare(change(text)),
    });
    let present = '';
    const write = async (fence: Fence, value: string): Promise<void> => {
      guard.transaction(fence, () => {
        present = value;
      });
    };
    const door = doorOf(guard, write, async () => present);
    t.not((await differencesFromTheRule(door, 'planted')).length, 0, `sqlite: ${fault[0]}`);
    inner.close();
  }
}

/** The store does what it is asked, whatever the condition says. */
async function s3Faults(t: Test, { place }: Resource): Promise<void> {
  const inner = storeAt(place);
  const key = 'planted/conditions';
  let onHead: () => Promise<void> = async () => undefined;
  const store: ObjectStore = {
    get: (name) => inner.get(name),
    delete: (name) => inner.delete(name),
    put: async (name, body, options: PutOptions) => {
      if (name === key) await onHead();
      const present = await inner.get(name);
      return inner.put(name, body, { ...options, condition: present?.etag ?? null });
    },
  };
  const newer = new ObjectGuard(inner, key);
  const older = new ObjectGuard(store, key);
  const bytes = (text: string) => new TextEncoder().encode(text);
  onHead = async () => {
    onHead = async () => undefined;
    await newer.write(checkFence({ lock: 'l', token: 42 }), bytes('by B'));
  };
  const refusal = await refusalOf(older.write({ lock: 'l', token: 41 }, bytes('by A')));
  const value = new TextDecoder().decode((await newer.read())?.body);
  t.ok(
    refusal === null && value === 'by A',
    's3: a store without conditions lets A win, and it shows',
  );
}

/** The proxy's marks are those of SQLite. */
export const PLANTED: Readonly<
  Partial<Record<Kind, (t: Test, resource: Resource) => Promise<void>>>
> = {
  redis: redisFaults,
  postgres: postgresFaults,
  sqlite: sqliteFaults,
  s3: s3Faults,
};

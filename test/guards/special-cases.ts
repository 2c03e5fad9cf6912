/**
 * What is particular to one store: transactions, scripts, settings, quarantines.
 *
 * Owns: the cases, each over the real server that guards.test.ts has started. Used by: that file.
 */
import path from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import pg from 'pg';
import type { Test } from 'tap';
import { ObjectGuard } from '../../src/guards/object-store/object-guard.js';
import { S3Store } from '../../src/guards/object-store/s3-store.js';
import { PostgresGuard } from '../../src/guards/postgres/postgres-guard.js';
import { FlightLog } from '../../src/guards/proxy/flight-log.js';
import { LOCK_HEADER, TOKEN_HEADER, WriteProxy } from '../../src/guards/proxy/write-proxy.js';
import { RedisGuard } from '../../src/guards/redis/redis-guard.js';
import { SqliteGuard } from '../../src/guards/sqlite/sqlite-guard.js';
import { waitFor } from '../cluster/wait-for.js';
import { refusalOf } from './conformance.js';
import { HoldingRelay } from './holding-relay.js';
import type { Kind, Resource } from './resource.js';
import { openDoor } from './resources/open.js';
import { PostgresDoor, STALL_MS } from './resources/postgres-resource.js';
import { PlainService } from './resources/proxy-resource.js';
import { addressOf } from './servers/postgres-server.js';
import { connectRedis } from './servers/redis-server.js';
import { S3_ACCESS, S3_SECRET } from './servers/s3-server.js';

async function openPool(t: Test, { place }: Resource): Promise<pg.Pool> {
  const pool = new pg.Pool(addressOf(place.port));
  pool.on('error', () => undefined); // cut connections are made anew
  t.teardown(() => pool.end());
  await pool.query(
    'CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY, balance int NOT NULL)',
  );
  await pool.query('INSERT INTO accounts VALUES (1, 100) ON CONFLICT DO NOTHING');
  return pool;
}

async function balanceOf(pool: pg.Pool): Promise<number> {
  return (await pool.query('SELECT balance FROM accounts WHERE id = 1')).rows[0].balance;
}

/** Each of these is a subtest over PostgreSQL. */
async function postgresCases(t: Test, resource: Resource): Promise<void> {
  await t.test('work that fails leaves neither its write nor its mark', async (t) => {
    const guard = new PostgresGuard(await openPool(t, resource));
    const lock = 'pg/rollback';
    const failing = guard.transaction({ lock, token: 7 }, async (client) => {
      await client.query('UPDATE accounts SET balance = 0');
      throw new Error('the work failed');
    });
    await t.rejects(failing, /the work failed/);
    t.equal((await guard.mark(lock)).token, 0);
    const swallowing = guard.transaction({ lock, token: 7 }, async (client) => {
      await client.query('SELECT nonsense').catch(() => undefined);
    });
    await t.rejects(swallowing, /ROLLBACK to COMMIT/, 'a swallowed error is no success');
    t.equal(guard.tally.accepted, 0);
  });

  await t.test(
    'plain SQL: the check raises HF001 and the transaction writes nothing',
    async (t) => {
      const pool = await openPool(t, resource);
      const client = await pool.connect();
      t.teardown(() => client.release());
      await client.query("SELECT holdfast.guard('pg/plain', 42)");
      await client.query('BEGIN');
      const check = client.query("SELECT holdfast.guard('pg/plain', 41)");
      await t.rejects(check, { code: 'HF001', message: /41.*42 was seen/ });
      await t.rejects(client.query('UPDATE accounts SET balance = 1'), /aborted/);
      t.equal((await client.query('COMMIT')).command, 'ROLLBACK');
      for (const bad of ["NULL, 1, 'exclusive'", "'a', 0, 'exclusive'", "'a', 1, 'semaphore'"]) {
        await t.rejects(client.query(`SELECT holdfast.guard(${bad})`), { code: '22023' }, bad);
      }
      const guard = new PostgresGuard(pool);
      await client.query('BEGIN');
      const admitted = guard.admit(client, { lock: 'pg/plain', token: 40 });
      t.match(await refusalOf(admitted), { seen: 42, offered: 40 }, 'the helper in a transaction');
      await client.query('ROLLBACK');
      await client.query('BEGIN');
      await guard.admit(client, { lock: 'pg/plain', token: 43 });
      await client.query('COMMIT');
      t.equal((await guard.mark('pg/plain')).token, 43);
    },
  );

  await t.test('the check holds the mark until the write is committed', async (t) => {
    const pool = await openPool(t, resource);
    const guard = new PostgresGuard(pool);
    const order: string[] = [];
    let write: () => void = () => undefined;
    const mayWrite = new Promise<void>((resolve) => {
      write = resolve;
    });
    let isInside = false;
    const older = guard.transaction({ lock: 'pg/order', token: 1 }, async () => {
      isInside = true;
      await mayWrite;
      order.push('older');
    });
    await waitFor('the older to be inside', () => isInside);
    const newer = guard.transaction({ lock: 'pg/order', token: 2 }, async () => {
      order.push('newer');
    });
    const text = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    await waitFor('the newer to wait', async () => (await pool.query(text)).rowCount === 1);
    write();
    await Promise.all([older, newer]);
    t.same(order, ['older', 'newer']);
  });

  await t.test('repeatable read never lets an old snapshot pass for the mark', async (t) => {
    const pool = await openPool(t, resource);
    const client = await pool.connect();
    t.teardown(() => client.release());
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await client.query('SELECT 1');
    await pool.query("SELECT holdfast.guard('pg/snapshot', 42)");
    const check = client.query("SELECT holdfast.guard('pg/snapshot', 41)");
    await t.rejects(check, { code: '40001' }, 'a serialization failure: try again, then refused');
    await client.query('ROLLBACK');
  });

  await t.test('a trigger refuses writes that came without a token', async (t) => {
    const pool = await openPool(t, resource);
    await pool.query('CREATE TABLE protected (id int)');
    await pool.query(`CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE
      ON protected FOR EACH STATEMENT EXECUTE FUNCTION holdfast.require_guard('pg/a')`);
    const insert = 'INSERT INTO protected VALUES (1)';
    await t.rejects(pool.query(insert), { code: 'HF002' });
    const guard = new PostgresGuard(pool);
    const other = guard.transaction({ lock: "pg/x,'pg/a", token: 1 }, (c) => c.query(insert));
    await t.rejects(other, { code: 'HF002' }, 'a lock whose name only looks like it');
    await guard.transaction({ lock: 'pg/a', token: 1 }, (c) => c.query(insert));
    await t.rejects(pool.query(insert), { code: 'HF002' }, 'forgotten with the transaction');
  });

  await t.test(
    'a holder that is stopped before its commit holds up the next for a bound',
    async (t) => {
      const pool = await openPool(t, resource);
      const relay = await HoldingRelay.start(resource.place.port);
      t.teardown(() => relay.close());
      const cell = 'pg commit';
      const slow = new PostgresDoor({ ...resource.place, port: relay.port }, cell);
      const quick = await openDoor(resource.place, cell);
      t.teardown(() => Promise.all([slow.close(), quick.close()]));
      relay.holdFrom('COMMIT');
      const held = slow.write({ lock: 'pg/commit', token: 41 }, 'by A').catch((error) => error);
      await relay.holds();
      const startedMs = performance.now();
      await quick.write({ lock: 'pg/commit', token: 42 }, 'by B').catch(async () => {
        // Its own wait is bounded too, and may end a moment before A's transaction does.
        await quick.write({ lock: 'pg/commit', token: 42 }, 'by B');
      });
      t.ok(performance.now() - startedMs > STALL_MS / 2, 'B waited for A’s transaction');
      relay.letGo();
      t.ok((await held) instanceof Error, 'A does not believe that it wrote');
      t.equal(await quick.read(), 'by B');
      t.equal(await balanceOf(pool), 100);
    },
  );

  await t.test('the migration can be repeated, and by several at once', async (t) => {
    const guard = new PostgresGuard(await openPool(t, resource));
    await guard.raise('pg/migrate', 9);
    await Promise.all([guard.migrate(), guard.migrate(), guard.migrate()]);
    t.equal((await guard.mark('pg/migrate')).token, 9);
  });
}

async function redisCases(t: Test, { place }: Resource): Promise<void> {
  await t.test('several commands in one step, with their replies', async (t) => {
    const client = await connectRedis(place.port);
    t.teardown(() => client.destroy());
    await client.sendCommand(['SCRIPT', 'FLUSH']);
    const guard = new RedisGuard((words) => client.sendCommand(words), { prefix: '{r}:' });
    const keys = ['{r}:list', '{r}:count'];
    const commands = [
      ['RPUSH', '{r}:list', 'a', 'b'],
      ['INCRBY', '{r}:count', '5'],
      ['GET', '{r}:none'],
      ['LRANGE', '{r}:list', '0', '-1'],
    ];
    const replies = await guard.write({ lock: 'r', token: 3 }, { keys, commands });
    t.same(replies, [2, 5, null, ['a', 'b']]);
    const failing = guard.write(
      { lock: 'r', token: 3 },
      { keys, commands: [['INCR', '{r}:list']] },
    );
    await t.rejects(failing, /WRONGTYPE/, 'an error of a command is told as it is');
    t.equal(guard.tally.unknown, 0);
    await client.sendCommand(['SET', '{r}:broken', 'a string where the mark should be']);
    const broken = guard.write({ lock: 'broken', token: 3 }, { keys: [], commands: [] });
    await t.rejects(broken, /WRONGTYPE/, 'a mark that cannot be read lets nobody in');
  });

  await t.test('settings that could lose a mark are named', async (t) => {
    const client = await connectRedis(place.port);
    t.teardown(() => client.destroy());
    const guard = new RedisGuard((words) => client.sendCommand(words));
    t.same(await guard.weaknesses(), []);
    await client.sendCommand(['CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru']);
    t.match(await guard.weaknesses(), [/allkeys-lru.*evicted/]);
    await client.sendCommand(['CONFIG', 'SET', 'maxmemory-policy', 'noeviction']);
  });

  await t.test('a connection that breaks is an unknown outcome', async (t) => {
    const relay = await HoldingRelay.start(place.port);
    const client = await connectRedis(relay.port);
    const guard = new RedisGuard((words) => client.sendCommand(words));
    relay.holdFrom('EVALSHA');
    const writing = guard.write({ lock: 'cut', token: 1 }, { keys: [], commands: [] });
    const settled = writing.catch((error: unknown) => error);
    await relay.holds();
    relay.close();
    t.match(await settled, { code: 'UNKNOWN_OUTCOME', outcome: 'unknown' });
    t.equal(guard.tally.unknown, 1);
  });
}

async function sqliteCases(t: Test, { place }: Resource): Promise<void> {
  await t.test('work that fails, or is asynchronous, leaves nothing', async (t) => {
    const database = new DatabaseSync(path.join(place.folder, 'special.sqlite'));
    t.teardown(() => database.close());
    database.exec('CREATE TABLE numbers (value INTEGER)');
    const guard = new SqliteGuard(database);
    const fence = { lock: 'sqlite', token: 7 };
    const insert = (): unknown => database.prepare('INSERT INTO numbers VALUES (1)').run();
    const count = (): unknown => database.prepare('SELECT count(*) AS n FROM numbers').get();
    const fail = (): never => {
      insert();
      throw new Error('the work failed');
    };
    t.throws(() => guard.transaction(fence, fail), /the work failed/);
    t.throws(() => guard.transaction(fence, async () => insert()), { code: 'BAD_REQUEST' });
    t.match(count(), { n: 0 });
    t.equal((await guard.mark('sqlite')).token, 0);
    guard.transaction(fence, insert);
    t.match(count(), { n: 1 });
    t.equal(guard.tally.accepted, 1);
  });
}

interface ProxyAnswer {
  readonly status: number;
  readonly code: string;
}

/** A proxy of its own, before a service that can be reached through a relay. */
async function startSlowProxy(t: Test, folder: string) {
  const service = new PlainService();
  await service.start();
  const relay = await HoldingRelay.start(service.port);
  const database = new DatabaseSync(path.join(folder, 'slow.sqlite'));
  const upstream = `http://127.0.0.1:${relay.port}`;
  const options = { upstream, database, upstreamMsMax: 150 };
  const proxy = await WriteProxy.start(options, '127.0.0.1', 0);
  t.teardown(async () => {
    await proxy.close();
    relay.close();
    await service.close();
    database.close();
  });
  const put = async (token: number, body: string, lock = 'slow'): Promise<ProxyAnswer> => {
    const headers = { [LOCK_HEADER]: lock, [TOKEN_HEADER]: String(token) };
    const url = `http://127.0.0.1:${proxy.port}/value`;
    const response = await fetch(url, { method: 'PUT', headers, body });
    const text = await response.text();
    const code = response.status === 200 ? '' : JSON.parse(text).error.code;
    return { status: response.status, code };
  };
  return { service, relay, database, proxy, put };
}

async function proxyCases(t: Test, { place }: Resource): Promise<void> {
  await t.test('a write that is not answered puts its lock in quarantine', async (t) => {
    const { service, relay, database, proxy, put } = await startSlowProxy(t, place.folder);
    t.match(await put(40, 'first'), { status: 200 });
    relay.holdFrom('PUT');
    t.match(await put(41, 'by A'), { status: 504, code: 'UNKNOWN_OUTCOME' });
    t.match(await put(42, 'by B'), { status: 503, code: 'QUARANTINED' }, 'A’s may yet arrive');
    relay.letGo();
    t.match(await put(1, 'x', 'other'), { status: 200 }, 'other locks go on');
    t.match(await put(42, 'by B'), { status: 503 }, 'and not by itself');
    const flights = new FlightLog(database);
    t.match(flights.list(), [{ lock: 'slow', token: 41, what: 'PUT /value', reason: 'timeout' }]);
    t.match(await flights.lift('slow', 42), { token: 41 });
    t.match(await put(41, 'by A again'), { status: 410, code: 'STALE_TOKEN' });
    t.match(await put(42, 'by B'), { status: 200 });
    t.equal(service.values.get('/value'), 'by B');
    t.match(proxy.tally, { accepted: 3, refused: 1, unknown: 1 });
  });

  await t.test(
    'a proxy that ended during a write starts with that lock in quarantine',
    async (t) => {
      const file = path.join(place.folder, 'crashed.sqlite');
      const database = new DatabaseSync(file);
      t.teardown(() => database.close());
      new FlightLog(database).start({ lock: 'crashed', token: 41 }, 'PUT /value');
      const upstream = 'http://127.0.0.1:9';
      const proxy = await WriteProxy.start({ upstream, database }, '127.0.0.1', 0);
      t.teardown(() => proxy.close());
      t.match(proxy.flights.list(), [{ lock: 'crashed', reason: 'restart' }]);
    },
  );

  await t.test('what was never sent is no quarantine; what is no write is refused', async (t) => {
    const database = new DatabaseSync(path.join(place.folder, 'nowhere.sqlite'));
    t.teardown(() => database.close());
    const upstream = 'http://127.0.0.1:9';
    const proxy = await WriteProxy.start({ upstream, database }, '127.0.0.1', 0);
    t.teardown(() => proxy.close());
    const ask = (headers: Record<string, string>, body = '') =>
      fetch(`http://127.0.0.1:${proxy.port}/value`, { method: 'PUT', headers, body });
    const good = { [LOCK_HEADER]: 'a%2Fb', [TOKEN_HEADER]: '5' };
    t.equal((await ask(good)).status, 502);
    t.same(proxy.flights.list(), []);
    t.equal((await proxy.flights.mark('a/b')).token, 5, 'the name was percent-encoded');
    const bad = [{}, { ...good, [TOKEN_HEADER]: '5.5' }, { ...good, [LOCK_HEADER]: '%ff' }];
    bad.push({ ...good, 'holdfast-kind': 'semaphore' });
    for (const headers of bad) t.equal((await ask(headers)).status, 400);
    t.equal((await ask(good, 'x'.repeat(9 * 1024 * 1024))).status, 413);
  });
}

/** The S3 server itself: keys that need encoding, and an answer that is an error. */
async function s3Cases(t: Test, { place }: Resource): Promise<void> {
  await t.test('keys with blanks, slashes and other scripts', async (t) => {
    for (const cell of ['a b', 'a/b+c', 'é∀', "it's (1)*!"]) {
      const door = await openDoor(place, cell);
      await door.write({ lock: 'keys', token: 1 }, cell);
      await door.write({ lock: 'keys', token: 2 }, `${cell} again`);
      t.equal(await door.read(), `${cell} again`, cell);
    }
  });

  await t.test('a bucket that is not there is an error, no empty object', async (t) => {
    const endpoint = `http://127.0.0.1:${place.port}`;
    const keys = { accessKeyId: S3_ACCESS, secretAccessKey: S3_SECRET };
    const guard = new ObjectGuard(new S3Store({ endpoint, bucket: 'nowhere', ...keys }), 'x');
    const missing = { name: 'ObjectStoreError', status: 404 };
    await t.rejects(guard.read(), missing);
    await t.rejects(guard.write({ lock: 'x', token: 1 }, new Uint8Array(1)), missing);
    const wrong = { ...keys, secretAccessKey: 'wrong' };
    const denied = new ObjectGuard(new S3Store({ endpoint, bucket: 'guarded', ...wrong }), 'x');
    await t.rejects(denied.read(), { name: 'ObjectStoreError', status: 403 });
  });
}

export const SPECIAL_CASES: Readonly<Record<Kind, (t: Test, r: Resource) => Promise<void>>> = {
  postgres: postgresCases,
  redis: redisCases,
  sqlite: sqliteCases,
  proxy: proxyCases,
  s3: s3Cases,
};

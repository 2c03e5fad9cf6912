/**
 * Opens a guard by an address, with the driver that the package brings for its own commands.
 *
 * Owns: what an address means, and the driver's life. Loads a driver only when its store is named.
 * Never: used by programs; they have a pool or a client of their own already. Used by: the
 * `holdfast guard` commands.
 */
import { badRequest } from '../client/errors.js';
import type { Guard } from './guard.js';

/** Stores that have an address. The marks of a write proxy are a SQLite file. */
export const STORES = ['postgres', 'redis', 's3', 'sqlite'] as const;
export type Store = (typeof STORES)[number];

export interface OpenGuard {
  readonly guard: Guard;
  /** Creates what the store needs before its first write. */
  migrate(): Promise<void>;
  /** What of the store's settings could make it forget a mark, a sentence each. */
  weaknesses(): Promise<string[]>;
  close(): Promise<void>;
}

const NOTHING = async (): Promise<void> => undefined;
const NO_WEAKNESS = async (): Promise<string[]> => [];
const CONNECT_MS_MAX = 5_000;

/**
 * @param address postgres, redis: a URL; sqlite: a file; s3: `https://HOST/BUCKET/KEY`, with the
 * credentials in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION.
 */
export function openGuard(
  store: Store,
  address: string,
  environment: NodeJS.ProcessEnv,
): Promise<OpenGuard> {
  switch (store) {
    case 'postgres':
      return openPostgres(address);
    case 'redis':
      return openRedis(address);
    case 's3':
      return openS3(address, environment);
    case 'sqlite':
      return openSqlite(address);
  }
}

async function openPostgres(address: string): Promise<OpenGuard> {
  const [{ default: pg }, { PostgresGuard }] = await Promise.all([
    import('pg'),
    import('./postgres/postgres-guard.js'),
  ]);
  const limits = { max: 1, connectionTimeoutMillis: CONNECT_MS_MAX };
  const pool = new pg.Pool({ connectionString: address, ...limits });
  const guard = new PostgresGuard(pool);
  return {
    guard,
    migrate: () => guard.migrate(),
    weaknesses: NO_WEAKNESS,
    close: () => pool.end(),
  };
}

async function openRedis(address: string): Promise<OpenGuard> {
  const [{ createClient }, { RedisGuard }] = await Promise.all([
    import('@redis/client'),
    import('./redis/redis-guard.js'),
  ]);
  const socket = { reconnectStrategy: false, connectTimeout: CONNECT_MS_MAX } as const;
  const client = createClient({ url: address, socket });
  client.on('error', () => undefined); // the call under way rejects with it
  await client.connect();
  const guard = new RedisGuard((words) => client.sendCommand(words));
  return {
    guard,
    migrate: NOTHING,
    weaknesses: () => guard.weaknesses(),
    close: async () => client.destroy(),
  };
}

async function openS3(address: string, environment: NodeJS.ProcessEnv): Promise<OpenGuard> {
  const [{ S3Store }, { ObjectGuard }] = await Promise.all([
    import('./object-store/s3-store.js'),
    import('./object-store/object-guard.js'),
  ]);
  const url = new URL(address);
  const [bucket = '', ...key] = url.pathname.slice(1).split('/').map(decodeURIComponent);
  const accessKeyId = environment['AWS_ACCESS_KEY_ID'];
  const secretAccessKey = environment['AWS_SECRET_ACCESS_KEY'];
  if (bucket === '' || key.join('') === '') {
    throw badRequest('s3', `s3 is ${address}, wanted https://HOST/BUCKET/KEY`);
  }
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw badRequest('s3', 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  }
  const sessionToken = environment['AWS_SESSION_TOKEN'];
  const region = environment['AWS_REGION'];
  const store = new S3Store({
    endpoint: url.origin,
    bucket,
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
    ...(region === undefined ? {} : { region }),
    quotesEtags: environment['HOLDFAST_S3_UNQUOTED_ETAGS'] !== '1',
  });
  const guard = new ObjectGuard(store, key.join('/'));
  return { guard, migrate: NOTHING, weaknesses: NO_WEAKNESS, close: NOTHING };
}

async function openSqlite(file: string): Promise<OpenGuard> {
  const [database, { SqliteGuard }] = await Promise.all([
    openDatabase(file),
    import('./sqlite/sqlite-guard.js'),
  ]);
  const guard = new SqliteGuard(database); // makes its table
  return {
    guard,
    migrate: NOTHING,
    weaknesses: NO_WEAKNESS,
    close: async () => database.close(),
  };
}

/** A database as `node:sqlite` has it, by a package that works on every Node that we support. */
export async function openDatabase(file: string) {
  const { DatabaseSync } = await import('@photostructure/sqlite');
  return new DatabaseSync(file);
}

/**
 * The public entry of the guards: `import { PostgresGuard, fenceOf } from 'holdfast/guards'`.
 *
 * Owns: which names are public. Never: code, or a driver; programs bring the driver that they use.
 * Used by: programs.
 */
export { ClusterReporter } from './cluster-reporter.js';
export {
  type Fence,
  type FencedLease,
  type FenceKind,
  fenceOf,
  judge,
  type Mark,
  type Verdict,
} from './fence.js';
export type { Guard } from './guard.js';
export {
  type GuardedObject,
  ObjectGuard,
  type ObjectGuardOptions,
} from './object-store/object-guard.js';
export type {
  ObjectStore,
  PutOptions,
  StoredObject,
  WriteCondition,
} from './object-store/object-store.js';
export { ObjectStoreError, S3Store, type S3StoreOptions } from './object-store/s3-store.js';
export {
  marksSql,
  type PostgresClient,
  PostgresGuard,
  type PostgresGuardOptions,
  type PostgresPool,
  type PostgresResult,
} from './postgres/postgres-guard.js';
export type { Quarantine } from './proxy/flight-log.js';
export {
  KIND_HEADER,
  LOCK_HEADER,
  TOKEN_HEADER,
  WriteProxy,
  type WriteProxyOptions,
} from './proxy/write-proxy.js';
export {
  type RedisCall,
  RedisGuard,
  type RedisGuardOptions,
  type RedisWrite,
} from './redis/redis-guard.js';
export { type Refusal, RefusalBatches, type RefusalReporter } from './refusals.js';
export {
  type SqliteDatabase,
  SqliteGuard,
  type SqliteGuardOptions,
  type SqliteStatement,
} from './sqlite/sqlite-guard.js';
export { isStaleToken, StaleTokenError } from './stale-token.js';
export { type GuardEvent, type GuardObserver, Tally } from './tally.js';

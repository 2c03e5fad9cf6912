/**
 * Starts a resource by its kind, and opens doors to it from any process.
 *
 * Owns: the two tables. Loads the driver of that kind alone, since many processes open doors.
 * Used by: conformance, stories, paused clients, their child processes.
 */
import type { Door, Kind, Place, Resource } from '../resource.js';

/** @param folder an empty scratch folder of its own. */
export async function startResource(kind: Kind, folder: string): Promise<Resource> {
  switch (kind) {
    case 'postgres':
      return (await import('./postgres-resource.js')).startPostgres(folder);
    case 'redis':
      return (await import('./redis-resource.js')).startRedis(folder);
    case 's3':
      return (await import('./s3-resource.js')).startS3(folder);
    case 'sqlite':
      return (await import('./sqlite-resource.js')).startSqlite(folder);
    case 'proxy':
      return (await import('./proxy-resource.js')).startProxy(folder);
  }
}

export async function openDoor(place: Place, cell: string): Promise<Door> {
  switch (place.kind) {
    case 'postgres':
      return new (await import('./postgres-resource.js')).PostgresDoor(place, cell);
    case 'redis':
      return (await import('./redis-resource.js')).RedisDoor.open(place, cell);
    case 's3':
      return new (await import('./s3-resource.js')).S3Door(place, cell);
    case 'sqlite':
      return openFile(place, cell);
    case 'proxy':
      return new (await import('./proxy-resource.js')).ProxyDoor(place, cell);
  }
}

async function openFile(place: Place, cell: string): Promise<Door> {
  const { SqliteDoor } = await import('./sqlite-resource.js');
  const door = new SqliteDoor(place, cell);
  if (place.port === 0) return door;
  return new (await import('./desk.js')).DeskDoor(door, place);
}

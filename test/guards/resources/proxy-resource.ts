/**
 * The write proxy as the guard suite sees it: before a small HTTP service that checks nothing.
 *
 * Owns: service and proxy, both in this process. Used by: open.ts, proxy.test.ts.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import type { Fence } from '../../../src/guards/fence.js';
import { checkFence } from '../../../src/guards/fence.js';
import type { Guard } from '../../../src/guards/guard.js';
import { FlightLog } from '../../../src/guards/proxy/flight-log.js';
import { readBody } from '../../../src/guards/proxy/upstream.js';
import {
  KIND_HEADER,
  LOCK_HEADER,
  TOKEN_HEADER,
  WriteProxy,
} from '../../../src/guards/proxy/write-proxy.js';
import { StaleTokenError } from '../../../src/guards/stale-token.js';
import { type GuardObserver, Tally } from '../../../src/guards/tally.js';
import type { Door, Place, Resource } from '../resource.js';
import { raceOn } from './sqlite-resource.js';

/** An HTTP service that keeps what it is told: PUT and GET of any path; POST changes nothing. */
export class PlainService {
  readonly values = new Map<string, string>();
  private readonly server: Server;

  constructor() {
    this.server = createServer(async (request, response) => {
      const url = request.url ?? '';
      const body = Buffer.from((await readBody(request)) ?? []).toString();
      if (request.method === 'PUT') this.values.set(url, body);
      response.end(this.values.get(url) ?? '');
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }
}

/** The marks of the proxy, from outside it. */
class ProxyMarks implements Guard {
  readonly tally: Tally;
  private readonly flights: FlightLog;

  constructor(file: string, observer: GuardObserver = {}) {
    this.flights = new FlightLog(new DatabaseSync(file));
    this.tally = new Tally('proxy', observer);
  }

  raise(lock: string, token: number) {
    return this.flights.guard.raise(lock, token);
  }

  mark(lock: string) {
    return this.flights.mark(lock);
  }
}

export function marksFileOf(folder: string): string {
  return path.join(folder, 'marks.sqlite');
}

export class ProxyDoor implements Door {
  readonly guard: ProxyMarks;
  private readonly url: string;

  constructor(place: Place, cell: string) {
    this.url = `http://127.0.0.1:${place.port}/cells/${encodeURIComponent(cell)}`;
    this.guard = new ProxyMarks(marksFileOf(place.folder));
  }

  async write(fence: Fence, value: string): Promise<void> {
    await this.send('PUT', fence, value);
  }

  claim(fence: Fence): Promise<string> {
    return this.send('POST', fence, '');
  }

  async read(): Promise<string> {
    return (await fetch(this.url)).text();
  }

  async close(): Promise<void> {
    // fetch keeps nothing that would hold a process
  }

  private async send(method: string, fence: Fence, body: string): Promise<string> {
    const { lock, token, kind } = checkFence(fence);
    const headers = {
      [LOCK_HEADER]: encodeURIComponent(lock),
      [TOKEN_HEADER]: String(token),
      [KIND_HEADER]: kind,
    };
    const response = await fetch(this.url, { method, headers, body });
    const text = await response.text();
    const { tally } = this.guard;
    if (response.status === 200) {
      tally.onAccepted(fence, 0);
      return text;
    }
    const { error } = JSON.parse(text) as { error: { code: string; seen?: number } };
    if (error.code !== 'STALE_TOKEN') throw new Error(text);
    tally.onRefused(fence, error.seen ?? 0);
    throw new StaleTokenError('proxy', fence, error.seen ?? 0);
  }
}

export async function startProxy(folder: string): Promise<Resource> {
  const service = new PlainService();
  await service.start();
  const database = new DatabaseSync(marksFileOf(folder));
  database.exec('PRAGMA journal_mode = WAL');
  const upstream = `http://127.0.0.1:${service.port}`;
  const proxy = await WriteProxy.start({ upstream, database }, '127.0.0.1', 0);
  const row = database.prepare('SELECT sqlite_version() AS version').get();
  const { version } = row as { version: string };
  return {
    place: { kind: 'proxy', port: proxy.port, folder },
    server: `write proxy, marks in SQLite ${version}`,
    decidingBytes: 'PUT ',
    counts: true,
    hasMarkForEachLock: true,
    race: (writers) => raceOn(path.join(folder, 'race.sqlite'), writers, 1),
    close: async () => {
      await proxy.close();
      await service.close();
      database.close();
    },
  };
}

/**
 * Redis as the guard suite sees it: one key a cell, written by the guard's script.
 *
 * Owns: its server. Used by: open.ts.
 */
import type { Fence } from '../../../src/guards/fence.js';
import { RedisGuard } from '../../../src/guards/redis/redis-guard.js';
import type { Door, Place, Resource } from '../resource.js';
import { connectRedis, type RedisConnection, RedisServer } from '../servers/redis-server.js';

export class RedisDoor implements Door {
  readonly guard: RedisGuard;
  private readonly key: string;

  private constructor(
    readonly client: RedisConnection,
    cell: string,
  ) {
    this.key = `cell:${cell}`;
    this.guard = new RedisGuard((words) => client.sendCommand(words));
  }

  static async open({ port }: Place, cell: string): Promise<RedisDoor> {
    return new RedisDoor(await connectRedis(port), cell);
  }

  async write(fence: Fence, value: string): Promise<void> {
    const commands = [['SET', this.key, value]];
    await this.guard.write(fence, { keys: [this.key], commands });
  }

  async claim(fence: Fence): Promise<string> {
    const commands = [['GET', this.key]];
    const [value] = await this.guard.write(fence, { keys: [this.key], commands });
    return String(value ?? '');
  }

  async read(): Promise<string> {
    return (await this.client.get(this.key)) ?? '';
  }

  async close(): Promise<void> {
    this.client.destroy();
  }
}

export async function startRedis(folder: string): Promise<Resource> {
  const server = await RedisServer.start(folder);
  return {
    place: { kind: 'redis', port: server.port, folder },
    server: `${server.name} ${server.version}`,
    decidingBytes: 'EVALSHA',
    counts: true,
    hasMarkForEachLock: true,
    race: (writers) => race(server.port, writers),
    close: () => server.close(),
  };
}

async function race(port: number, writers: number): Promise<number[]> {
  const clients = await Promise.all(Array.from({ length: writers }, () => connectRedis(port)));
  const winners: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const replies = await Promise.all(
      clients.map((each, at) => each.sendCommand(['SET', `race:${round}`, String(at), 'NX'])),
    );
    winners.push(replies.filter((reply) => reply !== null).length);
  }
  for (const client of clients) client.destroy();
  return winners;
}

/**
 * A real Redis for the guard tests, with the settings that a guard asks for.
 *
 * Owns: the server and its end. Used by: resources.ts.
 */
import { createClient } from '@redis/client';
import { freePorts } from '../../cluster/harness.js';
import { waitFor } from '../../cluster/wait-for.js';
import { Daemon, findProgram } from './daemon.js';

export type RedisConnection = Awaited<ReturnType<typeof connectRedis>>;

/** A connection that does not come back by itself: a test that loses one must see it. */
export async function connectRedis(port: number) {
  const client = createClient({
    socket: { host: '127.0.0.1', port, reconnectStrategy: false, connectTimeout: 60_000 },
  });
  client.on('error', () => undefined); // the calls under way reject with it
  await client.connect();
  return client;
}

export class RedisServer {
  readonly name = 'Redis';
  version = '';

  private constructor(
    readonly port: number,
    private readonly daemon: Daemon,
  ) {}

  /** @param extra more words for redis-server, such as settings that a guard must complain of. */
  static async start(folder: string, extra: readonly string[] = []): Promise<RedisServer> {
    const [port = 0] = await freePorts(1);
    const server = new RedisServer(port, new Daemon('redis', folder));
    const program = findProgram(['/usr/bin/redis-server'], 'redis-server');
    const words = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
    const durable = ['--appendonly', 'yes', '--appendfsync', 'always'];
    server.daemon.start(program, [...words, ...durable, ...extra]);
    server.version = await waitFor('Redis to answer', () => server.ask());
    return server;
  }

  close(): Promise<void> {
    return this.daemon.end();
  }

  private async ask(): Promise<string> {
    this.daemon.checkAlive();
    const client = await connectRedis(this.port);
    const info = await client.sendCommand(['INFO', 'server']);
    client.destroy();
    return /redis_version:(\S+)/.exec(String(info))?.[1] ?? 'unknown';
  }
}

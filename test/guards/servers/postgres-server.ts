/**
 * A real PostgreSQL for the guard tests: a database cluster of its own in a scratch folder.
 *
 * Owns: initdb, the server, its end. fsync is off: these tests crash no machine. Refuses to run as
 * root, as PostgreSQL does, so it takes the ids of the user `postgres` then. Used by: resources.ts.
 */
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { freePorts } from '../../cluster/harness.js';
import { waitFor } from '../../cluster/wait-for.js';
import { Daemon, findProgram, type RunAs, runTool } from './daemon.js';

const DEBIAN = '/usr/lib/postgresql';

function programOf(name: string): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort().reverse() : [];
  const places = versions.map((version) => `${DEBIAN}/${version}/bin/${name}`);
  return findProgram([...places, `/usr/local/bin/${name}`, `/usr/bin/${name}`], 'postgresql');
}

async function userForServer(): Promise<RunAs | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = async (flag: string) => Number(await runTool('id', [flag, 'postgres']));
  return { uid: await idOf('-u'), gid: await idOf('-g') };
}

export class PostgresServer {
  readonly name = 'PostgreSQL';
  version = '';

  private constructor(
    readonly port: number,
    private readonly daemon: Daemon,
  ) {}

  /** @param folder an empty scratch folder, which outlives the server. */
  static async start(folder: string): Promise<PostgresServer> {
    const [port = 0] = await freePorts(1);
    const user = await userForServer();
    const data = path.join(folder, 'data');
    mkdirSync(data);
    if (user !== undefined) {
      chmodSync(path.dirname(folder), 0o711); // so that the other user gets through
      for (const each of [folder, data]) chownSync(each, user.uid, user.gid);
    }
    const found = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '-N'];
    await runTool(programOf('initdb'), [...found, '--locale=C', '--no-instructions'], user);
    const server = new PostgresServer(port, new Daemon('postgres', folder));
    const settings = ['fsync=off', 'max_connections=120', 'listen_addresses=127.0.0.1'];
    settings.push(`unix_socket_directories=${folder}`, `port=${port}`);
    const words = settings.flatMap((each) => ['-c', each]);
    server.daemon.start(programOf('postgres'), ['-D', data, ...words], user);
    server.version = await waitFor('PostgreSQL to answer', () => server.ask());
    return server;
  }

  close(): Promise<void> {
    return this.daemon.end('SIGQUIT');
  }

  private async ask(): Promise<string> {
    this.daemon.checkAlive();
    const client = new pg.Client(addressOf(this.port));
    try {
      await client.connect();
      const { rows } = await client.query('SHOW server_version');
      return String(rows[0].server_version);
    } finally {
      await client.end();
    }
  }
}

/** How to connect to it. */
export function addressOf(port: number): pg.ClientConfig {
  return { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' };
}

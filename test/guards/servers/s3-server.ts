/**
 * A real S3-compatible server for the guard tests: Ceph's RADOS gateway, with the one monitor and
 * the one storage daemon that it needs, all in a scratch folder and in memory.
 *
 * Owns: the three processes and their end. Why Ceph: it is what Debian has that implements S3 for
 * production, and it decides conditions in the storage daemon; emulators written for tests mostly
 * pass over If-Match. Used by: resources.ts.
 */

import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePorts } from '../../cluster/harness.js';
import { waitFor } from '../../cluster/wait-for.js';
import { Daemon, findProgram, runTool } from './daemon.js';

export const S3_ACCESS = 'holdfast';
export const S3_SECRET = 'holdfast-secret';

function settingsOf(folder: string, fsid: string, monitorPort: number, port: number): string {
  return `[global]
fsid = ${fsid}
mon host = v2:127.0.0.1:${monitorPort}
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = ${folder}/keyring
run dir = ${folder}
admin socket = ${folder}/$name.$pid.asok
log file = ${folder}/$name.log
log to stderr = false
mon cluster log file = ${folder}/cluster.log
mon data = ${folder}/mon
osd data = ${folder}/osd
rgw data = ${folder}/rgw
ms bind ipv6 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd objectstore = memstore
memstore device bytes = 268435456
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon osd crush smoke test = false
paxos propose interval = 0.05
rgw frontends = beast endpoint=127.0.0.1:${port} tcp_nodelay=1
rgw rados pool pg num min = 1
rgw thread pool size = 64
rgw enable gc threads = false
rgw enable lc threads = false
rgw run sync thread = false
rgw dynamic resharding = false
`;
}

export class S3Server {
  readonly name = 'Ceph RADOS gateway';
  version = '';

  private constructor(
    readonly port: number,
    private readonly daemons: readonly Daemon[],
  ) {}

  static async start(folder: string): Promise<S3Server> {
    const gateway = findProgram(['/usr/bin/radosgw'], 'radosgw');
    const monitor = findProgram(['/usr/bin/ceph-mon'], 'ceph-mon');
    const storage = findProgram(['/usr/bin/ceph-osd'], 'ceph-osd');
    const [port = 0, monitorPort = 0] = await freePorts(2);
    const fsid = randomUUID();
    const configuration = path.join(folder, 'ceph.conf');
    for (const each of ['mon', 'osd', 'rgw']) mkdirSync(path.join(folder, each));
    writeFileSync(configuration, settingsOf(folder, fsid, monitorPort, port));
    const daemons = ['mon', 'osd', 'gateway'].map((name) => new Daemon(name, folder));
    const server = new S3Server(port, daemons);
    const words = ['-c', configuration];
    const keyring = await makeKeyring(folder);
    const map = path.join(folder, 'monmap');
    const address = `[v2:127.0.0.1:${monitorPort}]`;
    await runTool('monmaptool', ['--create', '--fsid', fsid, '--addv', 'a', address, map]);
    await runTool(monitor, [...words, '--mkfs', '-i', 'a', '--monmap', map, '--keyring', keyring]);
    daemons[0]?.start(monitor, [...words, '-i', 'a', '-f']);
    const disk = randomUUID();
    await runTool(storage, [...words, '-i', '0', '--mkfs', '--osd-uuid', disk]);
    await runTool('ceph', [...words, 'osd', 'create', disk]);
    daemons[1]?.start(storage, [...words, '-i', '0', '-f']);
    const user = ['user', 'create', '--uid', 'holdfast', '--display-name', 'holdfast'];
    const keys = ['--access-key', S3_ACCESS, '--secret-key', S3_SECRET];
    await runTool('radosgw-admin', [...words, ...user, ...keys]);
    daemons[2]?.start(gateway, [...words, '-n', 'client.admin', '-f']);
    await waitFor('the gateway to answer', () => server.ask());
    server.version = /version (\S+)/.exec(await runTool(gateway, ['--version']))?.[1] ?? 'unknown';
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async close(): Promise<void> {
    await Promise.all(this.daemons.map((daemon) => daemon.end()));
  }

  private async ask(): Promise<boolean> {
    for (const daemon of this.daemons) daemon.checkAlive();
    return (await fetch(this.endpoint)).status === 200;
  }
}

async function makeKeyring(folder: string): Promise<string> {
  const file = path.join(folder, 'keyring');
  const all = 'allow *';
  const make = (words: readonly string[]) => runTool('ceph-authtool', words);
  await make(['-C', file, '--gen-key', '-n', 'mon.', '--cap', 'mon', all]);
  const admin = ['--cap', 'mon', all, '--cap', 'osd', all];
  await make([file, '--gen-key', '-n', 'client.admin', ...admin]);
  const disk = ['--cap', 'mon', 'allow profile osd', '--cap', 'osd', all];
  await make([file, '--gen-key', '-n', 'osd.0', ...disk]);
  return file;
}

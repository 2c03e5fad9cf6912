/**
 * The audit stream over real nodes: every committed event, over kills, compaction and restarts,
 * while the consumer that delivers it is killed too.
 */

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { compiledFile } from '../gate/paths.js';
import { acquireOperation, grantIn } from './acceptance/operations.js';
import { RawConnection } from './acceptance/raw-connection.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const TTL_MS = 3_600_000;
const WORDS = ['--snapshot-entries', '80', '--log-tail-entries', '5'];

interface Event {
  readonly id: string;
  readonly revision: number;
  readonly type: string;
  readonly name: string;
  readonly request_id: string | null;
}

function eventsIn(text: string): Event[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Event);
}

t.test(
  'every committed event is delivered, whoever was killed, and can be read again',
  async (t) => {
    const nodeWords = () => WORDS;
    const cluster = await Cluster.start({ test: t, nodes: 3, nodeWords });
    const endpoints = cluster.nodeIds.map((nodeId) => cluster.endpoint(nodeId)).join(',');
    const cli = compiledFile('src/cli/main.ts');
    const folder = t.testdir({});
    const [file, checkpoint] = [path.join(folder, 'out.jsonl'), path.join(folder, 'checkpoint')];
    const metrics = path.join(folder, 'audit.prom');
    const send = ['audit', 'send', '--to', file, '--checkpoint', checkpoint, '--timeout', '60s'];
    send.push('--metrics', metrics);
    const consumer = () => {
      const child = spawn(process.execPath, [cli, ...send, '--endpoints', endpoints], {
        stdio: 'ignore',
      });
      t.teardown(() => child.kill('SIGKILL'));
      return child;
    };
    const names: string[] = [];
    const work = async (count: number) => {
      const connection = await RawConnection.open(cluster.endpoint(await cluster.leader()));
      for (let at = 0; at < count; at += 1) {
        const name = `audit/${names.length + 1}`;
        grantIn(await connection.call(acquireOperation(name, name, TTL_MS)));
        names.push(name);
      }
      connection.close();
    };
    const delivered = (): Event[] =>
      fs.existsSync(file) ? eventsIn(fs.readFileSync(file, 'utf8')) : [];
    const deliveredAtLeast = (count: number) =>
      waitFor(`${count} events to be delivered`, async () =>
        delivered().length >= count ? true : null,
      );

    let child = consumer();
    await work(100);
    await deliveredAtLeast(50);
    child.kill('SIGKILL');
    await work(150);
    // The consumer is away; its place is in nobody's memory after this.
    await Promise.all(cluster.nodeIds.map((nodeId) => cluster.kill(nodeId)));
    await Promise.all(cluster.nodeIds.map((nodeId) => cluster.restart(nodeId)));
    const leader = await cluster.leader();
    child = consumer();
    await work(60);
    await cluster.kill(leader);
    await work(60);
    await cluster.restart(leader);
    await cluster.settled();
    await deliveredAtLeast(names.length);
    await waitFor('the metrics to say so', () => {
      return /^holdfast_audit_lag_revisions 0$/m.test(fs.readFileSync(metrics, 'utf8'));
    });
    child.kill('SIGTERM');
    const rows = delivered();
    t.same(
      rows.map((row) => row.revision),
      names.map((_, at) => at + 1),
      'each once, in order, none missing',
    );
    t.same(
      rows.map((row) => [row.name, row.request_id]),
      names.map((name) => [name, name]),
    );
    t.equal(new Set(rows.map((row) => row.id)).size, names.length);

    for (const nodeId of cluster.nodeIds) {
      const words = ['audit', '--json', '--endpoints', cluster.endpoint(nodeId)];
      const text = execFileSync(process.execPath, [cli, ...words], { encoding: 'utf8' });
      t.same(eventsIn(text), rows, `node ${nodeId} tells the same, from its own disk`);
    }
    const { counters } = await cluster.status(leader);
    t.ok((counters['oldest_revision'] ?? 0) > 50, 'the oldest events were in no memory');
    t.equal(counters['oldest_audited_revision'], 1, 'nothing was cut');
  },
);

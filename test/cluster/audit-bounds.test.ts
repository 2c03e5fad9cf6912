/** Readers of the audit stream beyond its bounds: more places than are kept, too many pages. */

import t from 'tap';
import { AUDIT_READS_MAX, HISTORY_CURSORS_MAX } from '../../src/limits.js';
import { ErrorCode } from '../../src/wire/errors.js';
import { CommandKind } from '../../src/wire/request.js';
import { acquireOperation, grantIn } from './acceptance/operations.js';
import { RawConnection } from './acceptance/raw-connection.js';
import { readEvents, readPage } from './audit-pages.js';
import { Cluster } from './harness.js';
import { HttpClient } from './http-client.js';
import { waitFor } from './wait-for.js';

const TTL_MS = 3_600_000;
const EVENTS = 300;
const PAGE_ROWS = 16;
/** Over each way in. */
const READERS = 2 * HISTORY_CURSORS_MAX + 1;
const WAIT_MS = 25_000;

const cluster = await Cluster.start({
  test: t,
  nodes: 1,
  nodeWords: () => ['--snapshot-entries', '40', '--log-tail-entries', '0'],
});
const http = new HttpClient();
t.teardown(() => http.close());
const filler = await RawConnection.open(cluster.endpoint(await cluster.leader()));
for (let at = 1; at <= EVENTS; at += 1) {
  const name = `event/${at}`;
  grantIn(await filler.call(acquireOperation(name, name, TTL_MS)));
}
filler.close();
// What memory had is gone: what lies before the newest snapshot is told from the disk.
await cluster.kill(1);
await cluster.restart(1);
await cluster.leader();
const connection = await RawConnection.open(cluster.endpoint(1));
t.teardown(() => connection.close());
await http.learn(cluster.httpUrl(1));

async function counterOf(name: string): Promise<number> {
  return (await cluster.status(1)).counters[name] ?? -1;
}

/** Revisions from `from` on, a page at a time. */
async function overTcp(from: number): Promise<number[]> {
  const own = await RawConnection.open(cluster.endpoint(1));
  const rows = await readEvents(own, from, PAGE_ROWS);
  own.close();
  return rows.map(({ revision }) => revision);
}

async function overHttp(from: number): Promise<number[]> {
  const revisions: number[] = [];
  for (let next = from; ; ) {
    const url = `${cluster.httpUrl(1)}/v1/audit?revision=${next}&limit=${PAGE_ROWS}`;
    const { status, text, json } = await http.get(url);
    if (status !== 200) throw new Error(`revision ${next}: ${status} ${text}`);
    for (const event of json.events) revisions.push(event.revision);
    if (json.next_revision > json.revision) return revisions;
    next = json.next_revision;
  }
}

t.test('readers at more places than the thread keeps each get every event in order', async (t) => {
  t.ok((await counterOf('oldest_revision')) > 100, 'most are in no memory');
  const starts = Array.from({ length: READERS }, (_, at) => 1 + at * 7);
  const read = await Promise.all([...starts.map(overTcp), ...starts.map(overHttp)]);
  for (const [at, revisions] of read.entries()) {
    const from = starts[at % READERS] ?? 0;
    const wanted = Array.from({ length: EVENTS - from + 1 }, (_, step) => from + step);
    t.strictSame(revisions, wanted, `from revision ${from}`);
  }
  t.equal(await counterOf('audits_compacted'), 0, 'nobody was told that it is gone');
});

t.test('one page more than may be out is OVERLOADED, over TCP and HTTP', async (t) => {
  const waits = Array.from({ length: AUDIT_READS_MAX }, () =>
    connection.call([CommandKind.Audit, null, EVENTS + 1, null, WAIT_MS]),
  );
  await waitFor(
    'every page to wait',
    async () => (await counterOf('audit_reads')) === waits.length,
  );
  const other = await RawConnection.open(cluster.endpoint(1));
  t.teardown(() => other.close());
  for (const from of [EVENTS + 1, 1]) {
    const refused = await other.call([CommandKind.Audit, null, from, null, WAIT_MS]);
    t.equal(refused.code, ErrorCode.Overloaded, `from ${from}`);
    t.ok(refused.retryAfterMs > 0, `come back after ${refused.retryAfterMs} ms`);
    const url = `${cluster.httpUrl(1)}/v1/audit?revision=${from}&wait_ms=1000`;
    const answer = await http.get(url);
    t.equal(answer.status, 429);
    t.match(answer.json.error, { code: 'OVERLOADED', retryable: true, outcome: 'none' });
    t.ok(Number(answer.headers['retry-after']) >= 1);
  }
  const grant = grantIn(await other.call(acquireOperation('last', 'event/last', TTL_MS)));
  t.equal(grant.token, EVENTS + 1, 'locks are not touched');
  const pages = await Promise.all(waits);
  const complete = pages.filter(({ code, fields }) => {
    return code === ErrorCode.Ok && (fields[0] as unknown[]).length === 1;
  });
  t.equal(complete.length, AUDIT_READS_MAX, 'each of those that waited was told the event');
  t.equal((await readPage(other, 1, PAGE_ROWS)).rows.length, PAGE_ROWS, 'there is room again');
});

t.test('pages that wait for a caller who hung up make room', async (t) => {
  const gone = await RawConnection.open(cluster.endpoint(1));
  for (let at = 0; at < AUDIT_READS_MAX; at += 1) {
    gone.request([CommandKind.Audit, null, EVENTS + 2, null, WAIT_MS]);
  }
  await waitFor('every page to wait', async () => {
    return (await counterOf('audit_reads')) === AUDIT_READS_MAX;
  });
  gone.close();
  await waitFor('room', async () => (await counterOf('audit_reads')) === 0);
  t.equal((await readPage(connection, 1, 1)).rows.length, 1);
});

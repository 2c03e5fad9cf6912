import t from 'tap';
import { SimClient } from '../../sim/sim-client.js';
import { SimCluster, type SimNode } from '../../sim/sim-cluster.js';
import { World } from '../../sim/world.js';

const US_PER_MS = 1_000;
const SECOND_US = 1_000_000;
const [GRANTED, ENDED, QUEUED, LEFT] = [1, 2, 3, 4];
const [ACQUIRE, RELEASE, CANCEL] = [36, 38, 39];
const AUDIT = 15;
const COMPACTED = 48;
const TRACE = new Uint8Array(16).fill(9);

/** Places of an audit row. */
const Row = {
  revision: 0,
  kind: 1,
  name: 2,
  token: 3,
  place: 4,
  cause: 5,
  principal: 6,
  time: 7,
  index: 8,
  actor: 9,
  command: 10,
  request: 11,
  session: 12,
  trace: 13,
} as const;
type AuditRow = readonly unknown[];

function ground(seed: number) {
  const world = new World(seed);
  const cluster = new SimCluster(world, { settings: { leaseTtlMsLeast: 50 } });
  world.run(10 * SECOND_US, () => cluster.serving() !== undefined);
  const leader = cluster.serving() as SimNode;
  const actor = new SimClient(cluster, 1);
  const reader = new SimClient(cluster, 2);
  actor.connect(leader);
  const follower = cluster.nodes.find((node) => node !== leader) as SimNode;
  reader.connect(follower);
  const settle = (ms = 200): void => {
    world.run(world.nowUs + ms * US_PER_MS);
  };
  settle();
  const page = (client: SimClient, words: readonly unknown[]) => {
    const correlation = client.send([AUDIT, ...words] as never);
    settle();
    const reply = client.replyTo(correlation);
    return {
      reply,
      rows: (reply?.[4] ?? []) as AuditRow[],
      next: Number(reply?.[5]),
      oldest: Number(reply?.[6]),
      revision: Number(reply?.[7]),
      correlation,
    };
  };
  return { cluster, follower, actor, reader, settle, page };
}

t.test('every event is told with what caused it: command, actor, request, trace', (t) => {
  const { actor, reader, settle, page } = ground(51);
  const acquire = (id: string, name: string, ttl: number, wait = 0) =>
    actor.send([ACQUIRE, id, null, null, TRACE, name, ttl, wait]);
  const held = acquire('first', 'jobs/a', 60_000);
  settle();
  acquire('second', 'jobs/a', 300, 5_000);
  acquire('third', 'jobs/a', 60_000, 5_000);
  settle();
  actor.send([CANCEL, 'c', null, null, null, 'third']);
  settle();
  actor.send([RELEASE, null, null, null, null, actor.replyTo(held)?.[4] as Uint8Array]);
  settle(1_000);
  const { rows, next, oldest, revision } = page(reader, [null, 1]);
  t.same(
    rows.map((row) => [row[Row.kind], row[Row.command], row[Row.request]]),
    [
      [GRANTED, ACQUIRE, 'first'],
      [QUEUED, ACQUIRE, 'second'],
      [QUEUED, ACQUIRE, 'third'],
      [LEFT, CANCEL, 'c'],
      [ENDED, RELEASE, null],
      [GRANTED, RELEASE, null],
      [ENDED, null, null],
    ],
  );
  t.same(rows[0]?.[Row.trace], TRACE);
  t.same(
    rows.map((row) => row[Row.actor]),
    [1, 1, 1, 1, 1, 1, 0],
    'nobody asked for the expiry: the cluster did it',
  );
  t.equal(rows[5]?.[Row.place], rows[1]?.[Row.revision], 'place leads to the request that waited');
  t.same([next, oldest, revision], [8, 1, 7]);
  t.end();
});

t.test('page after page by prefix is the whole, the same on every node', (t) => {
  const { cluster, actor, reader, settle, page } = ground(52);
  for (let at = 0; at < 40; at += 1) {
    actor.send([ACQUIRE, `r-${at}`, null, null, null, `${at % 2 ? 'odd' : 'even'}/${at}`, 60_000]);
  }
  settle(500);
  const whole = page(reader, ['odd/', 1]).rows;
  t.equal(whole.length, 20);
  t.ok(whole.every((row) => String(row[Row.name]).startsWith('odd/')));
  for (const node of cluster.nodes) {
    const client = new SimClient(cluster, 10 + node.nodeId);
    client.connect(node);
    settle(5);
    const rows: AuditRow[] = [];
    for (let from = 1; ; ) {
      const { rows: part, next, revision } = page(client, ['odd/', from, 7]);
      rows.push(...part);
      t.ok(part.length <= 7);
      if (next > revision) break;
      from = next;
    }
    t.same(rows, whole, `node ${node.nodeId}`);
  }
  t.end();
});

t.test('a page waits for its first event, and is empty when none comes in time', (t) => {
  const { actor, reader, settle, page } = ground(53);
  const waits = page(reader, ['jobs/', null, null, 5_000]);
  t.equal(waits.reply, undefined, 'nothing yet');
  actor.send([ACQUIRE, 'other', null, null, null, 'elsewhere', 60_000]);
  settle();
  t.equal(reader.replyTo(waits.correlation), undefined, 'another prefix is not waited for');
  actor.send([ACQUIRE, 'wanted', null, null, null, 'jobs/x', 60_000]);
  settle();
  const rows = reader.replyTo(waits.correlation)?.[4] as AuditRow[];
  t.same(
    rows.map((row) => [row[Row.name], row[Row.request]]),
    [['jobs/x', 'wanted']],
  );
  const none = page(reader, ['jobs/', null, null, 100]);
  t.same([none.rows, none.next], [[], 3], 'empty, and it goes on behind what was looked at');
  t.end();
});

t.test(
  'without a history, what has left memory is COMPACTED, with the oldest that is there',
  (t) => {
    const { follower, actor, reader, settle, page } = ground(54);
    actor.send([ACQUIRE, 'old', null, null, null, 'a', 60_000]);
    settle();
    // As after an install: what came before the present is not known here.
    const { events } = Reflect.get(follower.replica as object, 'state') as {
      events: { next: number; begin(revision: number): void };
    };
    events.begin(events.next);
    const { reply } = page(reader, [null, 1]);
    t.equal(reply?.[1], COMPACTED);
    t.end();
  },
);

t.test('what is no request for a page is refused by its field', (t) => {
  const { reader, page } = ground(55);
  const BAD_REQUEST = 23;
  for (const [words, field] of [
    [['a\n'], 'prefix'],
    [[null, 0], 'revision'],
    [[null, 1, 0], 'limit'],
    [[null, 1, 513], 'limit'],
    [[null, 1, null, 30_001], 'wait_ms'],
    [[null, 1, null, null, 1], 'fields'],
  ] as const) {
    const { reply } = page(reader, words);
    t.equal(reply?.[1], BAD_REQUEST, JSON.stringify(words));
    t.ok(reply?.includes(field), `${JSON.stringify(reply)} names ${field}`);
  }
  t.end();
});

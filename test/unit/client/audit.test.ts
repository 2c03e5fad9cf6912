/** client.audit(): pages, checkpoints, lost nodes, and history that is gone. */

import t from 'tap';
import type { AuditPage } from '../../../src/client/index.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { CommandKind } from '../../../src/wire/request.js';
import { FakeClock } from './fake-clock.js';
import { FakeCluster, type Interference, refusal } from './fake-cluster.js';
import type { FakeRequest } from './fake-network.js';
import { advanced, connectedTo, rejected } from './ground.js';

const GRANTED = 1;

function rowOf(revision: number, name: string): PackValue[] {
  const cause = [7, 1, CommandKind.Acquire, `r-${revision}`, null, new Uint8Array(16).fill(9)];
  return [revision, GRANTED, name, revision, 0, 0, 1, 1_000 + revision, ...cause];
}

/** Nodes that have the events `oldest` … `newest`, named by their revision. */
class FakeHistory {
  oldest = 1;
  newest = 0;
  /** Nodes that were asked for a page, in order. */
  readonly asked: number[] = [];

  constructor(readonly cluster: FakeCluster) {
    cluster.interfere = (request, nodeId) => this.answer(request, nodeId);
  }

  answer(request: FakeRequest, nodeId: number): Interference | undefined {
    if (request.command !== CommandKind.Audit) return undefined;
    this.asked.push(nodeId);
    const [, prefix, from, limit, waitMs] = request.elements;
    const first = from === null ? this.newest + 1 : Number(from);
    if (first < this.oldest) {
      return { reply: refusal(ErrorCode.Compacted, [this.oldest, this.newest]) };
    }
    if (first > this.newest && Number(waitMs) > 0) return { delayMs: Number(waitMs) };
    return { reply: this.page(first, String(prefix), Number(limit)) };
  }

  page(first: number, prefix: string, limit: number) {
    const rows: PackValue[][] = [];
    let next = first;
    while (next <= this.newest && rows.length < limit) {
      const name = next % 2 === 0 ? `even/${next}` : `odd/${next}`;
      if (name.startsWith(prefix)) rows.push(rowOf(next, name));
      next += 1;
    }
    const { oldest, newest, cluster } = this;
    return cluster.ok([rows, next, oldest, newest, cluster.clusterId]);
  }
}

async function ground() {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  const client = await connectedTo(clock, cluster);
  const history = new FakeHistory(cluster);
  const close = (): Promise<void> => advanced(clock, client.close());
  return { clock, cluster, client, history, close };
}

async function taken(pages: AsyncIterable<AuditPage>): Promise<AuditPage[]> {
  const all: AuditPage[] = [];
  for await (const page of pages) all.push(page);
  return all;
}

function revisionsIn(pages: readonly AuditPage[]): number[] {
  return pages.flatMap(({ events }) => events.map(({ revision }) => revision));
}

t.test('what is kept is told in pages, each with the place behind it', async (t) => {
  const { clock, client, history, close } = await ground();
  [history.oldest, history.newest] = [3, 10];
  const reading = taken(client.audit({ from: 'oldest', follows: false, pageSize: 3 }));
  const pages = await advanced(clock, reading);
  t.same(revisionsIn(pages), [3, 4, 5, 6, 7, 8, 9, 10]);
  t.same(
    pages.map(({ checkpoint }) => checkpoint.nextRevision),
    [6, 9, 11],
  );
  const clusterId = '07'.repeat(16);
  t.match(pages[0], { oldestRevision: 3, revision: 10, checkpoint: { clusterId, prefix: '' } });
  t.same(pages[0]?.events[0], {
    id: `${clusterId}-3`,
    schema: 1,
    type: 'granted',
    revision: 3,
    name: 'odd/3',
    token: 3,
    place: 0,
    cause: null,
    principal: 1,
    clusterTimeMs: 1_003,
    logIndex: 7,
    actor: 1,
    command: 'acquire',
    requestId: 'r-3',
    sequence: null,
    sessionId: null,
    traceId: '09'.repeat(16),
    reason: null,
  });
  await close();
});

t.test('a checkpoint goes on exactly there, with its prefix, also as JSON', async (t) => {
  const { clock, client, history, close } = await ground();
  history.newest = 6;
  const options = { from: 1, prefix: 'even/', follows: false, pageSize: 2 } as const;
  const [first] = await advanced(clock, taken(client.audit(options)));
  t.same(revisionsIn(first ? [first] : []), [2, 4]);
  history.newest = 9;
  const checkpoint = JSON.parse(JSON.stringify(first?.checkpoint));
  const rest = await advanced(clock, taken(client.audit({ checkpoint, follows: false })));
  t.same(revisionsIn(rest), [6, 8]);
  const other = { ...checkpoint, clusterId: 'ff'.repeat(16) };
  const error = await rejected(
    advanced(clock, taken(client.audit({ checkpoint: other, follows: false }))),
    'BAD_REQUEST',
  );
  t.match(error.message, /the checkpoint is of cluster ff/);
  await close();
});

t.test('a stream goes on over lost and silent nodes: nothing missing, nothing twice', async (t) => {
  const { clock, cluster, client, history, close } = await ground();
  history.newest = 4;
  const stop = new AbortController();
  const pages: AuditPage[] = [];
  const reading = (async () => {
    for await (const page of client.audit({ from: 1, pageSize: 2, signal: stop.signal })) {
      pages.push(page);
    }
  })();
  await clock.until(() => revisionsIn(pages).length === 4, 1_000);
  const [first = 0] = history.asked;
  t.not(first, 1, 'not the leader, while another answers');
  cluster.network.down.add(cluster.address(first));
  cluster.network.reset(cluster.address(first));
  history.newest = 7;
  await clock.until(() => revisionsIn(pages).length === 7, 5_000);
  const second = history.asked.at(-1) ?? 0;
  t.not(second, first);
  cluster.network.blackHole(cluster.address(second));
  history.newest = 8;
  await clock.until(() => revisionsIn(pages).length === 8, 30_000);
  t.same(revisionsIn(pages), [1, 2, 3, 4, 5, 6, 7, 8]);
  stop.abort();
  await advanced(clock, reading);
  await close();
  t.equal(cluster.network.wires.size, 0);
  t.equal(clock.timers, 0);
});

t.test(
  'COMPACTED when every node has cut it, with the oldest; one that has it is found',
  async (t) => {
    const { clock, client, history, close } = await ground();
    [history.oldest, history.newest] = [5, 6];
    const error = await rejected(
      advanced(clock, taken(client.audit({ from: 2, follows: false }))),
      'COMPACTED',
    );
    t.equal(error.details.oldestRevision, 5);
    t.same(new Set(history.asked).size, 3, 'all were asked');
    const { answer } = history;
    history.answer = (request, nodeId) => {
      history.oldest = nodeId === 1 ? 1 : 5;
      return answer.call(history, request, nodeId);
    };
    const pages = await advanced(clock, taken(client.audit({ from: 2, follows: false })));
    t.same(revisionsIn(pages), [2, 3, 4, 5, 6]);
    await close();
  },
);

t.test('one that is away may have it: it is waited for, not for ever', async (t) => {
  const { clock, cluster, client, history, close } = await ground();
  [history.oldest, history.newest] = [5, 6];
  cluster.network.down.add(cluster.address(3));
  cluster.network.reset(cluster.address(3));
  const began = clock.nowMs();
  await rejected(advanced(clock, taken(client.audit({ from: 2 }))), 'COMPACTED');
  t.ok(clock.nowMs() - began >= 10_000);
  await close();
});

t.test('no node: for ever, or until the deadline', async (t) => {
  const { clock, cluster, client, close } = await ground();
  for (const endpoint of cluster.endpoints) {
    cluster.network.down.add(endpoint);
    cluster.network.reset(endpoint);
  }
  const reading = taken(client.audit({ from: 1, deadlineMs: 3_000 }));
  const began = clock.nowMs();
  const error = await rejected(advanced(clock, reading), 'NO_QUORUM');
  t.match(error.message, /no node gave a page within 3000 ms/);
  t.ok(clock.nowMs() - began < 5_000);
  const patient = taken(client.audit({ from: 1 }));
  let isOver = false;
  const mark = (): void => {
    isOver = true;
  };
  patient.then(mark, mark);
  await clock.advance(120_000);
  t.equal(isOver, false);
  await close();
  await rejected(patient, 'SHUTTING_DOWN');
  t.equal(clock.timers, 0);
});

t.test('what cannot be read, and what no node lifts', async (t) => {
  const { clock, cluster, client, history, close } = await ground();
  history.newest = 2;
  let isBroken = true;
  const { answer } = history;
  history.answer = (request, nodeId) => {
    if (request.command !== CommandKind.Audit || !isBroken) {
      return answer.call(history, request, nodeId);
    }
    isBroken = false;
    return { reply: cluster.ok([[], 'three', 1, 2, cluster.clusterId]) };
  };
  const pages = await advanced(clock, taken(client.audit({ from: 1, follows: false })));
  t.same(revisionsIn(pages), [1, 2], 'another node was asked');
  history.answer = () => ({ reply: refusal(ErrorCode.Forbidden) });
  await rejected(advanced(clock, taken(client.audit({ from: 1 }))), 'FORBIDDEN');
  await close();
});

t.test('options are checked before anything is sent', async (t) => {
  const { client, history, close } = await ground();
  const checkpoint = { clusterId: 'ab', nextRevision: 1, prefix: '' };
  const cases: readonly unknown[] = [
    { from: 0 },
    { from: 'newest' },
    { pageSize: 513 },
    { pageSize: 0 },
    { deadlineMs: 0 },
    { checkpoint, from: 1 },
    { checkpoint, prefix: 'a' },
    { checkpoint: { ...checkpoint, nextRevision: 0 } },
    { checkpoint: {} },
    { checkpoint: null },
    { follow: true },
  ];
  for (const options of cases) {
    t.throws(
      () => client.audit(options as never),
      { code: 'BAD_REQUEST' },
      JSON.stringify(options),
    );
  }
  t.equal(history.asked.length, 0);
  await close();
  const after = taken(client.audit());
  await rejected(after, 'SHUTTING_DOWN');
});

/** A small disk that fills up under a node with history: what gives way, ends, and is told. */

import t, { type Test } from 'tap';
import { LOG_FREE_BYTES_MIN } from '../../../src/limits.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { CommandKind } from '../../../src/wire/request.js';
import { SmallDisk } from '../../chaos/small-disk.js';
import { readEvents } from '../audit-pages.js';
import { Cluster } from '../harness.js';
import { LeaderCaller } from '../leader-caller.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import { acquireOperation, type Grant, grantIn, renewOperation } from './operations.js';
import { RawConnection } from './raw-connection.js';
import { isFull, sized } from './size.js';

const MIB = 1 << 20;
const TTL_MS = 3_600_000;
const NODES = 3;
const SMALL = NODES;
/** In small the log reaches back over the time in which the node is down. */
const SNAPSHOT_ENTRIES = sized('400', '20');
const WORDS = ['--snapshot-entries', SNAPSHOT_ENTRIES, '--log-tail-entries', SNAPSHOT_ENTRIES];
/** Renewals with a KiB of metadata that are out at once: one entry has hundreds of them. */
const RENEWALS_AT_ONCE = 500;
/** History beyond this cannot stay on a disk with so little left. */
const HISTORY_BYTES_LEAST = 90 * MIB;
const LEFT_BYTES = LOG_FREE_BYTES_MIN + 20 * MIB;

let disk: SmallDisk | string = 'not mounted';
const cluster = await Cluster.start({
  test: t,
  nodes: NODES,
  settings: { resultRetentionMs: TTL_MS },
  nodeWords: () => WORDS,
  prepareFolder: (nodeId, folder) => {
    if (nodeId === SMALL) disk = SmallDisk.mount(folder);
  },
});
// Before the folder is removed: a mount point cannot be.
t.teardown(() => {
  if (typeof disk !== 'string') disk.unmount();
});
const skip = typeof disk === 'string' ? `not permitted here: ${disk}` : false;
/** So much log takes its time. */
const skipHistory = isFull ? skip : 'only in full size';
const small = disk as unknown as SmallDisk;
const grants: Grant[] = [];
const caller = new LeaderCaller(cluster);

/** The entries of one round are of hundreds of renewals, about half a MiB. */
async function renewAll(): Promise<void> {
  const metadata = new Uint8Array(1_024).fill(0x6d);
  const { leaseId } = grants[0] as Grant;
  const operation: PackValue[] = [...renewOperation(leaseId), null, metadata];
  const renewals = Array.from({ length: RENEWALS_AT_ONCE }, () => caller.call(operation));
  for (const { code } of await Promise.all(renewals)) {
    if (code !== ErrorCode.Ok) throw new Error(`a renewal was answered ${code}`);
  }
}

async function acquire(): Promise<void> {
  const name = `disk/${grants.length}`;
  grants.push(grantIn(await caller.call(acquireOperation(name, name, TTL_MS))));
}

async function counterOf(name: string): Promise<number> {
  return (await cluster.status(SMALL)).counters[name] ?? -1;
}

async function gauge(name: string): Promise<number> {
  const text = await (await fetch(`${cluster.httpUrl(SMALL)}/metrics`)).text();
  return Number(new RegExp(`^holdfast_${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
}

t.test(
  'history gives way to a disk that fills up, and says from where it goes',
  { skip: skipHistory },
  async (t) => {
    await acquire();
    let bytes = 0;
    for (let round = 0; bytes < HISTORY_BYTES_LEAST; round += 1) {
      if (round % 10 === 0) await acquire();
      await renewAll();
      bytes = await gauge('history_bytes');
    }
    figure(t, 'MiB of history', Math.round(bytes / MIB));
    t.equal(await counterOf('oldest_audited_revision'), 1, 'all of it is there');
    small.fill(LEFT_BYTES);
    await waitFor('history to be cut', async () => {
      await renewAll();
      return (await gauge('history_bytes')) < LEFT_BYTES;
    });
    figure(t, 'MiB of history left', Math.round((await gauge('history_bytes')) / MIB));
    t.ok(cluster.runningIds.includes(SMALL), 'the node serves on');
    t.equal(await counterOf('snapshots_failed'), 0);
  },
);

t.test('what was cut is COMPACTED here, others have it', { skip: skipHistory }, async (t) => {
  await cluster.kill(SMALL);
  await cluster.restart(SMALL);
  await cluster.settled(60_000);
  const oldest = await counterOf('oldest_audited_revision');
  t.ok(oldest > 1, `the oldest is ${oldest}`);
  const own = await RawConnection.open(cluster.endpoint(SMALL));
  const early = await own.call([CommandKind.Audit, null, 1]);
  t.equal(early.code, ErrorCode.Compacted);
  const rows = await readEvents(own, oldest);
  const tokens = grants.map(({ token }) => token);
  const kept = tokens.filter((token) => token >= oldest);
  t.same(
    rows.map(({ revision }) => revision),
    kept,
    'what is left is whole',
  );
  own.close();
  const other = await RawConnection.open(cluster.endpoint(1));
  const all = await readEvents(other, 1);
  t.same(
    all.map(({ revision }) => revision),
    tokens,
  );
  other.close();
});

t.test(
  'below its bound the node ends, says so, and comes back when there is room',
  { skip },
  async (t) => {
    if ((await cluster.leader()) === SMALL) await makeAnotherLead();
    await acquire();
    await cluster.settled(60_000);
    small.fill();
    const other = cluster.nodeIds.find((nodeId) => nodeId !== SMALL) ?? 0;
    const fullAtMs = performance.now();
    await acquire();
    await cluster.ended(SMALL);
    figure(t, 'full to ended', `${Math.round(performance.now() - fullAtMs)} ms`);
    t.equal(cluster.lastEnd(SMALL), 'SIGKILL');
    t.match(cluster.output(SMALL), /the log has failed; this node ends/);
    t.match(cluster.output(SMALL), /the log stops below 67108864 bytes/);
    await acquire();
    const revision = grants.at(-1)?.revision;
    await waitFor('the others to go on', async () => {
      return (await cluster.status(other)).revision === revision;
    });

    cluster.launchOnly(SMALL);
    const end = await cluster.ended(SMALL);
    t.not(end, 'status 0', `started on the full disk it ends again: ${end}`);
    small.empty();
    await cluster.restart(SMALL);
    const statuses = await cluster.settled(60_000);
    t.equal(new Set(statuses.map(({ digest }) => digest)).size, 1);
    if (!isFull) await demandHistory(t);
    caller.close();
  },
);

/** It has every event, the newest too: it was sent entries, and no snapshot. */
async function demandHistory(t: Test): Promise<void> {
  t.equal(await counterOf('snapshots_installed'), 0);
  const own = await RawConnection.open(cluster.endpoint(SMALL));
  const rows = await readEvents(own, 1);
  t.same(
    rows.map(({ revision }) => revision),
    grants.map(({ token }) => token),
    'its history is whole',
  );
  own.close();
}

async function makeAnotherLead(): Promise<void> {
  await cluster.kill(SMALL);
  await cluster.leaderOtherThan(SMALL);
  await cluster.restart(SMALL);
  await cluster.settled(60_000);
}

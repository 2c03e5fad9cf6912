/** Replies that were lost, asked for again after snapshots and a restart of everybody (I6). */

import t, { type Test } from 'tap';
import { ErrorCode } from '../../../src/wire/errors.js';
import { FRAME_HEADER_BYTES, frameBytesAt } from '../../../src/wire/frame.js';
import { FrameAssembler } from '../../../src/wire/frame-assembler.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { CommandKind } from '../../../src/wire/request.js';
import { decodeReplies, type Reply } from '../../../src/wire/response.js';
import { EntryDriver } from '../entry-driver.js';
import { Cluster } from '../harness.js';
import { LeaderCaller } from '../leader-caller.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import { acquireOperation, type Grant, grantIn } from './operations.js';
import { endpointOf, RawConnection } from './raw-connection.js';
import { Relay } from './relay.js';

const TTL_MS = 3_600_000;
/** Half of them in a session, by sequences, half by ids of their own. */
const ASKED = 1_000;
const SNAPSHOTS = 3;
const SNAPSHOT_ENTRIES = 100;
const WORDS = ['--snapshot-entries', String(SNAPSHOT_ENTRIES), '--log-tail-entries', '10'];

const cluster = await Cluster.start({
  test: t,
  settings: { resultRetentionMs: TTL_MS },
  nodeWords: () => WORDS,
});

interface Session {
  /** The names of its round. */
  readonly prefix: string;
  readonly id: Uint8Array;
  readonly secret: Uint8Array;
}

function bytesIn(reply: Reply, at: number): Uint8Array {
  const value = reply.fields[at];
  if (value instanceof Uint8Array) return value;
  throw new Error(`field ${at} of a reply with code ${reply.code} is ${String(value)}`);
}

async function openSession(connection: RawConnection, prefix: string): Promise<Session> {
  const words = [CommandKind.SessionOpen, `session of ${prefix}`, null, null, null, TTL_MS];
  const reply = await connection.call(words);
  return { prefix, id: bytesIn(reply, 0), secret: bytesIn(reply, 1) };
}

/** The acquires, each of a lock of its own. */
function operations({ prefix, id }: Session): PackValue[][] {
  return Array.from({ length: ASKED }, (_, at) => {
    const name = `${prefix}/${at}`;
    if (at % 2 === 0) return acquireOperation(name, name, TTL_MS);
    const sequence = (at + 1) / 2;
    return [CommandKind.Acquire, sequence, id, null, null, name, TTL_MS];
  });
}

/** The replies in what a relay has swallowed, which begins with a frame. */
function repliesIn(lost: readonly Buffer[]): Reply[] {
  const assembler = new FrameAssembler(frameBytesAt);
  const replies: Reply[] = [];
  for (const bytes of lost) {
    assembler.push(Uint8Array.from(bytes));
    while (assembler.next()) {
      const start = assembler.frameStart + FRAME_HEADER_BYTES;
      replies.push(...(decodeReplies(assembler.bytes, start, assembler.frameEnd) ?? []));
    }
  }
  return replies;
}

/** What was asked, and what the leader had said to it, in order. */
interface Lost {
  readonly session: Session;
  readonly said: Grant[];
}

/** Sends every acquire and loses every reply; null when the node leads no more. */
async function loseReplies(t: Test, prefix: string): Promise<Lost | null> {
  const leader = await cluster.leader(60_000);
  const relay = await Relay.start(endpointOf(cluster.endpoint(leader)));
  t.teardown(() => relay.close());
  const connection = await RawConnection.open(relay.endpoint);
  const session = await openSession(connection, prefix);
  relay.swallow();
  const requests = operations(session).map((operation) => connection.request(operation));
  await waitFor('every reply to be swallowed', () => repliesIn(relay.lost).length >= ASKED, 60_000);
  relay.close();
  const outcomes = await Promise.allSettled(requests.map(({ final }) => final));
  const heard = outcomes.filter(({ status }) => status === 'fulfilled');
  t.equal(heard.length, 0, 'the caller heard nothing');
  const replies = repliesIn(relay.lost);
  if (replies.some(({ code }) => code !== ErrorCode.Ok)) return null;
  t.equal(new Set(replies.map(({ correlation }) => correlation)).size, ASKED, 'and missed all');
  replies.sort((left, right) => left.correlation - right.correlation);
  return { session, said: replies.map(grantIn) };
}

async function demandSnapshots(): Promise<void> {
  const driver = await EntryDriver.open(cluster, 'entries');
  for (const nodeId of cluster.nodeIds) {
    await driver.giveUntil(`${SNAPSHOTS} snapshots of node ${nodeId}`, async () => {
      const { counters } = await cluster.status(nodeId);
      return (counters['snapshots_taken'] ?? 0) >= SNAPSHOTS;
    });
  }
  driver.close();
}

async function restartAll(t: Test): Promise<void> {
  const said = cluster.nodeIds.map((nodeId) => cluster.output(nodeId).length);
  await Promise.all(cluster.nodeIds.map((nodeId) => cluster.kill(nodeId)));
  const startedMs = performance.now();
  await Promise.all(cluster.nodeIds.map((nodeId) => cluster.restart(nodeId)));
  await cluster.leader(60_000);
  figure(t, 'killed to served again', `${Math.round(performance.now() - startedMs)} ms`);
  for (const [at, nodeId] of cluster.nodeIds.entries()) {
    const text = cluster.output(nodeId).slice(said[at]);
    t.match(text, /restored a snapshot/, `node ${nodeId} started from a snapshot`);
  }
}

/** Attaches the session and asks for everything; null when the node does not lead any more. */
async function askAgain(session: Session): Promise<Reply[] | null> {
  const connection = await RawConnection.open(cluster.endpoint(await cluster.leader()));
  const attach = [CommandKind.SessionAttach, session.id, session.secret];
  const attached = await connection.call(attach);
  const calls = operations(session).map((operation) => connection.call(operation));
  const replies = await Promise.all(calls);
  connection.close();
  const isAnswered = [attached, ...replies].every(({ code }) => code === ErrorCode.Ok);
  return isAnswered ? replies : null;
}

t.test('1,000 lost replies are the same three snapshots and a restart later', async (t) => {
  let round = 0;
  const { session, said } = await waitFor('a leader that stays', () => {
    round += 1;
    return loseReplies(t, `late-${round}`);
  });
  t.equal(new Set(said.map(({ token }) => token)).size, ASKED, 'each has its token');
  await demandSnapshots();
  await restartAll(t);
  const [before] = await cluster.settled(60_000);

  const startedMs = performance.now();
  const replies = await waitFor('a leader that stays', () => askAgain(session), 90_000);
  figure(t, `${ASKED} retries`, `${Math.round(performance.now() - startedMs)} ms`);
  t.strictSame(replies.map(grantIn), said, 'same leases, same tokens');
  t.ok(
    replies.every(({ isReplay }) => isReplay),
    'all of them told as replays',
  );
  const [after] = await cluster.settled(60_000);
  t.equal(after?.revision, before?.revision, 'nothing was granted again');

  const caller = new LeaderCaller(cluster);
  const next = await caller.call(acquireOperation('next', 'next', TTL_MS));
  const highest = Math.max(...said.map(({ token }) => token));
  t.ok(grantIn(next).token > highest, 'tokens go on rising');
  const stolen = await caller.call(acquireOperation('thief', `${session.prefix}/0`, TTL_MS));
  t.equal(stolen.code, ErrorCode.LockBusy, 'the leases are held');
  caller.close();
});

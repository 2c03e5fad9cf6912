import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { connect } from '../../../src/client/index.js';
import { Prng } from '../../../src/collections/prng.js';
import { FRAME_TIMEOUT_MS, PEER_CONNECTIONS_MAX } from '../../../src/limits.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { CommandKind } from '../../../src/wire/request.js';
import { decodeReplies } from '../../../src/wire/response.js';
import { frameOf, RawClient } from '../../unit/io/raw-client.js';
import { Cluster } from '../harness.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import {
  helloBody,
  impossibleBodies,
  randomBytes,
  wrongOperations,
} from './hostile-client-bytes.js';
import { askFrame, impossiblePeerFrames, refusedPeerFrames } from './hostile-peer-bytes.js';
import { Probe } from './probe.js';
import { endpointOf } from './raw-connection.js';
import { isFull, pass, sized } from './size.js';

const SEED = Number(process.env['HOLDFAST_SEED'] ?? 20_261_129);
const RANDOM_CONNECTIONS = sized(50, 2_000);
const SLOW_CONNECTIONS = sized(50, 250);
/** Locks of 1 KiB each, so that a list of them is long. */
const LOCKS = 100;
/** Small requests with replies that are not small. */
const GREEDY: readonly [what: string, command: number, count: number][] = [
  ['statuses', CommandKind.Status, sized(20_000, 1_000_000)],
  ['lists', CommandKind.List, sized(4_000, 40_000)],
];
const GREEDY_MS = sized(1_500, 10_000);
/** Full out buffers, and a young generation as large as the nodes' flags let it grow. */
const GROWTH_MIB_MAX = 256;

const prng = new Prng(SEED);
t.comment(`HOLDFAST_SEED=${SEED}`);
const cluster = await Cluster.start({ test: t });
const leader = await cluster.leader(60_000);
const follower = cluster.nodeIds.find((nodeId) => nodeId !== leader) ?? 0;
const targets = [leader, follower];
const pids = cluster.nodeIds.map((nodeId) => cluster.pid(nodeId));
const client = await connect({ endpoints: cluster.endpoints, deadlineMs: 60_000 });
t.teardown(() => client.close());
const locks = Array.from({ length: LOCKS }, (_, at) => {
  const options = { ttlMs: 3_600_000, deadlineMs: 60_000, metadata: 'm'.repeat(1_024) };
  return client.acquire(`hostile/${at}`, options);
});
await Promise.all(locks);
const probe = await Probe.start(cluster.endpoints);
t.teardown(() => probe.stop());
const startedAt = performance.now();

function clientPort(nodeId: number): number {
  return endpointOf(cluster.endpoint(nodeId)).port;
}

function peerPort(nodeId: number): number {
  return endpointOf(cluster.peerEndpoint(nodeId)).port;
}

/** Resident bytes of a node's process. */
function residentBytes(nodeId: number): number {
  const status = readFileSync(`/proc/${cluster.pid(nodeId)}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1_024;
}

/** Codes of the replies in what a node sent. */
function codesIn(received: Buffer): number[] {
  const codes: number[] = [];
  for (let at = 0; at + 4 <= received.length; ) {
    const end = at + 4 + received.readUInt32BE(at);
    for (const reply of decodeReplies(received, at + 4, end) ?? []) codes.push(reply.code);
    at = end;
  }
  return codes;
}

/** The most resident bytes of a node while some time passes. */
async function peakBytes(nodeId: number, ms: number): Promise<number> {
  const untilMs = performance.now() + ms;
  let peak = 0;
  while (performance.now() < untilMs) {
    peak = Math.max(peak, residentBytes(nodeId));
    await pass(10);
  }
  return peak;
}

/** The nodes are the same processes, and others are served after what was just done. */
async function othersAreServed(t: Test): Promise<void> {
  await probe.serviceSince(performance.now(), 4);
  t.strictSame(
    cluster.nodeIds.map((nodeId) => cluster.pid(nodeId)),
    pids,
    'every node is up, and others are served',
  );
}

for (const nodeId of targets) {
  const who = nodeId === leader ? 'leader' : 'follower';

  t.test(`client port of the ${who}: random bytes`, async (t) => {
    const strangers: RawClient[] = [];
    for (let number = 0; number < RANDOM_CONNECTIONS; number += 1) {
      const stranger = new RawClient(t, clientPort(nodeId));
      stranger.send(randomBytes(prng, 1 + prng.below(8_192)));
      strangers.push(stranger);
      if (number % 50 === 49) await pass(1);
    }
    await othersAreServed(t);
    // What began as the start of a long frame waits for its rest; we do not.
    for (const stranger of strangers) stranger.socket.destroy();
  });

  t.test(`client port of the ${who}: impossible lengths and bombs`, async (t) => {
    const lengths = [0, 2 ** 32 - 1, (1 << 20) + 1];
    for (const length of lengths) {
      const stranger = new RawClient(t, clientPort(nodeId));
      const bytes = Buffer.alloc(64);
      bytes.writeUInt32BE(length);
      stranger.send(bytes);
      const code = length === 0 ? ErrorCode.BadRequest : ErrorCode.TooLarge;
      t.strictSame(codesIn(await stranger.ended()), [code], `length ${length}: told and closed`);
    }
    for (const [name, body] of impossibleBodies()) {
      const stranger = new RawClient(t, clientPort(nodeId));
      stranger.send(frameOf(body));
      const codes = codesIn(await stranger.ended());
      // What came before the fault may have been answered; the fault is the last thing told.
      const last = codes.at(-1) ?? 0;
      t.ok(last >= ErrorCode.LockBusy, `${name}: refused with ${last} and closed`);
    }
    await othersAreServed(t);
  });

  t.test(`client port of the ${who}: wrong operations leave the connection`, async (t) => {
    for (const [name, body] of wrongOperations()) {
      const stranger = new RawClient(t, clientPort(nodeId));
      stranger.send(frameOf(helloBody()));
      stranger.send(frameOf(body));
      stranger.send(frameOf(helloBody()));
      await waitFor(`three replies to ${name}`, () => codesIn(stranger.received).length === 3);
      const codes = codesIn(stranger.received);
      const refusals = codes.filter((code) => code >= ErrorCode.LockBusy);
      t.equal(refusals.length, 1, `${name}: refused with ${refusals}, the connection stays`);
      stranger.socket.destroy();
    }
    await othersAreServed(t);
  });

  t.test(`client port of the ${who}: one byte at a time`, async (t) => {
    const stranger = new RawClient(t, clientPort(nodeId));
    for (const byte of Buffer.concat([frameOf(helloBody()), frameOf(helloBody())])) {
      stranger.send(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await waitFor('both replies', () => codesIn(stranger.received).length === 2);
    t.strictSame(codesIn(stranger.received), [ErrorCode.Ok, ErrorCode.Ok]);
  });

  for (const [what, command, count] of GREEDY) {
    t.test(`client port of the ${who}: ${what} that nobody reads`, async (t) => {
      const before = residentBytes(nodeId);
      const stranger = new RawClient(t, clientPort(nodeId));
      stranger.send(frameOf(helloBody()));
      await stranger.bytes(1);
      stranger.socket.pause();
      const ask = frameOf(Buffer.from([0x93, 1, 0, 0x93, 1, 0xc0, 0x91, command]));
      stranger.send(Buffer.concat(Array.from({ length: count }, () => ask)));
      const peak = await peakBytes(nodeId, GREEDY_MS);
      await othersAreServed(t);
      const growth = Math.round((peak - before) / 2 ** 20);
      figure(t, `memory for ${count} ${what} that nobody reads, ${who}`, `${growth} MiB`);
      t.ok(growth <= GROWTH_MIB_MAX, 'the memory for it is bounded');
      stranger.socket.destroy();
      await othersAreServed(t);
    });
  }

  t.test(`peer port of the ${who}: impossible frames`, async (t) => {
    for (const [name, frame] of impossiblePeerFrames(prng)) {
      const stranger = new RawClient(t, peerPort(nodeId));
      stranger.send(frame);
      await stranger.ended();
      t.pass(`${name}: closed`);
    }
    for (const [name, frame] of refusedPeerFrames(prng)) {
      const stranger = new RawClient(t, peerPort(nodeId));
      stranger.send(frame);
      const answer = await stranger.bytes(1);
      t.ok(answer.includes(0xc2), `${name}: not stored`);
      stranger.socket.destroy();
    }
    const asking = new RawClient(t, peerPort(nodeId));
    for (const byte of askFrame()) {
      asking.send(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await asking.bytes(1);
    t.pass('a question that comes byte by byte is answered');
    await othersAreServed(t);
  });

  t.test(`peer port of the ${who}: random bytes and silence`, async (t) => {
    for (let number = 0; number < RANDOM_CONNECTIONS; number += 1) {
      const stranger = new RawClient(t, peerPort(nodeId));
      stranger.send(randomBytes(prng, 1 + prng.below(8_192)));
      if (number % 16 === 15) await pass(1);
    }
    const silent = Array.from({ length: PEER_CONNECTIONS_MAX + 8 }, () => {
      return new RawClient(t, peerPort(nodeId));
    });
    await othersAreServed(t);
    await waitFor('the silent to be thrown out', () => silent.every(({ isEnded }) => isEnded));
  });
}

t.test('slow senders are served nothing, and keep nobody from being served', async (t) => {
  const slow = targets.flatMap((nodeId) =>
    Array.from({ length: SLOW_CONNECTIONS }, () => new RawClient(t, clientPort(nodeId))),
  );
  // A length of 1,024 first, then one byte after the other of a body that never ends.
  for (const stranger of slow) stranger.send(Buffer.from([0, 0, 4, 0]));
  const untilMs = performance.now() + sized(2_000, 2 * FRAME_TIMEOUT_MS);
  const living = (): RawClient[] => slow.filter(({ isEnded }) => !isEnded);
  while (performance.now() < untilMs && living().length > 0) {
    for (const stranger of living()) stranger.send(Buffer.from([0x90]));
    await pass(sized(100, 1_000));
  }
  await othersAreServed(t);
  if (isFull) t.equal(living().length, 0, 'a frame that does not end ends its connection');
  for (const stranger of slow) stranger.socket.destroy();
});

t.test('after all of it nothing has changed', async (t) => {
  await othersAreServed(t);
  const gap = Math.round(probe.longestGap(startedAt, performance.now()));
  figure(t, 'longest time without service under hostile bytes', `${gap} ms`);
  const isSame = (await cluster.leader(60_000)) === leader;
  figure(t, 'leader at the end', isSame ? 'the same as before' : 'another, by an election');
  await probe.stop();
  t.equal(new Set((await cluster.settled(60_000)).map(({ digest }) => digest)).size, 1);
});

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import t from 'tap';
import { WebSocket } from 'ws';
import { measuredCounters } from '../../src/observe/metrics.js';
import { beginFrame, endFrame } from '../../src/wire/frame.js';
import type { PackValue } from '../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../src/wire/out-buffer.js';
import { encodeRequest } from '../../src/wire/request.js';
import { decodeReplies, type Reply } from '../../src/wire/response.js';
import { Cluster } from './harness.js';
import { HttpClient, SseClient, type SseMessage } from './http-client.js';
import { waitFor } from './wait-for.js';

const cluster = await Cluster.start({ test: t, settings: { leaseTtlMsLeast: 100 } });
const client = new HttpClient();
t.teardown(() => client.close());
let keys = 0;

function key(): Record<string, string> {
  keys += 1;
  return { 'idempotency-key': `streams-${keys}` };
}

async function follower(): Promise<number> {
  const leader = await cluster.leader();
  return cluster.runningIds.find((nodeId) => nodeId !== leader) ?? 0;
}

async function holdAndRelease(base: string, name: string): Promise<void> {
  const path = `${base}/v1/locks/${encodeURIComponent(name)}/acquire`;
  const granted = await client.post(path, { ttl_ms: 60_000 }, key());
  t.equal(granted.status, 200, granted.text);
  await client.delete(`${base}/v1/leases/${granted.json.lease_id}`);
}

/** A client of the binary protocol in WebSocket messages. */
class FrameClient {
  readonly replies: Reply[] = [];
  closed = 0;
  readonly socket: WebSocket;

  constructor(url: string) {
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws`);
    this.socket.binaryType = 'nodebuffer';
    this.socket.on('message', (data) => this.take(data as Buffer));
    this.socket.on('error', () => undefined);
    this.socket.on('close', (code) => {
      this.closed = code;
    });
  }

  async open(): Promise<this> {
    await waitFor('the socket', () => (this.socket.readyState === WebSocket.OPEN ? true : null));
    return this;
  }

  frame(correlation: number, operation: PackValue[]): Uint8Array {
    const out = new OutBuffer();
    const position = beginFrame(out);
    encodeRequest(out, correlation, 5_000, operation);
    endFrame(out, position, 1);
    return out.take();
  }

  async reply(correlation: number): Promise<Reply> {
    return waitFor(`a reply to ${correlation}`, () => {
      return this.replies.find((reply) => reply.correlation === correlation) ?? null;
    });
  }

  private take(data: Buffer): void {
    let at = 0;
    while (at < data.length) {
      const end = at + 4 + data.readUInt32BE(at);
      this.replies.push(...(decodeReplies(data, at + 4, end) ?? []));
      at = end;
    }
  }
}

t.test('the binary protocol in WebSocket messages, by a public WebSocket client', async (t) => {
  const leader = await cluster.leader();
  const socket = await new FrameClient(cluster.httpUrl(leader)).open();
  t.teardown(() => socket.socket.terminate());
  const hello = socket.frame(1, [1, 1, 'browser', null]);
  const watch = socket.frame(2, [11, null, 'ws/']);
  const acquire = socket.frame(3, [36, 'ws-1', null, null, null, 'ws/a', 60_000]);
  socket.socket.send(Buffer.concat([hello, watch]));
  socket.socket.send(acquire);
  t.equal((await socket.reply(1)).code, 0);
  const granted = await socket.reply(3);
  t.equal(granted.code, 0);
  const events = (): unknown[] =>
    socket.replies.filter((each) => each.code === 2).flatMap((each) => each.fields[0] as unknown[]);
  await waitFor('the event', () => (events().length > 0 ? true : null));
  t.match(events(), [[granted.fields[2], 1, 'ws/a', granted.fields[1]]]);
  const text = await new FrameClient(cluster.httpUrl(leader)).open();
  text.socket.send('hello');
  await waitFor('the end of who sends text', () => text.closed || null);
  t.equal(text.closed, 1_003);
  const torn = await new FrameClient(cluster.httpUrl(leader)).open();
  torn.socket.send(hello.subarray(0, 7));
  await waitFor('the end of who sends half a frame', () => torn.closed || null);
  t.match(torn.replies[0], { correlation: 0, code: 23 });
  const evil = new WebSocket(`${cluster.httpUrl(leader).replace('http', 'ws')}/v1/ws`, {
    origin: 'http://evil.example',
  });
  const refusal = await new Promise<string>((resolve) => {
    evil.on('error', (error) => resolve(error.message));
  });
  t.match(refusal, /403/, 'a page of another site gets no WebSocket');
});

t.test(
  'events as server-sent events and as JSON messages, from a revision, on any node',
  async (t) => {
    const base = cluster.httpUrl(await follower());
    const lock = new SseClient(`${base}/v1/locks/sse%2Fa/watch`);
    const prefix = new SseClient(`${base}/v1/watch?prefix=sse%2F`);
    t.teardown(() => lock.close());
    t.teardown(() => prefix.close());
    await waitFor('both to begin', () => (lock.messages[0] && prefix.messages[0] ? true : null));
    await holdAndRelease(base, 'sse/a');
    await holdAndRelease(base, 'sse/b');
    await waitFor('the events', () => (prefix.events.length >= 4 ? true : null));
    t.same(
      lock.events.map((each) => each.event),
      ['granted', 'ended'],
    );
    t.match(lock.events[1]?.data, { name: 'sse/a', cause: 'released' });
    t.same(
      prefix.events.map((each) => each.data.name),
      ['sse/a', 'sse/a', 'sse/b', 'sse/b'],
    );
    const from = prefix.events[1]?.id ?? '';
    for (const nodeId of cluster.nodeIds) {
      const other = cluster.httpUrl(nodeId);
      const again = new SseClient(`${other}/v1/watch?prefix=sse%2F`, { 'last-event-id': from });
      const got = new SseClient(`${other}/v1/locks/sse%2Fb?revision=${Number(from) + 1}`);
      await waitFor('the rest', () => (again.events.length >= 2 && got.events.length >= 2) || null);
      t.same(again.events, prefix.events.slice(2), 'Last-Event-ID goes on where it was');
      t.same(got.events, prefix.events.slice(2), '?revision= is the same');
      again.close();
      got.close();
    }
    const messages: { event: string; data: { name: string } }[] = [];
    const socket = new WebSocket(`${base.replace('http', 'ws')}/v1/watch?revision=1`);
    t.teardown(() => socket.terminate());
    socket.on('message', (data) => messages.push(JSON.parse(String(data))));
    const seen = (): SseMessage['data'][] =>
      messages.filter((each) => each.event !== 'progress' && each.data.name.startsWith('sse/'));
    await waitFor('JSON messages', () => (seen().length >= 4 ? true : null));
    t.same(
      seen().map((each) => each.data),
      prefix.events.map((each) => each.data),
    );
    const snapshot = new SseClient(`${base}/v1/watch?snapshot=true`);
    t.teardown(() => snapshot.close());
    await waitFor('a snapshot', () => snapshot.events.find((each) => each.event === 'snapshot'));
  },
);

t.test('leaders are killed in the middle: streams go on, a key has one effect', async (t) => {
  const witness = await follower();
  const base = cluster.httpUrl(witness);
  const stream = new SseClient(`${base}/v1/watch?revision=1`);
  t.teardown(() => stream.close());
  let stops = false;
  let granted = 0;
  const failures = new Map<string, number>();
  const worker = async (lane: number): Promise<void> => {
    for (let round = 0; !stops; round += 1) {
      const path = `${base}/v1/locks/kill%2F${lane}/acquire`;
      const headers = { 'idempotency-key': `kill-${lane}-${round}` };
      for (;;) {
        const answer = await client.post(path, { ttl_ms: 60_000 }, headers);
        if (answer.status === 200) {
          granted += 1;
          let status = 0;
          while (status !== 200) {
            const { lease_id } = answer.json;
            status = (await client.delete(`${base}/v1/leases/${lease_id}`)).status;
          }
          break;
        }
        const { code, retryable } = answer.json.error;
        failures.set(code, (failures.get(code) ?? 0) + 1);
        t.ok(retryable, answer.text);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const workers = [0, 1, 2, 3].map(worker);
  for (let kill = 0; kill < 2; kill += 1) {
    const before = granted;
    await waitFor('work to go on', () => (granted > before + 20 ? true : null));
    const leader = await cluster.leader();
    if (leader === witness) break;
    await cluster.kill(leader);
    await cluster.leaderOtherThan(leader);
    const after = granted;
    await waitFor('work to go on again', () => (granted > after + 20 ? true : null));
    await cluster.restart(leader);
  }
  stops = true;
  await Promise.all(workers);
  // The leader has applied what the workers were told; the witness may learn of it a beat later.
  const leaderUrl = cluster.httpUrl(await cluster.leader());
  const { json } = await client.get(`${leaderUrl}/v1/cluster/status`);
  await waitFor('the stream to be there', () => {
    return Number(stream.messages.at(-1)?.id) >= json.revision ? true : null;
  });
  const kills = stream.events.filter((each) => String(each.data.name).startsWith('kill/'));
  const grants = kills.filter((each) => each.event === 'granted');
  t.equal(grants.length, granted, `one grant for each key; refusals ${[...failures].join(' ')}`);
  t.equal(kills.length, 2 * granted, 'and one end');
  t.same(
    stream.events.map((each) => Number(each.id)),
    stream.events.map((_, at) => at + 1),
    'every revision from 1 on, once, in order',
  );
  const late = new SseClient(`${cluster.httpUrl(cluster.nodeIds[0] ?? 0)}/v1/watch?revision=1`);
  t.teardown(() => late.close());
  await waitFor('a late one to catch up', () => late.events.length >= stream.events.length || null);
  t.same(late.events, stream.events, 'another node tells the same');
});

t.test('metrics have a row for every counter', async (t) => {
  const status = await cluster.status(await cluster.leader());
  const measured = new Set(measuredCounters());
  const counters = Object.keys(status.counters);
  t.ok(counters.length > 20);
  const missing = counters.filter((name) => !measured.has(name) && !/^match_index_\d+$/.test(name));
  t.same(missing, []);
});

const PROMTOOL = '/usr/bin/promtool';
const skip = existsSync(PROMTOOL) ? false : 'needs the Debian package prometheus for promtool';

t.test('promtool has nothing to say against the metrics', { skip }, async (t) => {
  const { text } = await client.get(`${cluster.httpUrl(await cluster.leader())}/metrics`);
  const output = execFileSync(PROMTOOL, ['check', 'metrics'], { input: text, encoding: 'utf8' });
  t.equal(output, '');
  t.match(text, /^holdfast_match_index\{peer="\d"\} \d+$/m);
});

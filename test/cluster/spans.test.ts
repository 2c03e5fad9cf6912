/** One trace over client and nodes: what the collector gets, and what the audit event says. */

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import t from 'tap';
import { WebSocket } from 'ws';
import { type AuditEvent, connect } from '../../src/client/index.js';
import { beginFrame, endFrame, FRAME_VERSION } from '../../src/wire/frame.js';
import { OutBuffer } from '../../src/wire/out-buffer.js';
import { CommandKind, encodeRequest } from '../../src/wire/request.js';
import { Collector, type ReceivedSpan } from '../unit/server/collector.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const collector = await Collector.open(t);
const cluster = await Cluster.start({
  test: t,
  nodes: 3,
  nodeEnvironment: () => ({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }),
});
const tracerProvider = new TracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'nightly' }),
  spanProcessors: [
    new SimpleSpanProcessor({
      exporter: new OTLPTraceExporter({ url: `${collector.url}/v1/traces` }),
    }),
  ],
});
const client = await connect({ endpoints: cluster.endpoints, tracerProvider });
t.teardown(async () => {
  await client.close();
  await tracerProvider.shutdown();
});

/** The first event of a lock of this type; the node that is asked may apply it a little later. */
function eventOf(name: string, type: AuditEvent['type']): Promise<AuditEvent> {
  return waitFor(`${name} ${type}`, async () => {
    for await (const page of client.audit({ from: 'oldest', prefix: name, follows: false })) {
      const found = page.events.find((event) => event.type === type);
      if (found !== undefined) return found;
    }
    return null;
  });
}

/** The first group of what a line of /metrics matches. */
async function metricOf(nodeId: number, line: RegExp): Promise<number> {
  const answer = await fetch(`${cluster.httpUrl(nodeId)}/metrics`);
  return Number(line.exec(await answer.text())?.[1] ?? Number.NaN);
}

function named(spans: readonly ReceivedSpan[], name: string): ReceivedSpan | undefined {
  return spans.find((span) => span.name === name);
}

t.test('client, leader, commit and apply are under the trace id of the audit event', async (t) => {
  const lease = await client.acquire('spans/one', { session: null });
  const granted = await eventOf('spans/one', 'granted');
  const traceId = granted.traceId ?? '';
  t.match(traceId, /^[0-9a-f]{32}$/);
  const spans = await waitFor('the four spans', () => {
    const found = collector.of(traceId);
    return found.length >= 4 ? found : null;
  });
  t.same(
    spans.map((span) => span.name).sort(),
    ['apply', 'client acquire', 'commit', 'leader acquire'],
    'and no more',
  );
  const sent = named(spans, 'client acquire');
  const leader = named(spans, 'leader acquire');
  const commit = named(spans, 'commit');
  const apply = named(spans, 'apply');
  t.equal(sent?.service, 'nightly');
  t.equal(leader?.service, 'holdfast');
  t.equal(leader?.instance, String(await cluster.leader()));
  t.equal(commit?.parentSpanId, leader?.spanId);
  t.equal(apply?.parentSpanId, leader?.spanId);
  t.equal(Number(commit?.attributes.get('holdfast.log_index')), granted.logIndex);
  const times = [leader?.fromMs, commit?.fromMs, commit?.toMs, apply?.fromMs, apply?.toMs];
  // Each span is put onto the wall clock by itself: a few µs of difference are no disorder.
  for (let at = 1; at < times.length; at += 1) {
    t.ok((times[at] ?? 0) >= (times[at - 1] ?? 0) - 1, `${times}`);
  }
  t.ok(Math.abs((leader?.toMs ?? 0) - (apply?.toMs ?? 0)) < 1);
  t.ok((sent?.toMs ?? 0) - (sent?.fromMs ?? 0) >= (leader?.toMs ?? 0) - (leader?.fromMs ?? 0) - 1);
  await lease.release();
  const ended = await eventOf('spans/one', 'ended');
  t.match(ended.traceId, /^[0-9a-f]{32}$/);
  t.not(ended.traceId, traceId, 'without a span of the program each request is a trace');
  const [released] = await waitFor('the span of the release', () => {
    const found = collector.of(ended.traceId ?? '').filter(({ name }) => /leader/.test(name));
    return found.length > 0 ? found : null;
  });
  t.equal(released?.name, 'leader release');
});

t.test('a wait in the queue is a span of its own', async (t) => {
  const first = await client.acquire('spans/two', { session: null });
  const waiting = client.acquire('spans/two', { session: null, waitMs: 20_000 });
  await waitFor('the place', async () => (await client.get('spans/two')).waiters === 1);
  await first.release();
  await (await waiting).release();
  const queued = await eventOf('spans/two', 'queued');
  const spans = await waitFor('the wait', () => {
    const found = collector.of(queued.traceId ?? '');
    return named(found, 'wait') === undefined ? null : found;
  });
  t.equal(named(spans, 'leader acquire')?.attributes.get('holdfast.code'), 'QUEUED');
  t.equal(named(spans, 'wait')?.attributes.get('holdfast.code'), 'OK');
});

/** Trace ids that callers over HTTP brought along. */
const overHttp: string[] = [];

t.test('over HTTP the trace id is that of traceparent, on whatever node', async (t) => {
  const leader = await cluster.leader();
  for (const [at, nodeId] of cluster.nodeIds.entries()) {
    const traceId = `${at}`.repeat(30) + (nodeId === leader ? 'aa' : 'bb');
    overHttp.push(traceId);
    const answer = await fetch(`${cluster.httpUrl(nodeId)}/v1/locks/http-${at}/acquire`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': `http-${at}`,
        traceparent: `00-${traceId}-1111111111111111-01`,
      },
      body: '{}',
    });
    t.equal(answer.status, 200);
    const spans = await waitFor('the spans', () => {
      const found = collector.of(traceId);
      return found.length >= 3 ? found : null;
    });
    t.same(spans.map(({ name }) => name).sort(), ['apply', 'commit', 'leader acquire']);
    t.equal(spans[0]?.instance, String(leader));
  }
});

t.test('the binary protocol in WebSocket messages is followed like the one over TCP', async (t) => {
  const traceId = 'e'.repeat(32);
  const leader = await cluster.leader();
  const socket = new WebSocket(`${cluster.httpUrl(leader).replace('http', 'ws')}/v1/ws`);
  t.teardown(() => socket.terminate());
  overHttp.push(traceId);
  await new Promise((resolve) => socket.once('open', resolve));
  const out = new OutBuffer();
  const position = beginFrame(out);
  const trace = Uint8Array.from(Buffer.from(traceId, 'hex'));
  encodeRequest(out, 1, 5_000, [CommandKind.Hello, FRAME_VERSION, 'spans']);
  const name = 'spans/websocket';
  encodeRequest(out, 2, 5_000, [CommandKind.Acquire, name, null, null, trace, name, 60_000, 0]);
  endFrame(out, position, 2);
  socket.send(out.take());
  const spans = await waitFor('the spans', () => {
    const found = collector.of(traceId);
    return found.length >= 3 ? found : null;
  });
  t.same(spans.map((span) => span.name).sort(), ['apply', 'commit', 'leader acquire']);
});

t.test('what carries no trace id makes no span', async (t) => {
  const plain = await connect({ endpoints: cluster.endpoints });
  t.teardown(() => plain.close());
  await (await plain.acquire('spans/plain', { session: null })).release();
  t.equal((await eventOf('spans/plain', 'ended')).traceId, null);
  // What comes later is sent later: with this one here, a span of the others would be here too.
  await (await client.acquire('spans/marker', { session: null })).release();
  const marker = (await eventOf('spans/marker', 'ended')).traceId ?? '';
  await waitFor('the spans of the marker', () => collector.of(marker).length >= 4);
  await waitFor('every trace to be one that was asked for', () => {
    const sent = collector.spans.filter(({ service }) => service === 'nightly');
    const known = new Set([...sent.map(({ traceId }) => traceId), ...overHttp]);
    return collector.spans.every(({ traceId }) => known.has(traceId));
  });
});

t.test('a collector that is away costs spans and no request, and is told of', async (t) => {
  const leader = await cluster.leader();
  const failed = /^holdfast_spans_total\{state="failed"\} (\d+)$/m;
  const open = /^holdfast_circuit_open\{dependency="span collector"\} (\d)$/m;
  t.equal(await metricOf(leader, open), 0);
  collector.status = 400;
  await (await client.acquire('spans/away', { session: null })).release();
  await waitFor('the failure', async () => (await metricOf(leader, failed)) > 0);
  t.equal(await metricOf(leader, open), 1);
  collector.status = 200;
  await (await client.acquire('spans/back', { session: null })).release();
  await waitFor('the end of it', async () => (await metricOf(leader, open)) === 0);
  t.match(cluster.output(leader), /the collector does not take spans/);
});

t.test('a leader has heard of each follower, a follower of its leader alone', async (t) => {
  const leader = await cluster.leader();
  for (const nodeId of cluster.nodeIds) {
    const line = new RegExp(
      `^holdfast_peer_last_contact_seconds\\{peer="${nodeId}"\\} ([0-9.e-]+)$`,
      'm',
    );
    const seconds = await metricOf(leader, line);
    if (nodeId === leader) t.same(seconds, Number.NaN, 'not of itself');
    else t.ok(seconds < 5, `node ${nodeId}: ${seconds}`);
  }
});

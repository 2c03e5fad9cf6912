/** Spans as a collector gets them, and a collector that does not take them. */

import t from 'tap';
import { createLogger } from '../../../src/observe/logger.js';
import { Connection } from '../../../src/replica/connection.js';
import type { Transport } from '../../../src/replica/ports.js';
import { SPANS_WAITING_MAX, SpanExport } from '../../../src/server/span-export.js';
import { TracedRequest } from '../../../src/server/traced-requests.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { CommandKind } from '../../../src/wire/request.js';
import { waitFor } from '../../cluster/wait-for.js';
import { Collector } from './collector.js';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';

function exportTo(url: string, lines: string[] = []): SpanExport {
  const logger = createLogger('info', {}, { write: (line) => lines.push(line) });
  return new SpanExport({ url, nodeId: 3, clusterId: 'ab', version: '1.2.3', logger });
}

function requestOf(code: number, change: Partial<TracedRequest> = {}): TracedRequest {
  const connection = new Connection(1, 1, {} as Transport, '');
  const trace = Buffer.from(TRACE_ID, 'hex');
  const now = performance.now();
  const request = new TracedRequest(
    connection,
    1,
    CommandKind.Acquire,
    trace,
    Buffer.alloc(0),
    now - 50,
  );
  const times = { orderedMs: now - 40, appliesMs: now - 15, repliedMs: now };
  return Object.assign(request, times, { code, index: 41, isDecided: true }, change);
}

t.test('leader, commit and apply go to the collector under the trace id', async (t) => {
  const collector = await Collector.open(t);
  const spans = exportTo(`${collector.url}/v1/traces`);
  const beganMs = Date.now();
  spans.onAnswered(requestOf(ErrorCode.Ok));
  await spans.close();
  t.same(collector.paths, ['/v1/traces']);
  t.same(
    collector.of(TRACE_ID).map(({ name, kind, status }) => [name, kind, status]),
    [
      ['leader acquire', 2, 0],
      ['commit', 1, 0],
      ['apply', 1, 0],
    ],
    'OTLP counts kinds from 1: internal, server',
  );
  const [leader, commit, apply] = collector.spans;
  t.equal(leader?.parentSpanId, '');
  t.equal(commit?.parentSpanId, leader?.spanId);
  t.equal(apply?.parentSpanId, leader?.spanId);
  t.equal(leader?.service, 'holdfast');
  t.equal(leader?.instance, '3');
  t.equal(leader?.attributes.get('holdfast.code'), 'OK');
  t.equal(Number(commit?.attributes.get('holdfast.log_index')), 41);
  const lasts = collector.spans.map(({ fromMs, toMs }) => Math.round(toMs - fromMs));
  t.same(lasts, [50, 25, 15]);
  t.ok(Math.abs((leader?.toMs ?? 0) - beganMs) < 1_000, 'on the wall clock it is now');
  t.same(spans.counts, { sent: 3, failed: 0, dropped: 0, isFailing: false });
});

t.test('a refusal has no commit; what is a failure is told from what is not', async (t) => {
  const collector = await Collector.open(t);
  const spans = exportTo(`${collector.url}/v1/traces`);
  spans.onAnswered(requestOf(ErrorCode.NotLeader, { appliesMs: 0 }));
  spans.onAnswered(requestOf(ErrorCode.LockBusy, { appliesMs: 0, index: 0 }));
  spans.onAnswered(requestOf(-1, { appliesMs: 0 }));
  spans.onWaited(requestOf(ErrorCode.Queued, { waitedMs: performance.now(), waitCode: 0 }));
  await spans.close();
  t.same(
    collector.spans.map(({ name, status, attributes }) => {
      return [name, status, attributes.get('holdfast.code')];
    }),
    [
      ['leader acquire', 2, 'NOT_LEADER'],
      ['leader acquire', 0, 'LOCK_BUSY'],
      ['leader acquire', 2, 'HUNG_UP'],
      ['wait', 0, 'OK'],
    ],
  );
});

t.test(
  'a collector that refuses costs spans, is told of once, and again when it is back',
  async (t) => {
    const collector = await Collector.open(t);
    collector.status = 400;
    const lines: string[] = [];
    const spans = exportTo(`${collector.url}/v1/traces`, lines);
    t.teardown(() => spans.close());
    for (const failed of [3, 6]) {
      spans.onAnswered(requestOf(ErrorCode.Ok));
      await waitFor('the refusal', () => spans.counts.failed === failed);
    }
    t.match(spans.counts, { sent: 0, failed: 6, isFailing: true });
    collector.status = 200;
    spans.onAnswered(requestOf(ErrorCode.Ok));
    await waitFor('the spans', () => spans.counts.sent === 3);
    t.equal(spans.counts.isFailing, false);
    t.equal(lines.filter((line) => line.includes('does not take spans')).length, 1);
    t.equal(lines.filter((line) => line.includes('takes spans again')).length, 1);
  },
);

t.test(
  'what waits is bounded, and an end does not wait for a collector that is away',
  async (t) => {
    const spans = exportTo('http://127.0.0.1:1/v1/traces');
    const request = requestOf(ErrorCode.Ok, { appliesMs: 0 });
    for (let at = 0; at < SPANS_WAITING_MAX + 5; at += 1) spans.onAnswered(request);
    t.equal(spans.counts.dropped, 5);
    const began = performance.now();
    await spans.close();
    t.ok(performance.now() - began < 3_000);
  },
);

/**
 * Spans of a node, sent to a collector by OTLP over HTTP. The only file that imports the SDK.
 *
 * Owns: what the spans are called and say, the bound on those that wait, the counts of what was
 * sent and lost. Never: a lock's name, a principal or a lease id in a span; the trace id leads to
 * the audit event, which has them. A collector that is away costs spans, never a request. Loaded by
 * node.ts, only when an endpoint is given.
 */
import { randomBytes } from 'node:crypto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from '../observe/logger.js';
import { COMMAND_ROWS } from '../wire/commands.js';
import { codeName } from '../wire/event-json.js';
import type { TracedRequest, TraceSink } from './traced-requests.js';

/** Spans that wait to be sent. Full: a further one is dropped and counted. */
export const SPANS_WAITING_MAX = 8_192;
/** Spans in one request to the collector, and how long the first of them waits. */
const SPANS_TOGETHER = 512;
const SEND_AFTER_MS = 1_000;
/** A node that ends gives the collector so long for the rest. */
const CLOSE_MS_MAX = 1_000;
const SPAN_ID_BYTES = 8;
const MS_PER_S = 1_000;
const NS_PER_MS = 1e6;

/** Numbers of OpenTelemetry: kinds of spans, statuses, results, the flag of a sampled trace. */
const INTERNAL = 0;
const SERVER = 1;
const UNSET = 0;
const ERROR = 2;
const EXPORT_OK = 0;
const SAMPLED = 1;

type Attributes = ReadableSpan['attributes'];

/** What became of the spans so far. */
export interface SpanCounts {
  readonly sent: number;
  /** The collector did not take them. */
  readonly failed: number;
  /** Too many waited. */
  readonly dropped: number;
  /** The last request to the collector failed. */
  readonly isFailing: boolean;
}

export interface SpanExportOptions {
  /** Whole address, such as `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  readonly nodeId: number;
  readonly clusterId: string;
  readonly version: string;
  readonly logger: Logger;
}

const OPERATIONS = new Map<number, string>(COMMAND_ROWS.map(({ number, name }) => [number, name]));
/** Codes that say something of the lock, not of a failure. */
const ORDINARY = new Set(['OK', 'QUEUED', 'LOCK_BUSY', 'WAIT_TIMEOUT', 'CANCELLED']);
/** Of a request whose connection was gone before its reply. */
const HUNG_UP = 'HUNG_UP';

/** ms of the wall clock as OpenTelemetry has it: whole seconds, and nanoseconds. */
function timeOf(epochMs: number): [number, number] {
  const seconds = Math.floor(epochMs / MS_PER_S);
  return [seconds, Math.round((epochMs - seconds * MS_PER_S) * NS_PER_MS)];
}

function drawId(): Buffer {
  return randomBytes(SPAN_ID_BYTES);
}

function wordOf(code: number): string {
  return code < 0 ? HUNG_UP : codeName(code);
}

export class SpanExport implements TraceSink {
  private readonly resource: Resource;
  private readonly exporter: OTLPTraceExporter;
  private readonly processor: BatchSpanProcessor;
  private made = 0;
  private sent = 0;
  private failed = 0;
  private dropped = 0;
  private isFailing = false;

  constructor(private readonly options: SpanExportOptions) {
    const { url, nodeId, clusterId, version } = options;
    this.resource = resourceFromAttributes({
      'service.name': 'holdfast',
      'service.version': version,
      'service.instance.id': String(nodeId),
      'holdfast.cluster_id': clusterId,
    }).merge(detectResources({ detectors: [envDetector] }));
    this.exporter = new OTLPTraceExporter({ url });
    const counting: SpanExporter = {
      export: (spans, done) => {
        this.exporter.export(spans, (result) => {
          this.onSent(spans.length, result.code === EXPORT_OK, result.error);
          done(result);
        });
      },
      shutdown: () => this.exporter.shutdown(),
    };
    this.processor = new BatchSpanProcessor({
      exporter: counting,
      maxQueueSize: SPANS_WAITING_MAX,
      maxExportBatchSize: SPANS_TOGETHER,
      scheduledDelayMillis: SEND_AFTER_MS,
    });
  }

  get counts(): SpanCounts {
    const { sent, failed, dropped, isFailing } = this;
    return { sent, failed, dropped, isFailing };
  }

  /** leader: receive to reply; commit: append to committed; apply: the turn that applied it. */
  onAnswered(request: TracedRequest): void {
    const { receivedMs, repliedMs, orderedMs, appliesMs, code, index } = request;
    const operation = OPERATIONS.get(request.command) ?? `command_${request.command}`;
    const attributes = { 'holdfast.operation': operation, 'holdfast.code': wordOf(code) };
    const leader = drawId();
    this.add(request, `leader ${operation}`, leader, null, receivedMs, repliedMs, attributes);
    if (appliesMs === 0) return;
    const entry = { 'holdfast.log_index': index };
    this.add(request, 'commit', drawId(), leader, orderedMs, appliesMs, entry);
    this.add(request, 'apply', drawId(), leader, appliesMs, repliedMs, entry);
  }

  /** wait: from the reply QUEUED to the final one. */
  onWaited(request: TracedRequest): void {
    const attributes = { 'holdfast.code': wordOf(request.waitCode) };
    const { repliedMs, waitedMs } = request;
    this.add(request, 'wait', drawId(), null, repliedMs, waitedMs, attributes);
  }

  /** Sends what waits, and gives up what the collector does not take soon. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS_MAX);
    });
    // What could not be sent is counted; there is nobody left to tell.
    await Promise.race([this.processor.shutdown().catch(() => undefined), late]);
    clearTimeout(timer);
  }

  private add(
    request: TracedRequest,
    name: string,
    id: Buffer,
    parent: Buffer | null,
    fromMs: number,
    toMs: number,
    attributes: Attributes,
  ): void {
    if (this.made - this.sent - this.failed >= SPANS_WAITING_MAX) {
      this.dropped += 1;
      return;
    }
    this.made += 1;
    // Durations are monotonic; where they lie on the wall clock is what it says now.
    const epochMs = Date.now() - performance.now();
    const traceId = request.traceId.toString('hex');
    const code = attributes['holdfast.code'] ?? 'OK';
    const context = { traceId, spanId: id.toString('hex'), traceFlags: SAMPLED };
    const span: ReadableSpan = {
      name,
      kind: parent === null ? SERVER : INTERNAL,
      spanContext: () => context,
      ...(parent === null
        ? {}
        : { parentSpanContext: { ...context, spanId: parent.toString('hex') } }),
      startTime: timeOf(epochMs + fromMs),
      endTime: timeOf(epochMs + toMs),
      duration: timeOf(toMs - fromMs),
      status: ORDINARY.has(String(code)) ? { code: UNSET } : { code: ERROR, message: String(code) },
      attributes,
      links: [],
      events: [],
      ended: true,
      resource: this.resource,
      instrumentationScope: { name: 'holdfast', version: this.options.version },
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
    this.processor.onEnd(span);
  }

  private onSent(count: number, isTaken: boolean, error: Error | undefined): void {
    if (isTaken) this.sent += count;
    else this.failed += count;
    if (isTaken === !this.isFailing) return;
    this.isFailing = !isTaken;
    const { logger, url } = this.options;
    if (isTaken) logger.info({ url }, 'the collector takes spans again');
    else logger.warn({ url, reason: error?.message ?? '' }, 'the collector does not take spans');
  }
}

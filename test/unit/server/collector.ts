/**
 * A collector of spans in a test: takes OTLP over HTTP as JSON, or refuses it.
 *
 * Owns: its port, closed at teardown, and what it was sent. Used by: the tests of spans.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One span as it came. */
export interface ReceivedSpan {
  readonly name: string;
  /** Of the process that made it: service.instance.id, service.name. */
  readonly instance: string;
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly kind: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** 0 unset, 2 error. */
  readonly status: number;
  readonly attributes: ReadonlyMap<string, unknown>;
}

interface RawAttribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface RawSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly RawAttribute[];
}

interface RawBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly RawAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly RawSpan[] }[];
  }[];
}

const NS_PER_MS = 1e6;

function attributesOf(raw: readonly RawAttribute[]): Map<string, unknown> {
  return new Map(raw.map(({ key, value }) => [key, Object.values(value)[0]]));
}

function spansIn(body: RawBody): ReceivedSpan[] {
  return body.resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const of = attributesOf(resource.attributes);
    const spans = scopeSpans.flatMap((scope) => scope.spans);
    return spans.map((span) => ({
      name: span.name,
      instance: String(of.get('service.instance.id') ?? ''),
      service: String(of.get('service.name')),
      traceId: span.traceId,
      spanId: span.spanId,
      parentSpanId: span.parentSpanId ?? '',
      kind: span.kind,
      fromMs: Number(span.startTimeUnixNano) / NS_PER_MS,
      toMs: Number(span.endTimeUnixNano) / NS_PER_MS,
      status: span.status?.code ?? 0,
      attributes: attributesOf(span.attributes),
    }));
  });
}

export class Collector {
  readonly spans: ReceivedSpan[] = [];
  /** Paths that were asked. */
  readonly paths: string[] = [];
  /** What it answers with. */
  status = 200;

  private constructor(private readonly server: Server) {
    server.on('request', (request, response) => {
      const parts: Buffer[] = [];
      this.paths.push(request.url ?? '');
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        if (this.status === 200) {
          this.spans.push(...spansIn(JSON.parse(Buffer.concat(parts).toString()) as RawBody));
        }
        response.writeHead(this.status, { 'content-type': 'application/json' }).end('{}');
      });
    });
  }

  static async open(test: { teardown(close: () => void): unknown }): Promise<Collector> {
    const server = createServer();
    const collector = new Collector(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    test.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    return collector;
  }

  /** `http://host:port`, as OTEL_EXPORTER_OTLP_ENDPOINT has it. */
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** The spans of one trace. */
  of(traceId: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }
}

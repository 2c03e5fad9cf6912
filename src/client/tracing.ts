/**
 * A span for each request of a client, whose trace id goes with the request into log and audit.
 *
 * Owns: what the spans are called and say, and which trace id is sent: the caller's own, else that
 * of a sampled span, since the wire has no place for the flag and a node makes spans for what it
 * gets. Never: an exporter, a span when nobody asked for any. The only file that imports
 * @opentelemetry/api. Loaded by connect.ts, when it is needed. Used by: leader.ts.
 */
import {
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { COMMAND_ROWS, HEAD_ROWS } from '../wire/commands.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import type { Reply } from '../wire/response.js';
import type { Call, CallSpec } from './call.js';
import { asHoldfastError, ErrorCode } from './errors.js';

export type { TracerProvider } from '@opentelemetry/api';

/** Place of the trace id in a logged operation. */
const TRACE_ELEMENT = HEAD_ROWS.findIndex(({ name }) => name === 'trace');
/** Codes that say something of the lock, not of a failure. */
const ORDINARY: ReadonlySet<number> = new Set([
  ErrorCode.LockBusy,
  ErrorCode.WaitTimeout,
  ErrorCode.Cancelled,
]);

/** A command's name, and where its operation has the name of a lock; -1: nowhere. */
interface Named {
  readonly name: string;
  readonly lockElement: number;
}

const COMMANDS = new Map<number, Named>(
  COMMAND_ROWS.map(({ number, name, isLogged, fields }) => {
    const at = fields.findIndex((field) => field.name === 'name');
    const before = isLogged ? HEAD_ROWS.length : 1;
    return [number, { name, lockElement: at < 0 ? -1 : before + at }];
  }),
);

export class Tracing {
  readonly #tracer: Tracer;

  /** `provider` undefined: the global one, also when it is registered later. */
  constructor(provider: TracerProvider | undefined) {
    this.#tracer = (provider ?? trace).getTracer('holdfast');
  }

  /** Begins the span of a request. */
  begin(spec: CallSpec): RequestSpan {
    const { operation } = spec;
    const { name, lockElement } = COMMANDS.get(Number(operation[0])) ?? UNNAMED;
    const lock = operation[lockElement];
    const given = spec.isLogged ? operation[TRACE_ELEMENT] : null;
    const traceId = given instanceof Uint8Array ? hexOf(given) : '';
    const span = this.#tracer.startSpan(
      `client ${name}`,
      {
        kind: SpanKind.CLIENT,
        attributes: {
          'holdfast.operation': name,
          ...(typeof lock === 'string' ? { 'holdfast.lock': lock } : {}),
        },
      },
      parentOf(spec, traceId),
    );
    if (!spec.isLogged || traceId !== '') return new RequestSpan(span, spec);
    const own = span.spanContext();
    if ((own.traceFlags & TraceFlags.SAMPLED) === 0) return new RequestSpan(span, spec);
    const traced: PackValue[] = operation.with(TRACE_ELEMENT, bytesOf(own.traceId));
    return new RequestSpan(span, { ...spec, operation: traced });
  }
}

const UNNAMED: Named = { name: 'unknown', lockElement: -1 };

/** What the program does, unless it named another trace, or the client asks by itself. */
function parentOf(spec: CallSpec, traceId: string): Context {
  const active = spec.isOwnWork === true ? ROOT_CONTEXT : context.active();
  if (traceId === '' || trace.getSpanContext(active)?.traceId === traceId) return active;
  // Of a trace that was named by its id alone no span is known: half of the id stands for one.
  const spanId = traceId.slice(16);
  return trace.setSpanContext(active, {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  });
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'));
}

/** The span of one request. */
export class RequestSpan {
  readonly #span: Span;

  constructor(
    span: Span,
    /** The request as it is to be sent. */
    readonly spec: CallSpec,
  ) {
    this.#span = span;
  }

  /** Ends the span when the call is settled. */
  follow(call: Call): void {
    call.result.then(
      (reply) => this.#onReply(call, reply),
      (error: unknown) => this.#onError(call, error),
    );
  }

  #onReply(call: Call, reply: Reply): void {
    if (reply.isReplay) this.#span.setAttribute('holdfast.replay', true);
    this.#end(call, 'OK');
  }

  #onError(call: Call, error: unknown): void {
    const { number, code, outcome } = asHoldfastError(error);
    this.#span.setAttribute('holdfast.outcome', outcome);
    if (!ORDINARY.has(number)) {
      this.#span.setStatus({ code: SpanStatusCode.ERROR, message: code });
    }
    this.#end(call, code);
  }

  #end(call: Call, code: string): void {
    this.#span.setAttribute('holdfast.code', code);
    if (call.answeredBy !== undefined) {
      this.#span.setAttribute('holdfast.node', call.answeredBy.address);
    }
    if (call.refusals > 0) this.#span.setAttribute('holdfast.refusals', call.refusals);
    this.#span.end();
  }
}

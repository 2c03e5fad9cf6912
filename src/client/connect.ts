/**
 * How a client comes to be: addresses in, a connected client out.
 *
 * Owns: the options of a connection and the composition of a client's parts. Never: tries longer
 * than its deadline; a client that found no leader in time is closed again. Used by: programs, and
 * by tests with a clock and a transport of their own (connectWith).
 */
import { Ambient } from './ambient.js';
import { Client } from './client.js';
import { type Clock, SystemClock } from './clock.js';
import { Debts } from './debts.js';
import { badRequest } from './errors.js';
import { Leader } from './leader.js';
import { checkDeadline, checkOptions } from './options.js';
import { dialTcp } from './tcp.js';
import type { TracerProvider, Tracing } from './tracing.js';
import { type Dial, type Endpoint, parseEndpoint } from './transport.js';

/** Where the cluster is. */
export interface ConnectOptions {
  /** Client addresses of some or all nodes, `host:port`. The others are learnt from them. */
  readonly endpoints: readonly string[];
  /** Shown beside the connection, for people. */
  readonly clientName?: string;
  /** Milliseconds to find what is needed, 1 … 60,000; default 10,000. */
  readonly deadlineMs?: number;
  /**
   * `leader` (default): resolve when a leader was found. `node`: when any node of the cluster has
   * answered, which is enough for stale reads where there is no majority.
   */
  readonly needs?: 'leader' | 'node';
  /**
   * OpenTelemetry's provider that makes a span for each request. Absent: the global one when the
   * standard variables ask for traces (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER), else
   * there are no spans.
   */
  readonly tracerProvider?: TracerProvider;
}

/** What a client stands on. */
export interface Ground {
  readonly clock: Clock;
  readonly dial: Dial;
}

const CONNECT_OPTIONS: readonly (keyof ConnectOptions)[] = [
  'endpoints',
  'clientName',
  'deadlineMs',
  'needs',
  'tracerProvider',
];

function endpointsOf(texts: readonly string[]): Endpoint[] {
  if (!Array.isArray(texts)) {
    throw badRequest(
      'endpoints',
      `endpoints is ${typeof texts}, wanted an array: { endpoints: ['127.0.0.1:7401'] }`,
    );
  }
  if (texts.length === 0) throw badRequest('endpoints', 'endpoints is empty, wanted host:port');
  return texts.map((text) => {
    const endpoint = typeof text === 'string' ? parseEndpoint(text) : null;
    if (endpoint !== null) return endpoint;
    throw badRequest('endpoints', `endpoint is ${JSON.stringify(text)}, wanted host:port`);
  });
}

function needsOf(value: ConnectOptions['needs']): 'leader' | 'node' {
  if (value === undefined || value === 'leader' || value === 'node') return value ?? 'leader';
  throw badRequest('needs', `needs is ${String(value)}, wanted 'leader' or 'node'`);
}

/** True when the variables by which OpenTelemetry is set up ask for traces. */
export function asksForTraces(environment: Readonly<Record<string, string | undefined>>): boolean {
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return false;
  const exporter = environment['OTEL_TRACES_EXPORTER'] ?? '';
  if (exporter !== '') return exporter !== 'none';
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces, OTEL_EXPORTER_OTLP_ENDPOINT: all } =
    environment;
  return Boolean(traces) || Boolean(all);
}

/** Undefined when nobody asked for spans; then OpenTelemetry is not even loaded. */
async function tracingOf(provider: TracerProvider | undefined): Promise<Tracing | undefined> {
  if (provider === undefined && !asksForTraces(process.env)) return undefined;
  if (provider !== undefined && typeof provider?.getTracer !== 'function') {
    const message = 'tracerProvider is none of OpenTelemetry: it has no getTracer';
    throw badRequest('tracer_provider', message);
  }
  const { Tracing: Opened } = await import('./tracing.js');
  return new Opened(provider);
}

/**
 * Connects to a cluster and resolves when its leader was found, or any node (`needs`).
 * Rejects BAD_REQUEST `endpoints`, NO_QUORUM when no node led within the deadline, UNAUTHENTICATED
 * or UNSUPPORTED_VERSION when every node refused the client.
 *
 * @example
 * const client = await connect({ endpoints: ['127.0.0.1:7401', '127.0.0.1:7402'] });
 */
export function connect(options: ConnectOptions): Promise<Client> {
  return connectWith(options, { clock: new SystemClock(), dial: dialTcp });
}

/** connect() on another ground: tests control the time and the wire. */
export async function connectWith(options: ConnectOptions, ground: Ground): Promise<Client> {
  checkOptions('connect', options, CONNECT_OPTIONS);
  const endpoints = endpointsOf(options?.endpoints);
  const needs = needsOf(options.needs);
  const deadlineMs = checkDeadline(options.deadlineMs);
  const tracing = await tracingOf(options.tracerProvider);
  const ambient = new Ambient(ground.clock);
  const clientName = options.clientName ?? 'holdfast-client';
  const leader = new Leader(ambient, { dial: ground.dial, endpoints, clientName, tracing });
  const client = new Client({ ambient, leader, debts: new Debts(ambient, leader) });
  try {
    await leader.reach(deadlineMs, needs === 'node');
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}

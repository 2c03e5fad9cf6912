/** Spans of the client: one a request, its trace id on the wire, nothing when nobody asked. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import t, { type Test } from 'tap';
import { asksForTraces, type ConnectOptions } from '../../../src/client/connect.js';
import { Tracing } from '../../../src/client/tracing.js';
import { CommandKind } from '../../../src/wire/request.js';
import { FakeClock } from './fake-clock.js';
import { FakeCluster } from './fake-cluster.js';
import { advanced, connected, connectedTo, rejected } from './ground.js';

/** What a program's SDK does for the API's active context. */
class StoredContexts {
  private readonly store = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.store.getStore() ?? ROOT_CONTEXT;
  }

  with<Args extends unknown[], Result>(
    active: Context,
    work: (...args: Args) => Result,
    self?: ThisParameterType<(...args: Args) => Result>,
    ...args: Args
  ): Result {
    return this.store.run(active, () => work.apply(self as never, args));
  }

  bind<T>(_active: Context, target: T): T {
    return target;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    return this;
  }
}

t.before(() => {
  t.ok(context.setGlobalContextManager(new StoredContexts()));
});

async function ground(test: Test, sampler?: Sampler, options: Partial<ConnectOptions> = {}) {
  const memory = new InMemorySpanExporter();
  const tracerProvider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter: memory })],
    ...(sampler === undefined ? {} : { sampler }),
  });
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  const client = await connectedTo(clock, cluster, { tracerProvider, ...options });
  test.teardown(() => advanced(clock, client.close()));
  const spans = (): ReadableSpan[] => memory.getFinishedSpans();
  const named = (name: string): ReadableSpan[] =>
    spans().filter((span) => span.name === `client ${name}`);
  return { clock, cluster, client, spans, named, tracer: tracerProvider.getTracer('program') };
}

/** Trace ids of requests of one command, as they came to a node. */
function tracesOf(cluster: FakeCluster, command: number): (string | null)[] {
  return cluster.seen(command).map(({ elements }) => {
    const id = elements[4];
    return id instanceof Uint8Array ? Buffer.from(id).toString('hex') : null;
  });
}

t.test(
  'each request is a span below what the program does, its trace id on the wire',
  async (t) => {
    const { clock, cluster, client, named, tracer } = await ground(t);
    const span = tracer.startSpan('nightly job');
    const { traceId, spanId } = span.spanContext();
    await context.with(trace.setSpan(context.active(), span), async () => {
      const lease = await advanced(clock, client.acquire('jobs/nightly'));
      await advanced(clock, client.get('jobs/nightly'));
      await advanced(clock, lease.release());
    });
    for (const command of [CommandKind.SessionOpen, CommandKind.Acquire, CommandKind.Release]) {
      t.same(tracesOf(cluster, command), [traceId]);
    }
    for (const name of ['session_open', 'acquire', 'get', 'release']) {
      const [found, ...more] = named(name);
      t.equal(more.length, 0, name);
      t.equal(found?.spanContext().traceId, traceId);
      t.equal(found?.parentSpanContext?.spanId, spanId);
      t.equal(found?.attributes['holdfast.code'], 'OK');
      t.match(found?.attributes['holdfast.node'], /^10\.0\.0\.1:7400$/);
    }
    t.equal(named('acquire')[0]?.attributes['holdfast.lock'], 'jobs/nightly');
    t.equal(named('get')[0]?.attributes['holdfast.lock'], 'jobs/nightly');
  },
);

t.test('a request that is sent again is one span, under one trace id', async (t) => {
  const { clock, cluster, client, named } = await ground(t);
  let lost = 0;
  cluster.interfere = ({ command }) => {
    if (command !== CommandKind.Acquire || lost > 0) return undefined;
    lost += 1;
    return 'reset-after';
  };
  await advanced(clock, client.acquire('a', { session: null }));
  const [first, second, ...more] = tracesOf(cluster, CommandKind.Acquire);
  t.ok(first);
  t.equal(second, first);
  t.equal(more.length, 0);
  t.equal(named('acquire').length, 1);
  t.equal(named('acquire')[0]?.attributes['holdfast.replay'], true);
});

t.test('a span that is not sampled leaves no trace id with the nodes', async (t) => {
  const never: Sampler = {
    shouldSample: () => ({ decision: 0 }),
    toString: () => 'never',
  };
  const { clock, cluster, client, spans } = await ground(t, never);
  await advanced(clock, client.acquire('a', { session: null }));
  t.same(tracesOf(cluster, CommandKind.Acquire), [null]);
  t.equal(spans().length, 0);
});

t.test('a trace id that the caller names is sent, and has the span', async (t) => {
  const { clock, cluster, client, named } = await ground(t);
  const traceId = new Uint8Array(16).fill(0xcd);
  await advanced(clock, client.acquire('a', { session: null, traceId }));
  t.same(tracesOf(cluster, CommandKind.Acquire), ['cd'.repeat(16)]);
  t.equal(named('acquire')[0]?.spanContext().traceId, 'cd'.repeat(16));
});

t.test('what the client does by itself begins a trace of its own', async (t) => {
  const { clock, cluster, client, named, tracer } = await ground(t);
  const span = tracer.startSpan('nightly job');
  const { traceId } = span.spanContext();
  await context.with(trace.setSpan(context.active(), span), async () => {
    await advanced(clock, client.acquire('a', { session: null, ttlMs: 3_000 }));
    await advanced(clock, client.openSession({ ttlMs: 3_000 }));
  });
  await clock.until(() => cluster.seen(CommandKind.Renew).length >= 2, 5_000);
  await clock.until(() => cluster.seen(CommandKind.SessionRenew).length >= 2, 5_000);
  await clock.advance(10);
  const renewals = [...named('renew'), ...named('session_renew')];
  t.ok(renewals.length >= 4);
  for (const renewal of renewals) {
    t.not(renewal.spanContext().traceId, traceId);
    t.equal(renewal.parentSpanContext, undefined);
  }
  const sent = tracesOf(cluster, CommandKind.Renew);
  t.equal(new Set(sent).size, sent.length, 'one each');
});

t.test('an error of the cluster is the code of the span; a busy lock is no failure', async (t) => {
  const { clock, client, named } = await ground(t);
  const held = await advanced(clock, client.acquire('a', { session: null }));
  await rejected(advanced(clock, client.acquire('a', { session: null, waitMs: 0 })), 'LOCK_BUSY');
  const [, busy] = named('acquire');
  t.equal(busy?.attributes['holdfast.code'], 'LOCK_BUSY');
  t.equal(busy?.status.code, 0);
  await advanced(clock, held.release());
  const closing = client.close();
  await rejected(advanced(clock, client.get('a')), 'SHUTTING_DOWN');
  await advanced(clock, closing);
  const [failed] = named('get');
  t.equal(failed?.status.code, 2);
  t.equal(failed?.attributes['holdfast.code'], 'SHUTTING_DOWN');
  t.equal(failed?.attributes['holdfast.outcome'], 'none');
});

t.test('without a provider nothing is sent and nothing is made', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.acquire('a', { session: null }));
  t.same(tracesOf(cluster, CommandKind.Acquire), [null]);
  await advanced(clock, client.close());
});

t.test('the standard variables say whether the global provider is used', async (t) => {
  const cases: readonly (readonly [Record<string, string>, boolean])[] = [
    [{}, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }, true],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, false],
    [{ OTEL_TRACES_EXPORTER: 'console' }, true],
    [{ OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }, false],
    [{ OTEL_SDK_DISABLED: 'TRUE', OTEL_TRACES_EXPORTER: 'otlp' }, false],
  ];
  for (const [environment, wanted] of cases) {
    t.equal(asksForTraces(environment), wanted, JSON.stringify(environment));
  }
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  process.env['OTEL_TRACES_EXPORTER'] = 'otlp';
  t.teardown(() => delete process.env['OTEL_TRACES_EXPORTER']);
  const client = await connectedTo(clock, cluster);
  await advanced(clock, client.acquire('early', { session: null }));
  const memory = new InMemorySpanExporter();
  const provider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter: memory })],
  });
  trace.setGlobalTracerProvider(provider);
  t.teardown(() => trace.disable());
  await advanced(clock, client.acquire('late', { session: null }));
  const [early, late] = tracesOf(cluster, CommandKind.Acquire);
  t.equal(early, null, 'no SDK was registered yet');
  t.match(late, /^[0-9a-f]{32}$/);
  t.equal(memory.getFinishedSpans().length, 1);
  await advanced(clock, client.close());
});

t.test('what is no provider is refused', async (t) => {
  const clock = new FakeClock();
  for (const tracerProvider of [{}, null, 7]) {
    const options = { tracerProvider } as unknown as ConnectOptions;
    const error = await rejected(
      connectedTo(clock, new FakeCluster(clock), options),
      'BAD_REQUEST',
    );
    t.match(error.message, /tracerProvider/);
  }
  t.ok(new Tracing(undefined), 'the global one stands in');
});

/** As many HTTP requests as a node answers at once, all of them waiting, and one more. */

import http from 'node:http';
import t, { type Test } from 'tap';
import { HTTP_CALLS_MAX } from '../../../src/limits.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { Cluster } from '../harness.js';
import { type HttpAnswer, HttpClient } from '../http-client.js';
import { buildNodeImage } from '../node-image.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import { acquireOperation, grantIn, releaseOperation, renewOperation } from './operations.js';
import { RawConnection } from './raw-connection.js';
import { isFull } from './size.js';

const TTL_MS = 3_600_000;
const WAIT_MS = 600_000;
/** In small, nodes whose bound is so low; in full size the product as it is. */
const LOW_BOUND = 32;
const BOUND = isFull ? HTTP_CALLS_MAX : LOW_BOUND;
const FILL_MS_MAX = 120_000;

const low = {
  file: 'limits.ts',
  find: 'export const HTTP_CALLS_MAX = 8_192;',
  replace: `export const HTTP_CALLS_MAX = ${LOW_BOUND};`,
};
const program = isFull ? null : buildNodeImage(t, 'http-bound', [low]);
const cluster = await Cluster.start({
  test: t,
  nodes: 3,
  ...(program === null ? {} : { nodeProgram: () => program }),
});
const leader = await cluster.leader();
const follower = cluster.nodeIds.find((nodeId) => nodeId !== leader) ?? 0;
const client = new HttpClient();
t.teardown(() => client.close());
await client.learn(cluster.httpUrl(leader));

async function gauge(nodeId: number, name: string): Promise<number> {
  const { text } = await client.get(`${cluster.httpUrl(nodeId)}/metrics`);
  return Number(new RegExp(`^holdfast_${name}(?:\\{[^}]*\\})? (\\d+)$`, 'm').exec(text)?.[1]);
}

/** Long polls on a lock that is held, each on a connection of its own. */
class Waiters {
  readonly statuses: number[] = [];
  readonly failures: string[] = [];
  private readonly agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });

  constructor(
    private readonly base: string,
    private readonly lock: string,
  ) {}

  start(from: number, count: number): void {
    for (let at = from; at < from + count; at += 1) this.ask(at);
  }

  close(): void {
    this.agent.destroy();
  }

  private ask(at: number): void {
    const text = JSON.stringify({ ttl_ms: TTL_MS, wait_ms: WAIT_MS });
    const headers = {
      'content-type': 'application/json',
      'content-length': text.length,
      'idempotency-key': `${this.lock}-${at}`,
      'holdfast-deadline-ms': '60000',
    };
    const url = `${this.base}/v1/locks/${this.lock}/acquire`;
    const request = http.request(url, { method: 'POST', agent: this.agent, headers }, (answer) => {
      this.statuses.push(answer.statusCode ?? 0);
      answer.resume();
    });
    request.on('error', (error) => this.failures.push(error.message));
    request.end(text);
  }
}

function demandRefusal(t: Test, { status, headers, json }: HttpAnswer, what: string): void {
  t.equal(status, 429, what);
  t.match(json.error, { code: 'OVERLOADED', retryable: true, outcome: 'none' });
  t.ok(Number(headers['retry-after']) >= 1, 'with the time to come back');
}

for (const nodeId of [leader, follower]) {
  const who = nodeId === leader ? 'the leader' : 'a follower';
  t.test(`one request more than ${who} answers at once is refused by type`, async (t) => {
    const lock = `busy-${nodeId}`;
    const base = cluster.httpUrl(nodeId);
    const connection = await RawConnection.open(cluster.endpoint(leader));
    const held = grantIn(await connection.call(acquireOperation(lock, lock, TTL_MS)));
    const waiters = new Waiters(base, lock);
    t.teardown(() => waiters.close());
    const startedMs = performance.now();
    waiters.start(0, BOUND);
    const isFilled = async (): Promise<boolean> => (await gauge(nodeId, 'http_calls')) === BOUND;
    await waitFor('all to wait', isFilled, FILL_MS_MAX);
    figure(t, `${BOUND} waits at ${who}`, `${Math.round(performance.now() - startedMs)} ms`);

    const key = { 'idempotency-key': `more-${nodeId}` };
    const more = await client.post(
      `${base}/v1/locks/other-${nodeId}/acquire`,
      { ttl_ms: TTL_MS },
      key,
    );
    demandRefusal(t, more, 'an acquire');
    demandRefusal(t, await client.get(`${base}/v1/locks/${lock}`), 'a read');
    for (const route of ['/livez', '/readyz', '/v1/cluster/status', '/openapi.json']) {
      t.equal((await client.get(`${base}${route}`)).status, 200, `${route} is answered`);
    }
    t.equal((await connection.call(renewOperation(held.leaseId))).code, ErrorCode.Ok);
    const renewed = await client.post(`${base}/v1/leases/${held.leaseId}/renew`, {});
    t.equal(renewed.status, 200, 'what keeps a lease is refused last');
    t.equal(waiters.statuses.length, 0, 'and all of them still wait');

    const released = await connection.call(releaseOperation(`r-${nodeId}`, held.leaseId));
    t.equal(released.code, ErrorCode.Ok);
    await waitFor('the first waiter to be granted', () => waiters.statuses.length === 1);
    t.same([waiters.statuses, waiters.failures], [[200], []]);
    const again = await client.post(
      `${base}/v1/locks/other-${nodeId}/acquire`,
      { ttl_ms: TTL_MS },
      key,
    );
    t.equal(again.status, 200, 'its place is free, and the key that was refused is new');
    waiters.close();
    await waitFor('the others to be forgotten', async () => {
      return (await gauge(nodeId, 'http_calls')) === 0;
    });
    connection.close();
  });
}

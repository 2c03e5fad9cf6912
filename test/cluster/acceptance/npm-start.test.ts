import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { connect } from '../../../src/client/index.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { freePorts } from '../harness.js';
import { waitFor } from '../wait-for.js';
import { NpmStart } from './npm-start.js';
import { acquireOperation, type Grant, grantIn, renewOperation } from './operations.js';
import { RawConnection } from './raw-connection.js';

const HOUR_MS = 3_600_000;

/** A base port whose ten ports are probably free: below the range that the system gives away. */
async function basePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return 20_000 + (port % 10_000);
}

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-npm-start-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));
const port = await basePort();
const endpoints = [1, 2, 3, 4, 5].map((nodeId) => `127.0.0.1:${port + nodeId}`);

/** Acquires at the node that leads, with a lease that nobody's end gives back. */
async function acquireForLong(requestId: string, name: string): Promise<Grant> {
  return waitFor('an acquire at the leader', async () => {
    for (const endpoint of endpoints) {
      const connection = await RawConnection.open(endpoint);
      const reply = await connection.call(acquireOperation(requestId, name, HOUR_MS));
      connection.close();
      if (reply.code === ErrorCode.Ok) return grantIn(reply);
    }
    return null;
  });
}

async function holderToken(name: string): Promise<number | undefined> {
  const client = await connect({ endpoints, deadlineMs: 30_000 });
  const view = await client.get(name);
  await client.close();
  return view.holder?.token;
}

async function renewAnywhere(leaseId: string): Promise<number[]> {
  const codes: number[] = [];
  for (const endpoint of endpoints) {
    const connection = await RawConnection.open(endpoint);
    const reply = await connection.call(renewOperation(leaseId));
    connection.close();
    codes.push(reply.code);
  }
  return codes;
}

/** Ends a run with its five nodes, and waits until all of it is gone. */
async function end(t: Test, run: NpmStart, how: () => void): Promise<void> {
  t.equal(run.servePids().length, 5, 'five serve processes');
  how();
  await run.ended;
  await waitFor('every node to end', () => run.servePids().length === 0);
}

t.test('npm start says once that it is ready, and its end is the end of all five', async (t) => {
  const run = new NpmStart(t, folder, port);
  await run.ready();
  t.equal(run.readyLines.length, 1);
  for (const endpoint of endpoints) t.match(run.readyLines[0], endpoint);
  const held = await acquireForLong('first', 'acceptance/held');
  await end(t, run, () => run.pressControlC());

  await t.test('started again it knows its locks, and tokens go on rising', async (t) => {
    const again = new NpmStart(t, folder, port);
    await again.ready();
    t.equal(await holderToken('acceptance/held'), held.token, 'held by the same token');
    t.ok((await renewAnywhere(held.leaseId)).includes(ErrorCode.Ok), 'its lease id renews it');
    const same = await acquireForLong('first', 'acceptance/held');
    t.strictSame(same, held, 'the same request id gives the same lease');
    const next = await acquireForLong('second', 'acceptance/other');
    t.ok(next.token > held.token, `token ${next.token} after ${held.token}`);
    // As a supervisor would: the signal reaches npm and nobody else.
    await end(t, again, () => again.signal('SIGTERM'));
  });
});

/**
 * An old owner resumes after a long pause: the case of record.
 *
 * Owns: its steps. (1) A takes the lock, writes, and is stopped past its TTL. (2) B is granted the
 * lock and writes. (3) A goes on and writes before it has looked at anything. The guard must refuse
 * it. Needs nothing but clients, so the canary plays it on a cluster that others use.
 * Used by: table.ts, canary.ts.
 */
import { fenceOf } from '../../../guards/index.js';
import type { Drill, Stage } from '../drill.js';
import { demandRefused, demandWrote, writeAs } from './writing.js';

/** Of A; the least that a cluster grants unless it was founded otherwise is 1 s. */
const TTL_MS = 1_500;
const WAIT_MS = 30_000;

export async function playPausedOwner(stage: Stage): Promise<void> {
  const { story, ledger, client, lock } = stage;
  const a = await stage.startActor({ ttlMs: TTL_MS });
  story.tell(`A holds the lock, TTL ${TTL_MS} ms`, { revision: a.revision, token: a.token });
  demandWrote(stage, 'A', await writeAs(a, 'A'));
  await a.stop();
  story.tell('A is stopped (SIGSTOP), and its lease is renewed no more');
  const b = await client.acquire(lock, { waitMs: WAIT_MS });
  ledger.granted(b);
  const facts = { revision: b.revision, token: b.token };
  story.tell('the lease of A has run out, and B holds the lock', facts);
  story.demand('the next token is larger', b.token > a.token, `${b.token} after ${a.token}`);
  stage.resource.write(fenceOf(b), 'B');
  story.tell('B has written', { token: b.token });
  a.order({ type: 'write', writer: 'A, late' });
  a.cont();
  story.tell('A goes on (SIGCONT) and writes, without a look at its lease', { token: a.token });
  demandRefused(stage, a, await a.next(), b.token);
  const { code } = await a.lost();
  story.tell(`A is told by its client that the lease was lost: ${code}`);
  const { revision } = await b.release();
  ledger.released(b, revision);
  story.tell('B gives the lock back', { revision, token: b.token });
}

export const pausedOwner: Drill = {
  name: 'paused-owner',
  title: 'an old owner resumes after a long pause',
  protection: 'the guard at the resource',
  play: playPausedOwner,
};

/**
 * A client reaches the resource after losing its lease: it is cut off from the cluster, not from
 * what it writes to.
 *
 * Owns: its steps. (1) A holds the lock, B waits in line. (2) A's network to the cluster becomes a
 * black hole. (3) A's client says lost; then A's lease ends and B is granted. (4) B writes, then a
 * write of A arrives that was under way. The guard must refuse it. Used by: table.ts.
 */
import { fenceOf } from '../../../guards/index.js';
import type { Drill, Stage } from '../drill.js';
import { monotonicMs } from '../story.js';
import { demandRefused, demandWrote, writeAs } from './writing.js';

const TTL_MS = 1_500;
const WAIT_MS = 30_000;

async function play(stage: Stage): Promise<void> {
  const { story, ledger, client, lock } = stage;
  const a = await stage.startActor({ ttlMs: TTL_MS });
  story.tell(`A holds the lock, TTL ${TTL_MS} ms`, { revision: a.revision, token: a.token });
  demandWrote(stage, 'A', await writeAs(a, 'A'));
  const granted = client.acquire(lock, { waitMs: WAIT_MS });
  a.order({ type: 'cut' });
  await a.next();
  story.tell('A is cut off from the cluster, not from the resource; B waits in line');
  const b = await granted;
  const grantedAtMs = monotonicMs();
  ledger.granted(b);
  const facts = { revision: b.revision, token: b.token };
  story.tell('the lease of A has run out, and B is granted the lock', facts, grantedAtMs);
  stage.resource.write(fenceOf(b), 'B');
  story.tell('B has written', { token: b.token });
  const late = await writeAs(a, 'A, late');
  const state = 'state' in late ? late.state : late.type;
  story.demand('A, asked after the grant of B, knows that it was lost', state === 'lost', state);
  demandRefused(stage, a, late, b.token);
  const { code, atMs } = await a.lost();
  story.tell(`A was told by its client that the lease was lost: ${code}`, {}, atMs);
  const { revision } = await b.release();
  ledger.released(b, revision);
  story.tell('B gives the lock back', { revision, token: b.token });
}

export const lostLease: Drill = {
  name: 'lost-lease',
  title: 'a client reaches the resource after losing its lease',
  protection: 'the guard at the resource',
  play,
};

/**
 * An administrator force-releases an active lock, whose holder lives and writes on.
 *
 * Owns: its steps. (1) A holds the lock, renews it and writes; B waits in line. (2) The lock is
 * released by force; B is granted it in the same entry. (3) The barrier is raised at the guard.
 * (4) A, which has heard nothing yet, writes: the guard must refuse it. (5) B writes. The barrier
 * is what makes step 4 safe before B has written anything. Used by: table.ts.
 */
import { fenceOf } from '../../../guards/index.js';
import type { Drill, Stage } from '../drill.js';
import { until } from '../until.js';
import { demandRefused, demandWrote, writeAs } from './writing.js';

/** A renews it by itself each third of this, and hears then that it lost. */
const TTL_MS = 6_000;
const WAIT_MS = 30_000;
const SAID = { actor: 'holdfast drill', reason: 'the holder is taken to hang' };

async function inLine({ client, lock }: Stage): Promise<void> {
  await until('a waiter in line', async () => ((await client.get(lock)).waiters > 0 ? true : null));
}

async function play(stage: Stage): Promise<void> {
  const { story, ledger, client, lock, resource, operationId } = stage;
  const a = await stage.startActor({ ttlMs: TTL_MS });
  story.tell(`A holds the lock, TTL ${TTL_MS} ms`, { revision: a.revision, token: a.token });
  demandWrote(stage, 'A', await writeAs(a, 'A'));
  const granted = client.acquire(lock, { waitMs: WAIT_MS });
  await inLine(stage);
  story.tell('B waits in line');
  const named = { ...SAID, requestId: `${operationId}/force` };
  const forced = await client.admin.forceRelease(lock, { token: a.token }, named);
  const { barrierToken } = forced;
  ledger.forced({ name: lock, token: forced.token }, barrierToken, named.requestId);
  story.tell('the lock is released by force', { revision: barrierToken, token: forced.token });
  const isMeant = forced.token === a.token && barrierToken > a.token;
  story.demand('it ends the lease of A, with a larger barrier', isMeant, JSON.stringify(forced));
  const again = await client.admin.forceRelease(lock, { token: a.token }, named);
  const isSame = again.barrierToken === barrierToken;
  story.demand('asked again by the same id, it has one barrier', isSame, `${again.barrierToken}`);
  const b = await granted;
  ledger.granted(b);
  story.tell('B is granted the lock', { revision: b.revision, token: b.token });
  const isNext = b.token === barrierToken + 1;
  story.demand('the next in line is granted right above the barrier', isNext, `${b.token}`);
  await resource.raise(lock, barrierToken);
  story.tell('the barrier is raised at the guard', { token: barrierToken });
  const late = await writeAs(a, 'A, late');
  const state = 'state' in late ? late.state : late.type;
  story.tell(`A, whose client says ${state}, has tried to write`, { token: a.token });
  demandRefused(stage, a, late, barrierToken);
  resource.write(fenceOf(b), 'B');
  story.tell('B has written', { token: b.token });
  const { code } = await a.lost();
  story.tell(`A is told by its client that the lease was lost: ${code}`);
  const { revision } = await b.release();
  ledger.released(b, revision);
  story.tell('B gives the lock back', { revision, token: b.token });
}

export const forcedRelease: Drill = {
  name: 'forced-release',
  title: 'an administrator force-releases an active lock',
  protection: 'the guard at the resource, and its barrier',
  play,
};

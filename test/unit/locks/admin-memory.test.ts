/** What operators and guards said leaves no bytes behind once its results are forgotten. */

import t from 'tap';
import type { LockMachine } from '../../../src/core/locks/lock-machine.js';
import type { MachineState } from '../../../src/core/locks/machine-state.js';
import {
  acquire,
  disable,
  enable,
  expireSession,
  forceRelease,
  LockDriver,
  open,
  reportRefusal,
} from './lock-driver.js';

const ROUNDS = 3_000;
const RETENTION_MS = 60_000;

/** Bytes of the strings that the state holds. */
function bytesOf({ machine }: LockDriver): number {
  const production = Reflect.get(machine, 'machine') as LockMachine;
  return (Reflect.get(production, 'state') as MachineState).store.bytesUsed;
}

t.test('rules, reasons, passing names and metadata are given back', async (t) => {
  const log = new LockDriver({ idleLocksMax: 0, resultRetentionMs: RETENTION_MS });
  log.after(0);
  const before = bytesOf(log);
  let most = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const name = `a name of round ${round}`;
    log.after(1, open(`o${round}`), acquire(name, `i${round}`, { metadata: 'm'.repeat(200) }));
    log.after(
      1,
      disable(name, `d${round}`, { metadata: 'd'.repeat(500) }),
      disable(name, `p${round}`, { isPrefix: true }),
      forceRelease(name, `f${round}`),
      forceRelease(name, `g${round}`),
      reportRefusal(name, 1, 2, `r${round}`, { metadata: 'redis' }),
      enable(name, `e${round}`),
      enable(name, `q${round}`, { isPrefix: true }),
      expireSession(round + 1, `s${round}`),
      expireSession(round + 1, `t${round}`),
    );
    most = Math.max(most, bytesOf(log));
  }
  t.ok(most - before > 200, 'they were held while they were needed');
  for (let entry = 0; entry < 40; entry += 1) log.after(RETENTION_MS);
  const { results, sessions, disabled, locks } = log.machine.counts;
  t.strictSame(
    { results, sessions, disabled, locks },
    {
      results: 0,
      sessions: 0,
      disabled: 0,
      locks: 0,
    },
  );
  t.equal(bytesOf(log), before);
});

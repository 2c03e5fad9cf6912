/** The names that loads lock, in turn or by Zipf's law, and when a closed loop goes on. */
import t from 'tap';
import { ClosedLoop } from '../../../loadtest/closed-loop.js';
import type { Seat } from '../../../loadtest/fleet.js';
import { makeNames, RoundRobin, Zipf } from '../../../loadtest/load.js';
import { CommandKind } from '../../../src/core/locks/command.js';
import { OutcomeCode } from '../../../src/core/locks/outcome.js';
import { ErrorCode } from '../../../src/wire/errors.js';

t.test('a name comes again only after every other', async (t) => {
  const names = new RoundRobin(makeNames(3));
  const taken = Array.from({ length: 7 }, () => Buffer.from(names.take()).toString());
  const wanted = ['load/0', 'load/1', 'load/2', 'load/0', 'load/1', 'load/2', 'load/0'];
  t.same(taken, wanted);
});

t.test('Zipf draws each rank in proportion to 1 / rank^0.99', async (t) => {
  const names = 1_000;
  const draws = 400_000;
  const zipf = new Zipf(names, 0.99, 7);
  const counts = new Float64Array(names);
  for (let i = 0; i < draws; i += 1) {
    const rank = zipf.draw();
    counts[rank] = (counts[rank] as number) + 1;
  }
  let sum = 0;
  for (let rank = 1; rank <= names; rank += 1) sum += rank ** -0.99;
  for (const rank of [1, 2, 5, 20, 100]) {
    const wanted = (rank ** -0.99 / sum) * draws;
    const found = counts[rank - 1] as number;
    // Five standard deviations: a seed is fixed, so this does not flicker.
    const apart = Math.abs(found - wanted);
    t.ok(apart < 5 * Math.sqrt(wanted), `rank ${rank}: ${found} draws, wanted ${wanted}`);
  }
  t.ok(
    counts.every((count, rank) => count > 0 || rank > 100),
    'no rank is out of reach',
  );
});

t.test('a seat goes on after any answer but that the leader is gone', async (t) => {
  const loop = new ClosedLoop({
    host: '127.0.0.1',
    port: 1,
    connections: 1,
    inflight: 1,
    names: 3,
    sessionTtlMs: 1_000,
  });
  let asked = 0;
  const lane = { acquire: () => (asked += 1) };
  const seat = { lane, isHolding: false } as unknown as Seat;
  const goesOn = (code: number): boolean => {
    const before = asked;
    loop.onAnswer(seat, CommandKind.Acquire, code);
    return asked > before;
  };
  for (const code of [OutcomeCode.Ok, OutcomeCode.LockBusy, ErrorCode.Overloaded]) {
    t.ok(goesOn(code), `${code}`);
  }
  for (const code of [ErrorCode.NotLeader, ErrorCode.NoQuorum]) t.notOk(goesOn(code), `${code}`);
});

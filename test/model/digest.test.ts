/**
 * The state digest says whether two states are the same, and nothing else does.
 *
 * The naive machine's whole state as a text is the oracle: along random logs the digest changes
 * when and only when that text does, and a second machine with the same log agrees at every entry.
 */

import t from 'tap';
import { CommandKind } from '../../src/core/locks/command.js';
import { checkLogs, runsOr } from './check-logs.js';
import { Comparison } from './comparison.js';
import { Coverage } from './coverage.js';
import { smallSettings } from './drafts.js';
import { disable, enable, fullMachine } from './full-machine.js';
import type { ModelCommand } from './model-types.js';
import { snapshotOf } from './naive-snapshot.js';
import { ProductionMachine } from './production-machine.js';

const RUNS_SMOKE = 60;
const ENTRIES_MAX = 80;

t.setTimeout(0);

/** The first difference of two texts, with some of what is around it. */
function firstDifference(before: string, after: string): string {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at += 1;
  return `${before.slice(at - 200, at + 200)}\n${after.slice(at - 200, at + 200)}`;
}

t.test('the digest changes exactly when the state does', async (t) => {
  const runs = runsOr(RUNS_SMOKE);
  let changes = 0;
  let stays = 0;
  checkLogs(t, runs, ENTRIES_MAX, (log) => {
    const comparison = new Comparison(log);
    let snapshot = snapshotOf(comparison.naive);
    let digest = comparison.production.digest();
    for (const entry of log.entries) {
      comparison.applyEntry(entry, new Coverage());
      const nextSnapshot = snapshotOf(comparison.naive);
      const nextDigest = comparison.production.digest();
      const isSame = nextSnapshot === snapshot;
      if (isSame !== (nextDigest === digest)) {
        const what = isSame ? 'digest changed alone' : firstDifference(snapshot, nextSnapshot);
        throw new Error(`${what}\n${comparison.describe()}`);
      }
      if (isSame) stays += 1;
      else changes += 1;
      snapshot = nextSnapshot;
      digest = nextDigest;
    }
  });
  t.ok(changes > 5 * runs, `${changes} entries changed the state`);
  t.ok(stays > runs, `${stays} entries did not`);
});

t.test('the same log gives the same digest, asked for at every entry or at the end', async (t) => {
  checkLogs(t, runsOr(RUNS_SMOKE), ENTRIES_MAX, (log) => {
    const comparison = new Comparison(log);
    for (const entry of log.entries) comparison.applyEntry(entry, new Coverage());
    const often = new ProductionMachine(log.settings);
    for (const { stamp, commands } of comparison.entries) {
      often.apply(stamp, commands);
      often.digest();
    }
    if (often.digest() !== comparison.production.digest()) throw new Error(comparison.describe());
  });
});

/** A release of a lease never issued: its stored answer is the only record it leaves. */
function refusedRelease(id: string): ModelCommand {
  return {
    kind: CommandKind.Release,
    principal: 1,
    lease: 900_000_001,
    request: { kind: 'free', id },
  };
}

t.test('the order in which equal records were made does not matter', async (t) => {
  const first = new ProductionMachine(smallSettings());
  const second = new ProductionMachine(smallSettings());
  const ids = ['r1', 'r2', 'r3'];
  first.apply(5, ids.map(refusedRelease));
  second.apply(5, [...ids].reverse().map(refusedRelease));
  t.equal(first.digest(), second.digest());
});

t.test('one record that differs makes another digest', async (t) => {
  const digests = ['r1', 'r2', 'R1', 'r'].map((id) => {
    const machine = new ProductionMachine(smallSettings());
    machine.apply(5, [refusedRelease(id)]);
    return machine.digest();
  });
  t.equal(new Set(digests).size, digests.length);
});

t.test('another key gives another digest for the same log', async (t) => {
  const digests = [1, 2].map((word) => {
    const machine = new ProductionMachine(smallSettings(), Uint32Array.of(word, 0, 0, 0));
    machine.apply(5, [refusedRelease('r')]);
    return machine.digest();
  });
  t.not(digests[0], digests[1]);
});

t.test('a state without rules has the digest that it had before there were any', async (t) => {
  // By the machine of the build before the first that knew rules, from the same log.
  t.equal(fullMachine().digest(), '827a1bb8b8c8c3d54dbe8bff4ccbe1ba');
});

/** Advances the revision by one and leaves nothing behind but its result. */
function reportOf(id: string): ModelCommand {
  const request = { kind: 'free', id } as const;
  const about = { name: 'a', token: 1, mark: 2, refusals: 1 };
  return { kind: CommandKind.ReportRefusal, principal: 1, request, ...about };
}

/** The digest of a machine that applied these, when the results of them are forgotten. */
function digestAfter(...commands: ModelCommand[]): string {
  const machine = new ProductionMachine({ ...smallSettings(), expiriesPerEntryMax: 9 });
  machine.apply(5, commands);
  machine.apply(5_000, []);
  if (machine.counts.results !== 0) throw new Error('a result is not forgotten');
  return machine.digest();
}

t.test('a rule changes the digest, by all that it says, until it is taken away', async (t) => {
  const without = digestAfter(reportOf('r1'), reportOf('r2'));
  const wider = disable('a', true, 'd');
  const rules = [
    disable('a', false, 'd'),
    wider,
    disable('b', true, 'd'),
    disable('', true, 'd'),
    { ...wider, principal: 3 },
    { ...wider, owner: 'another' },
    { ...wider, metadata: 'another' },
  ];
  const digests = [
    without,
    ...rules.map((rule) => digestAfter(reportOf('r1'), rule)),
    digestAfter(wider, reportOf('r1')),
  ];
  t.equal(new Set(digests).size, rules.length + 2, 'each rule is another state');
  t.equal(digestAfter(wider, enable('a', true, 'e')), without);
});

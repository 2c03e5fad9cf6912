/**
 * A machine restored from a snapshot is the machine that wrote it, for everything that follows.
 *
 * Along random logs the production machine is replaced, at random entries, by one restored from its
 * rows; the naive machine, which is never replaced, says what every later command must answer, and
 * a second production machine, never replaced either, has the same digest at the end. What a row
 * can lose is therefore found by what it decides: order of queues, of idleness, of retention.
 */

import fc from 'fast-check';
import t from 'tap';
import { CommandKind } from '../../src/core/locks/command.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { MachineRestorer } from '../../src/core/locks/snapshot-restorer.js';
import { RowKind } from '../../src/core/locks/snapshot-rows.js';
import { checkLogs, runsOr } from './check-logs.js';
import { Comparison } from './comparison.js';
import { Coverage } from './coverage.js';
import { enable, machineWithRules, RULE_REVISIONS } from './full-machine.js';
import type { ModelCommand } from './model-types.js';
import { ProductionMachine } from './production-machine.js';

const RUNS_SMOKE = 150;
const ENTRIES_MAX = 120;

t.setTimeout(0);

/** A cheap draw from what the log itself holds, so that a failing log fails again. */
function isRestartDue(stamp: number, entry: number): boolean {
  return Math.imul(stamp + 7 * entry, 0x9e3779b1) >>> 28 < 4;
}

t.test('a restored machine answers, tells and digests like the one that wrote', async (t) => {
  let restarts = 0;
  let chunks = 0;
  checkLogs(t, runsOr(RUNS_SMOKE), ENTRIES_MAX, (log) => {
    const comparison = new Comparison(log);
    for (const [position, entry] of log.entries.entries()) {
      comparison.applyEntry(entry, new Coverage());
      const stamp = comparison.entries.at(-1)?.stamp ?? 0;
      if (!isRestartDue(stamp, position)) continue;
      try {
        chunks += comparison.production.restart(64 + (position % 900), 1 + (position % 7)).length;
      } catch (error) {
        throw new Error(`${String(error)}\n${comparison.describe()}`);
      }
      restarts += 1;
    }
    const straight = new ProductionMachine(log.settings);
    for (const { stamp, commands } of comparison.entries) straight.apply(stamp, commands);
    if (straight.digest() !== comparison.production.digest()) {
      throw new Error(`the digests differ at the end\n${comparison.describe()}`);
    }
  });
  t.ok(restarts > 10 * RUNS_SMOKE, `${restarts} restarts`);
  t.ok(chunks > 3 * restarts, `${chunks} chunks`);
});

/** What a restorer says of these chunks, '' when it takes them. */
function faultOf(chunks: readonly Uint8Array[]): string {
  const restorer = new MachineRestorer(new Uint32Array(4), new Uint32Array(2));
  for (const chunk of chunks) {
    restorer.add(chunk);
    while (!restorer.step(100));
    if (restorer.fault !== '') return restorer.fault;
  }
  restorer.finish();
  return restorer.fault;
}

t.test('rows that are cut, doubled or out of order are refused, not half taken', async (t) => {
  const chunks = machineWithRules().snapshot(1);
  t.equal(faultOf(chunks), '');
  t.ok(chunks.length >= 12, 'a chunk for each row');
  for (let at = 0; at < chunks.length; at += 1) {
    const left = chunks.filter((_, position) => position !== at);
    t.not(faultOf(left), '', `row ${at} is missing`);
    const chunk = chunks[at] as Uint8Array;
    t.not(faultOf(chunks.with(at, chunk.subarray(0, -1))), '', `row ${at} is cut short`);
    t.not(faultOf(chunks.toSpliced(at, 0, chunk)), '', `row ${at} comes twice`);
  }
  t.not(faultOf([]), '', 'nothing is no snapshot');
  t.not(faultOf([...chunks, chunks[0] as Uint8Array]), '', 'nothing follows the last row');
});

t.test('any bytes at all are refused without a throw', async (t) => {
  const whole = Buffer.concat(machineWithRules().snapshot(1_000));
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.uint8Array({ maxLength: 40 }), (at, noise) => {
      const bytes = Uint8Array.from(whole);
      bytes.set(noise.subarray(0, whole.length - at), at);
      faultOf([bytes]);
    }),
    { numRuns: 3_000 },
  );
  t.pass();
});

t.test(
  'what is disabled is in a snapshot, oldest first, and can be enabled after it',
  async (t) => {
    const machine = machineWithRules();
    machine.restart(64, 3);
    t.equal(machine.counts.disabled, 3);
    const acquireOf = (name: string): ModelCommand => ({
      kind: CommandKind.Acquire,
      principal: 1,
      request: { kind: 'free', id: `try ${name}` },
      name,
    });
    const names = ['jobs/7', 'jobs/', 'exactly', 'exactly/not', 'job'];
    const step = machine.apply(20, names.map(acquireOf));
    t.strictSame(
      step.outcomes.map(({ code, revision }) => (code === OutcomeCode.Disabled ? revision : 0)),
      // The second rule covers jobs/7 as well, and is younger.
      [RULE_REVISIONS[0], RULE_REVISIONS[0], RULE_REVISIONS[2], 0, 0],
    );
    machine.apply(30, [enable('jobs/', true, 'enable'), enable('exactly', false, 'enable2')]);
    machine.restart(64, 3);
    t.equal(machine.counts.disabled, 1);
    const again = { ...acquireOf('jobs/7'), request: { kind: 'free', id: 'again' } as const };
    t.match(machine.apply(40, [again]).outcomes, [
      { code: OutcomeCode.Disabled, revision: RULE_REVISIONS[1] },
    ]);
  },
);

t.test('a rule without a name is refused', async (t) => {
  const chunks = machineWithRules().snapshot(1);
  const at = chunks.findIndex((chunk) => chunk[0] === RowKind.Disabled);
  const row = chunks[at] as Uint8Array;
  const name = Buffer.from(row).indexOf('jobs/');
  t.ok(name > 0);
  // A string of this length is absent, which is not the same as empty.
  const absent = Uint8Array.of(0xff, 0xff);
  const rest = row.subarray(name + 'jobs/'.length);
  const nameless = Buffer.concat([row.subarray(0, name - absent.length), absent, rest]);
  t.equal(faultOf(chunks.with(at, nameless)), 'a disabled name that is no name');
});

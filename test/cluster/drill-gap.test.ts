/**
 * Every drill must see a gap: one event is hidden from verify, and the drill ends with a status of
 * its own and names the revision.
 */

import t from 'tap';
import { DRILL_NAMES } from '../../src/cli/drills/names.js';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { runCli } from './cli.js';
import { scratch } from './drill-run.js';

const GAP =
  /the audit stream has every revision once, in order: \S+ at \d+: revision \d+ is missing/;

/** A drill starts six processes and mostly waits: two at a time do not disturb each other. */
t.jobs = 2;

for (const name of DRILL_NAMES) {
  t.test(`drill ${name} sees that a revision is missing`, { buffered: true }, async (t) => {
    const environment = { ...scratch(t).environment, HOLDFAST_DRILL_TEST: 'gap' };
    const end = await runCli(t, ['drill', name], environment);
    t.equal(end.status, ExitCode.Refused, end.err);
    t.match(end.err, GAP);
    t.match(end.out, /UNDER TEST: one event was hidden from verify/);
    t.match(end.out, /NOT complete, in [\d.]+ s\n$/);
  });
}

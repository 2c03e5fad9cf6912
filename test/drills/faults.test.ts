/**
 * Every drill must be able to fail: with what it relies on left out, it ends with a status of its
 * own and says what was broken.
 */

import { readdirSync } from 'node:fs';
import t from 'tap';
import { DRILL_NAMES, type DrillName } from '../../src/cli/drills/names.js';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { runCli } from '../cluster/cli.js';
import { scratch } from '../cluster/drill-run.js';

/** What each drill must say when its protection is left out. */
const VIOLATED: Readonly<Record<DrillName, RegExp>> = {
  'paused-owner': /no write is done under a token below an earlier one: A, late wrote with token/,
  'leader-change': /the renewal is done by the next leader: \{"type":"failed"/,
  'lost-lease': /no write is done under a token below an earlier one: A, late wrote with token/,
  'watch-compacted': /the watcher believes what the cluster says: .*the watcher believes \d+/,
  'forced-release': /no write is done under a token below an earlier one: A, late wrote with token/,
  'lost-majority': /every lock is held by its token again: .*was acknowledged at \d+, and is not/,
  'lost-zone': /the other zones serve within 5000 ms: without service for/,
  'full-disk': /the other nodes serve within 5000 ms: without service for/,
};

/** A drill starts six processes and mostly waits: two at a time do not disturb each other. */
t.jobs = 2;

for (const name of DRILL_NAMES) {
  t.test(`drill ${name} fails without what it relies on`, { buffered: true }, async (t) => {
    const { folder, environment } = scratch(t);
    const mode = { HOLDFAST_DRILL_TEST: 'unprotected' };
    const end = await runCli(t, ['drill', name], { ...environment, ...mode });
    t.equal(end.status, ExitCode.Refused, end.err);
    t.match(end.err, /DRILL_FAILED/);
    t.match(end.err, VIOLATED[name]);
    t.match(end.out, /UNDER TEST: what the drill relies on was left out/);
    t.match(end.out, /NOT complete, in [\d.]+ s\n$/);
    t.same(readdirSync(folder), [], 'nothing is left behind');
  });
}

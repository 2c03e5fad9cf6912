/** The audit row of what operators and guards said: who asked, why, which session, how often. */

import t from 'tap';
import { CommandKind } from '../../../src/core/locks/command.js';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import { type AuditedEvent, AuditRows, auditEventOf } from '../../../src/wire/audit.js';
import { ENTROPY_BYTES, EntryWriter } from '../../../src/wire/entry.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { packOurs } from './oracle.js';

const SESSION = Uint8Array.from({ length: 16 }, (_, index) => 0xe0 + index);
const LEASE = Uint8Array.from({ length: 16 }, (_, index) => 0x40 + index);
const HEX = Buffer.from(SESSION).toString('hex');
const CLUSTER = '0'.repeat(32);
const UTF8 = new TextEncoder();

/** The entry 310 at 9,600 ms that holds these operations, each of principal 2. */
function rowsOf(...operations: PackValue[][]): AuditRows {
  const writer = new EntryWriter();
  writer.open();
  for (const operation of operations) {
    const bytes = packOurs(operation);
    writer.addOperation(2, 0, bytes, 0, bytes.length);
  }
  const rows = new AuditRows();
  rows.open(310, writer.close(9_600, 1, new Uint8Array(ENTROPY_BYTES)));
  return rows;
}

/** An event that the operation at `position` caused. */
function eventAt(position: number, fields: Partial<AuditedEvent>): AuditedEvent {
  const none = { revision: 7, kind: 0, token: 0, place: 0, cause: 0, principal: 1 };
  return { ...none, ...fields, position };
}

function jsonOf(rows: AuditRows, event: AuditedEvent, name = 'a'): unknown {
  return auditEventOf(rows.row(event, UTF8.encode(name)), CLUSTER);
}

const HEAD: readonly PackValue[] = ['op-1', null, null, null];
const SAID: readonly PackValue[] = ['änna', 'it hangs'];
const FORCE: PackValue[] = [CommandKind.ForceRelease, ...HEAD, 'a', LEASE, 41, ...SAID];

t.test('a row has seventeen elements, the last three of what was said', async (t) => {
  const rows = rowsOf(FORCE, [CommandKind.Release, null, null, null, null, LEASE]);
  const forced = { kind: EventKind.Ended, token: 41, cause: LeaseEnd.Forced };
  const head = [7, EventKind.Ended, 'a', 41, 0, LeaseEnd.Forced, 1, 9_600, 310];
  t.strictSame(rows.row(eventAt(0, forced), UTF8.encode('a')), [
    ...head,
    2,
    CommandKind.ForceRelease,
    'op-1',
    null,
    null,
    'änna',
    'it hangs',
    null,
  ]);
  t.strictSame(
    rows.row(eventAt(1, forced), UTF8.encode('a')).slice(9),
    [2, CommandKind.Release, null, null, null, null, null, null],
    'nobody says why a client releases',
  );
  t.strictSame(
    rows.row(eventAt(-1, forced), UTF8.encode('a')).slice(9),
    [0, null, null, null, null, null, null, null],
    'time needs no reason',
  );
  t.equal(rows.row(eventAt(0, forced), UTF8.encode('a'))[14], 'änna', 'asked for again');
});

t.test('a forced end and a refused one say who asked and why, never the lease', async (t) => {
  const rows = rowsOf(FORCE);
  const ended = jsonOf(rows, eventAt(0, { kind: EventKind.Ended, cause: LeaseEnd.Forced }));
  t.match(ended, {
    type: 'ended',
    cause: 'forced',
    command: 'force_release',
    request_id: 'op-1',
    session_id: null,
    actor: 2,
    asked_by: 'änna',
    reason: 'it hangs',
  });
  t.notOk('refusals' in (ended as object));
  t.notMatch(JSON.stringify(ended), Buffer.from(LEASE).toString('hex'));
  const refused = { kind: EventKind.Refused, cause: OutcomeCode.Conflict };
  t.match(jsonOf(rows, eventAt(0, refused)), {
    type: 'refused',
    cause: 'CONFLICT',
    asked_by: 'änna',
  });
});

t.test('an expelled session is the row’s session, in each event of its end', async (t) => {
  const rows = rowsOf([CommandKind.ExpireSession, ...HEAD, SESSION, ...SAID]);
  const left = { kind: EventKind.Left, cause: OutcomeCode.SessionExpired };
  const expelled = { kind: EventKind.Expelled, cause: LeaseEnd.Forced };
  const named = { command: 'expire_session', session_id: HEX, asked_by: 'änna' };
  t.match(jsonOf(rows, eventAt(0, left)), { type: 'left', cause: 'SESSION_EXPIRED', ...named });
  t.match(jsonOf(rows, eventAt(0, expelled), ''), {
    type: 'expelled',
    name: '',
    cause: 'forced',
    ...named,
    reason: 'it hangs',
  });
});

t.test('a rule says whether it is of a prefix, and who made it', async (t) => {
  const rows = rowsOf(
    [CommandKind.Disable, ...HEAD, null, 'jobs/', ...SAID],
    [CommandKind.Enable, ...HEAD, 'jobs', null, ...SAID],
  );
  t.match(jsonOf(rows, eventAt(0, { kind: EventKind.Disabled, place: 1 }), 'jobs/'), {
    type: 'disabled',
    name: 'jobs/',
    place: 1,
    cause: null,
    command: 'disable',
    asked_by: 'änna',
  });
  const enabled = jsonOf(rows, eventAt(1, { kind: EventKind.Enabled }), 'jobs');
  t.match(enabled, { type: 'enabled', place: 0, command: 'enable', reason: 'it hangs' });
});

t.test('a guard’s report says its kind and how many it refused', async (t) => {
  const rows = rowsOf(
    [CommandKind.ReportRefusal, ...HEAD, 'a', 41, 42, 3, 'redis'],
    [CommandKind.ReportRefusal, ...HEAD, 'a', 41, 42, 1],
  );
  const fenced = { kind: EventKind.Fenced, token: 41, place: 42, cause: OutcomeCode.StaleToken };
  const shown = { type: 'fenced', fencing_token: 41, place: 42, cause: 'STALE_TOKEN' };
  const said = { command: 'report_refusal', reason: null };
  t.match(jsonOf(rows, eventAt(0, fenced)), { ...shown, ...said, asked_by: 'redis', refusals: 3 });
  t.match(jsonOf(rows, eventAt(1, fenced)), { ...shown, ...said, asked_by: null, refusals: 1 });
});

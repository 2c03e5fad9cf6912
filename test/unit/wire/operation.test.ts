import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { Command, CommandKind } from '../../../src/core/locks/command.js';
import { OPERATION_BYTES_MAX } from '../../../src/limits.js';
import { COMMAND_ROWS, HEAD_ROWS } from '../../../src/wire/commands.js';
import { Fault, faultCode, faultField } from '../../../src/wire/fault.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { decodeOperation, operationFieldsMax } from '../../../src/wire/operation.js';
import {
  bitFlips,
  bytesOf,
  holds,
  normalized,
  packOracle,
  packOurs,
  readBack,
  trimmed,
  validOperations,
} from './oracle.js';

const ID = Uint8Array.from({ length: 16 }, (_, index) => 240 + (index % 16));
const LEASE = ID.map((byte) => 255 - byte + 1);

function faultOf(operation: readonly PackValue[]): string {
  const bytes = packOurs(operation);
  return faultField(decodeOperation(bytes, 0, bytes.length, new Command()));
}

t.test('what is written by us or by msgpackr, in full or trimmed, is read alike', async (t) => {
  const command = new Command();
  holds(
    t,
    fc.property(validOperations, fc.nat({ max: 3 }), (operation, padding) => {
      const wanted = normalized(operation);
      for (const form of [operation, trimmed(operation)]) {
        for (const packed of [packOurs(form), packOracle(form)]) {
          const bytes = new Uint8Array(packed.length + 2 * padding).fill(0xff);
          bytes.set(packed, padding);
          const fault = decodeOperation(bytes, padding, padding + packed.length, command);
          assert.equal(fault, Fault.None, faultField(fault));
          assert.deepEqual(readBack(command), wanted);
        }
      }
    }),
    { numRuns: 300 },
  );
});

t.test('a cut operation is refused at every point, without a throw', async (t) => {
  const command = new Command();
  holds(
    t,
    fc.property(validOperations, (operation) => {
      const bytes = packOurs(operation);
      for (let end = 0; end < bytes.length; end += 1) {
        assert.notEqual(
          decodeOperation(bytes, 0, end, command),
          Fault.None,
          `${end} of ${bytes.length}`,
        );
      }
      const longer = new Uint8Array(bytes.length + 1);
      longer.set(bytes);
      assert.equal(
        decodeOperation(longer, 0, longer.length, command),
        Fault.Operation,
        'one byte more',
      );
    }),
    { numRuns: 40 },
  );
});

t.test('a flipped bit never throws, and what still decodes stays inside the bytes', async (t) => {
  const command = new Command();
  holds(
    t,
    fc.property(validOperations, (operation) => {
      const bytes = packOurs(operation);
      for (const flipped of bitFlips(bytes.subarray(0, 120))) {
        const damaged = bytes.slice();
        damaged.set(flipped);
        if (decodeOperation(damaged, 0, damaged.length, command) !== Fault.None) continue;
        assert.ok(command.nameOffset + command.nameBytes <= damaged.length);
        assert.ok(command.metadataOffset + command.metadataBytes <= damaged.length);
        assert.ok(command.requestOffset + command.requestBytes <= damaged.length);
        assert.ok(operationFieldsMax(command.kind) > 0);
      }
    }),
    { numRuns: 25 },
  );
});

t.test('random bytes never throw', async (t) => {
  const command = new Command();
  holds(
    t,
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const fault = decodeOperation(bytes, 0, bytes.length, command);
      assert.ok(fault >= 0 && (fault === 0 || faultField(fault) !== ''), `fault ${fault}`);
    }),
    { numRuns: 2_000 },
  );
});

const ACQUIRE: readonly PackValue[] = [CommandKind.Acquire, 7, ID, 6, null, 'name', 1_000, 0];

/** The valid acquire with one element replaced. */
function acquireWith(place: number, value: PackValue): PackValue[] {
  const operation = [...ACQUIRE];
  while (operation.length <= place) operation.push(null);
  operation[place] = value;
  return operation;
}

const HEAD_FAULTS: readonly (readonly [string, PackValue[]])[] = [
  ['command', ['acquire']],
  ['command', [0]],
  ['command', [CommandKind.Get, 'name']],
  ['command', [99]],
  ['request', acquireWith(1, 0)],
  ['request', acquireWith(1, '')],
  ['request', acquireWith(1, 'x'.repeat(65))],
  ['request', acquireWith(1, true)],
  ['request', acquireWith(1, -1)],
  ['request', acquireWith(1, 1.5)],
  ['request', acquireWith(1, [1])],
  ['session', acquireWith(2, ID.slice(1))],
  ['session', acquireWith(2, 'sixteen letters.')],
  ['session', acquireWith(2, 1)],
  ['session', acquireWith(2, null)],
  ['acknowledged', acquireWith(3, [])],
  ['acknowledged', acquireWith(3, [5, 5])],
  ['acknowledged', acquireWith(3, [5, 4])],
  ['acknowledged', acquireWith(3, [5, null])],
  ['acknowledged', acquireWith(3, [null, 6])],
  ['acknowledged', acquireWith(3, [5, ...Array.from({ length: 65 }, (_, i) => 6 + i)])],
  ['acknowledged', acquireWith(3, -1)],
  ['trace', acquireWith(4, ID.slice(1))],
  ['trace', acquireWith(4, 'abc')],
  ['fields', [...acquireWith(16, null), null]],
];

t.test('what is wrong with a head is named', async (t) => {
  t.equal(faultOf(ACQUIRE), '');
  t.equal(faultOf(acquireWith(3, [5, ...Array.from({ length: 64 }, (_, i) => 6 + i)])), '');
  t.equal(faultOf(acquireWith(16, null)), '');
  for (const [field, operation] of HEAD_FAULTS) {
    t.equal(faultOf(operation), field, JSON.stringify(operation));
  }
});

t.test('what is no array of at least a command is named', async (t) => {
  const command = new Command();
  for (const hex of ['', '90', 'c0', '24', 'a0', '80', 'dc0000', 'dd00000000', 'dc', 'dd0000']) {
    const bytes = bytesOf(hex);
    t.equal(faultField(decodeOperation(bytes, 0, bytes.length, command)), 'operation', hex);
  }
});

t.test('an acquire names the field that is wrong', async (t) => {
  const wrongNames: PackValue[] = [null, '', 'x'.repeat(513), 7, ['a', 'b'], 'a\u0000b', '\u007f'];
  wrongNames.push('tab\there', '\u0085', '\u009f', Uint8Array.of(0xff), Uint8Array.of(0xc3));
  wrongNames.push(Uint8Array.of(0xc0, 0xaf), Uint8Array.of(0xed, 0xa0, 0x80));
  wrongNames.push(Uint8Array.of(0xf4, 0x90, 0x80, 0x80), Uint8Array.of(0xf8, 0x88, 0x80, 0x80));
  for (const name of wrongNames) t.equal(faultOf(acquireWith(5, name)), 'name', String(name));
  const rightNames: PackValue[] = ['a', 'a/', 'a/b', '//', ' ', 'x'.repeat(512), 'é', '日本', '🔒'];
  rightNames.push(Uint8Array.of(0x61), '\u00a0', '\ud7ff', '\ue000', '\u{10ffff}');
  for (const name of rightNames) t.equal(faultOf(acquireWith(5, name)), '', String(name));
  const integerFields = ['ttl_ms', 'wait_ms', 'mode', 'permits', 'capacity', 'expected_revision'];
  for (const [index, field] of integerFields.entries()) {
    for (const value of [-1, 1.5, 'x', true, 2 ** 53, Number.NaN, [1]]) {
      t.equal(faultOf(acquireWith(6 + index, value)), field, `${field} ${value}`);
    }
    t.equal(faultOf(acquireWith(6 + index, 2 ** 53 - 1)), '', field);
  }
  for (const [index, field] of ['not_after', 'lock_delay_ms', 'hold_ms_max'].entries()) {
    t.equal(faultOf(acquireWith(14 + index, -1)), field);
    t.equal(faultOf(acquireWith(14 + index, 5)), '');
  }
  t.equal(faultOf(acquireWith(12, '')), 'owner');
  t.equal(faultOf(acquireWith(12, 'x'.repeat(129))), 'owner');
  t.equal(faultOf(acquireWith(12, 'x'.repeat(128))), '');
  t.equal(faultOf(acquireWith(13, 5)), 'metadata');
  t.equal(faultOf(acquireWith(13, 'x'.repeat(1_025))), 'metadata');
  t.equal(faultOf(acquireWith(13, 'x'.repeat(1_024))), '');
});

t.test('what has to be there, and what goes together, is checked', async (t) => {
  const cases: readonly (readonly [string, PackValue[]])[] = [
    ['request', [CommandKind.Acquire, null, ID, null, null, 'name']],
    ['name', [CommandKind.Acquire, 'id']],
    ['acknowledged', [CommandKind.Acquire, 'id', ID, 5, null, 'name']],
    ['acknowledged', [CommandKind.SessionRenew, null, ID, 5]],
    ['lease', [CommandKind.Release, 'id']],
    ['lease', [CommandKind.Release, null, null, null, null, null]],
    ['lease', [CommandKind.Renew]],
    ['request', [CommandKind.SessionOpen]],
    ['session', [CommandKind.SessionOpen, 5]],
    ['session', [CommandKind.SessionOpen, 5, ID]],
    ['session', [CommandKind.SessionOpen, 'id', ID]],
    ['session', [CommandKind.SessionRenew]],
    ['session', [CommandKind.SessionClose, 'id']],
    ['session', [CommandKind.SessionTakeOver, 'id', null, null, null, LEASE]],
    ['request', [CommandKind.SessionTakeOver, null, ID, null, null, LEASE]],
    ['secret', [CommandKind.SessionTakeOver, 'id', ID]],
    ['secret', [CommandKind.SessionTakeOver, 'id', ID, null, null, new Uint8Array(16)]],
    ['target', [CommandKind.Cancel, 'id', ID]],
    ['target', [CommandKind.Cancel, 'id', ID, null, null, 0]],
    ['session', [CommandKind.Cancel, 'id', null, null, null, 5]],
    ['places', [CommandKind.KeepWaits]],
    ['places', [CommandKind.KeepWaits, null, null, null, null, [0]]],
    ['settings', [CommandKind.Settings]],
    ['settings', [CommandKind.Settings, null, null, null, null, []]],
    ['settings', [CommandKind.Settings, null, null, null, null, [1, 2]]],
    ['settings', [CommandKind.Settings, null, null, null, null, [[1, 2, 3]]]],
    ['reason', [CommandKind.Restored]],
    ['reason', [CommandKind.Restored, null, null, null, null, '']],
    ['reason', [CommandKind.Restored, null, null, null, null, 'x'.repeat(1_025)]],
    ['', [CommandKind.Cancel, null, null, null, null, 'other']],
    ['', [CommandKind.Release, null, null, null, null, LEASE]],
    ['', [CommandKind.SessionClose, null, ID]],
  ];
  for (const [field, operation] of cases) {
    t.equal(faultOf(operation), field, JSON.stringify(operation));
  }
});

/** A head, then what each command of operators and guards needs, every element there. */
const HEAD: readonly PackValue[] = ['id', null, null, null];
const FORCE: readonly PackValue[] = [42, ...HEAD, 'name', LEASE, 7, 'anna', 'it hangs'];
const RULE: readonly PackValue[] = [43, ...HEAD, 'name', null, 'anna', 'it hangs'];
const EXPEL: readonly PackValue[] = [45, ...HEAD, ID, 'anna', 'it hangs'];
const REPORT: readonly PackValue[] = [46, ...HEAD, 'name', 41, 42, 3, 'redis'];

/** `operation` with the element at `place` replaced; without a value it ends before it. */
function replaced(operation: readonly PackValue[], place: number, value?: PackValue): PackValue[] {
  return value === undefined ? operation.slice(0, place) : operation.with(place, value);
}

/** [field, operation, place, wrong values]: the fault has the name of the field. */
const ADMIN_FAULTS: readonly (readonly [string, readonly PackValue[], number, PackValue[]])[] = [
  ['name', FORCE, 5, [null, '', 5, 'a\u0007', 'x'.repeat(513), ['name']]],
  ['lease', FORCE, 6, [ID.slice(1), 7, 'sixteen letters.', []]],
  ['token', FORCE, 7, [-1, 1.5, 'x', 2 ** 53, true]],
  ['actor', FORCE, 8, [null, '', 'x'.repeat(129), 7, 'a\nb', Uint8Array.of(0xff), ['anna']]],
  ['reason', FORCE, 9, [null, '', 'x'.repeat(1_025), 7, 'a\u0000b', Uint8Array.of(0xc3), {}]],
  ['name', RULE, 5, [null, '', 5, 'a\u0007', 'x'.repeat(513)]],
  ['prefix', RULE, 6, ['jobs/', '', 5, []]],
  ['actor', RULE, 7, [null, '', 'x'.repeat(129), 7, '\u007f']],
  ['reason', RULE, 8, [null, '', 'x'.repeat(1_025), 7, '\u0085']],
  ['target', EXPEL, 5, [null, ID.slice(1), 7, 'sixteen letters.']],
  ['actor', EXPEL, 6, [null, '', 'x'.repeat(129), 7]],
  ['reason', EXPEL, 7, [null, '', 'x'.repeat(1_025), 7]],
  ['name', REPORT, 5, [null, '', 5]],
  ['token', REPORT, 6, [null, -1, 1.5, 'x', 2 ** 53]],
  ['mark', REPORT, 7, [null, -1, 1.5, 'x', 2 ** 53]],
  ['refusals', REPORT, 8, [null, 0, -1, 1.5, 'x', 2 ** 53]],
  ['guard', REPORT, 9, ['', 'x'.repeat(65), 7, 'a\tb', Uint8Array.of(0xff)]],
];

t.test('what is wrong with what operators and guards say is named', async (t) => {
  for (const operation of [FORCE, RULE, RULE.with(0, 44), EXPEL, REPORT]) {
    t.equal(faultOf(operation), '');
    t.equal(faultOf([...operation, null]), 'fields', 'one element more');
    for (const request of [null, '', 0, 'x'.repeat(65)]) {
      t.equal(faultOf(replaced(operation, 1, request)), 'request', JSON.stringify(request));
    }
    t.equal(faultOf(replaced(operation, 2, ID)), 'session', 'none of them is of a session');
    t.equal(faultOf(operation.with(1, 5)), 'session', 'a sequence names itself within one');
    t.equal(faultOf(operation.with(1, 5).with(2, ID)), 'session');
    t.equal(faultOf(replaced(operation, 3, 4)), 'acknowledged');
  }
  for (const [field, operation, place, values] of ADMIN_FAULTS) {
    const kinds = operation === RULE ? [43, 44] : [operation[0] as number];
    for (const kind of kinds) {
      for (const value of values) {
        const wrong = replaced(operation.with(0, kind), place, value);
        t.equal(faultOf(wrong), field, JSON.stringify(wrong));
      }
    }
  }
});

t.test('what an operator or a guard leaves out is named, or may be left out', async (t) => {
  const cases: readonly (readonly [string, PackValue[]])[] = [
    ['name', replaced(FORCE, 5)],
    ['actor', replaced(FORCE, 8)],
    ['reason', replaced(FORCE, 9)],
    ['name', replaced(RULE, 5)],
    ['actor', replaced(RULE, 6)],
    ['name', RULE.with(5, null)],
    ['reason', replaced(RULE, 8)],
    ['target', replaced(EXPEL, 5)],
    ['actor', replaced(EXPEL, 6)],
    ['reason', replaced(EXPEL, 7)],
    ['name', replaced(REPORT, 5)],
    ['token', replaced(REPORT, 6)],
    ['mark', replaced(REPORT, 7)],
    ['refusals', replaced(REPORT, 8)],
    ['', replaced(REPORT, 9)],
    ['', REPORT.with(9, null)],
    ['', FORCE.with(6, null).with(7, null)],
    ['', FORCE.with(7, 0)],
    ['', RULE.with(5, null).with(6, 'jobs/')],
    ['', RULE.with(5, null).with(6, '')],
    ['prefix', RULE.with(5, null).with(6, 'x'.repeat(513))],
    ['prefix', RULE.with(5, null).with(6, 'a\u0007')],
    ['', RULE.with(5, null).with(6, 'x'.repeat(512))],
    ['', FORCE.with(8, 'x'.repeat(128)).with(9, 'é'.repeat(512))],
    ['', REPORT.with(6, 0).with(7, 0).with(8, 1).with(9, 'x'.repeat(64))],
  ];
  for (const [field, operation] of cases) {
    t.equal(faultOf(operation), field, JSON.stringify(operation));
  }
});

t.test('the empty prefix is a prefix, not an absent name', async (t) => {
  const command = new Command();
  const bytes = packOurs(RULE.with(5, null).with(6, ''));
  t.equal(decodeOperation(bytes, 0, bytes.length, command), Fault.None);
  t.match(command, { isPrefix: true, nameBytes: 0 });
  t.ok(command.nameOffset > 0);
  const name = packOurs(RULE);
  decodeOperation(name, 0, name.length, command);
  t.equal(command.isPrefix, false, 'nothing is left of it for the next');
  t.equal(command.token, -1);
});

t.test('an operation is bounded in bytes, and says so with a code of its own', async (t) => {
  const places = Array.from({ length: OPERATION_BYTES_MAX }, () => 1);
  const bytes = packOurs([CommandKind.KeepWaits, null, null, null, null, places]);
  const fault = decodeOperation(bytes, 0, bytes.length, new Command());
  t.equal(fault, Fault.Size);
  t.equal(faultCode(fault), 45);
  t.equal(faultCode(Fault.Name), 23);
  t.equal(faultCode(Fault.None), 0);
});

t.test('a command that was refused leaves nothing behind for the next', async (t) => {
  const command = new Command();
  const full = packOurs([...acquireWith(13, 'note'), 9, 9, 9]);
  const bare = packOurs([CommandKind.Release, null, null, null, null, LEASE]);
  decodeOperation(full, 0, full.length, command);
  t.equal(decodeOperation(bare, 0, bare.length, command), Fault.None);
  const fresh = new Command();
  decodeOperation(bare, 0, bare.length, fresh);
  t.same(readBack(command), readBack(fresh));
  t.equal(command.nameOffset, -1);
  t.equal(command.metadataOffset, -1);
  t.equal(command.notAfter, -1);
  t.notOk(command.hasSession);
});

t.test('every fault has a field name', async (t) => {
  for (const [name, fault] of Object.entries(Fault)) {
    if (fault === Fault.None) t.equal(faultField(fault), '');
    else t.match(faultField(fault), /^[a-z_]+$/, name);
  }
});

t.test('the decoder takes as many fields as the table of commands has', async (t) => {
  for (const row of COMMAND_ROWS) {
    const wanted = row.isLogged ? HEAD_ROWS.length + row.fields.length : 0;
    t.equal(operationFieldsMax(row.number), wanted, row.name);
  }
});

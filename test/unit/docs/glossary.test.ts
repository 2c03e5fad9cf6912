import t from 'tap';
import { CommandKind, Mode, OPERATION_VERSION } from '../../../src/core/locks/command.js';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd } from '../../../src/core/locks/outcome.js';
import {
  defaultSettings,
  SETTING_RANGES,
  type SettingName,
  SettingNumber,
} from '../../../src/core/locks/settings.js';
import { EntryKind, MessageKind } from '../../../src/core/raft/message.js';
import { BACKUP_FORMAT } from '../../../src/io/backup/backup-record.js';
import { RECORD_HEADER_BYTES } from '../../../src/io/log/record.js';
import { segmentFolder } from '../../../src/io/log/segment-files.js';
import { DISK_ID_BYTES, encodeState } from '../../../src/io/log/state-record.js';
import {
  ENTRY_FORMAT,
  ENTRY_HEADER_BYTES,
  OPERATION_PREFIX_BYTES,
} from '../../../src/wire/entry.js';
import { ERROR_ROWS, ErrorCode } from '../../../src/wire/errors.js';
import { Fault, faultField } from '../../../src/wire/fault.js';
import { FOUNDING_FORMAT } from '../../../src/wire/founding.js';
import { FRAME_VERSION } from '../../../src/wire/frame.js';
import { operationFieldsMax } from '../../../src/wire/operation.js';
import { PEER_HEADER_BYTES, PEER_VERSION, PeerKind, PeerVerdict } from '../../../src/wire/peer.js';
import { queryFieldsMax } from '../../../src/wire/query.js';
import { codeSpans, readPage, tableUnder } from './markdown.js';

const PAGE = readPage('docs/GLOSSARY.md');

/** The heading of each table of numbers, and the table of the code that it repeats. */
const TABLES: readonly (readonly [string, Readonly<Record<string, number>>])[] = [
  ['Commands', CommandKind],
  ['Modes', Mode],
  ['How a lease ended', LeaseEnd],
  ['Events', EventKind],
  ['Settings', SettingNumber],
  ['Kinds of entries', EntryKind],
  ['Messages between replicas', MessageKind],
  ['Frames between nodes', PeerKind],
  ['Verdicts on a peer’s hello', PeerVerdict],
];

function byNumber(left: readonly [number, string], right: readonly [number, string]): number {
  return left[0] - right[0];
}

/** Number and name of each row of a table of the page, in its order. */
function written(heading: string): (readonly [number, string])[] {
  return tableUnder(PAGE, heading).map(([number = '', name = '']) => [Number(number), name]);
}

t.test('every table of numbers is that of the code, in the order of the numbers', async (t) => {
  for (const [heading, table] of TABLES) {
    const rows = Object.entries(table).map(([name, number]) => [number, name] as const);
    t.same(written(heading), rows.sort(byNumber), heading);
  }
});

t.test('the outcomes and errors are those of the error table', async (t) => {
  const rows: (readonly [number, string])[] = [
    [ErrorCode.Ok, 'OK'],
    [ErrorCode.Queued, 'QUEUED'],
    [ErrorCode.Watching, 'WATCHING'],
    ...ERROR_ROWS.map((row) => [row.number, row.code] as const),
  ];
  t.same(written('Outcomes and errors'), rows.sort(byNumber));
  t.equal(rows.length, Object.keys(ErrorCode).length);
});

t.test('a command is here when a node decodes it, and reserved when it does not', async (t) => {
  // Decoded, and then refused to everybody: a take-over, and settings after the founding.
  const refused = new Set<number>([CommandKind.SessionTakeOver, CommandKind.Settings]);
  for (const [number = '', name = '', state] of tableUnder(PAGE, 'Commands')) {
    const kind = Number(number);
    const isDecoded = queryFieldsMax(kind) > 0 || operationFieldsMax(kind) > 0;
    t.equal(state, isDecoded && !refused.has(kind) ? 'here' : 'reserved', name);
  }
});

t.test('settings have the defaults and ranges of the code', async (t) => {
  const defaults = defaultSettings();
  for (const [, name = '', standard, least, greatest] of tableUnder(PAGE, 'Settings')) {
    const range = SETTING_RANGES[name as SettingName];
    t.equal(Number(standard), defaults[name as SettingName], name);
    t.equal(Number(least), range.least, name);
    t.equal(Number(greatest), range.greatest, name);
  }
});

t.test('the fields that a refusal names are those of the decoders', async (t) => {
  const heading = '### Fields that a refusal names\n';
  const start = PAGE.indexOf(heading) + heading.length;
  const listed = codeSpans(PAGE.slice(start, PAGE.indexOf('###', start)));
  const names = new Set(Object.values(Fault).map((fault) => faultField(fault)));
  names.delete('');
  t.same(listed, [...names]);
});

t.test('versions and sizes are the constants of the code', async (t) => {
  const constants: Readonly<Record<string, number>> = {
    FRAME_VERSION,
    BACKUP_FORMAT,
    OPERATION_VERSION,
    PEER_VERSION,
    PEER_HEADER_BYTES,
    ENTRY_FORMAT,
    ENTRY_HEADER_BYTES,
    OPERATION_PREFIX_BYTES,
    FOUNDING_FORMAT,
    RECORD_HEADER_BYTES,
    DISK_ID_BYTES,
  };
  const rows = tableUnder(PAGE, 'Versions and sizes of formats');
  for (const [, value, name = '', file = ''] of rows) {
    t.equal(Number(value), constants[name], name);
    t.match(readPage(file), new RegExp(`export const ${name} =`), file);
  }
  t.same(rows.map((row) => row[2]).sort(), Object.keys(constants).sort());
});

t.test('the state record and the names of segments are as written', async (t) => {
  const diskId = new Uint8Array(DISK_ID_BYTES);
  const founding = Uint8Array.of(7, 8, 9);
  const bytes = encodeState({ term: 1, votedFor: 2, nodeId: 3, diskId, founding });
  t.equal(bytes[4], 1);
  t.same([...bytes.subarray(41)], [...founding]);
  t.equal(segmentFolder('', 65), 'segment-0000000000000065');
});

t.test('a word stands in the glossary once', async (t) => {
  const seen = new Set<string>();
  for (const part of ['Who and where', 'Holding', 'Asking', 'Log and time']) {
    for (const [words = ''] of tableUnder(PAGE, part)) {
      for (const word of words.replaceAll('*', '').split(', ')) {
        t.notOk(seen.has(word), word);
        seen.add(word);
      }
    }
  }
  t.ok(seen.size > 60, `${seen.size} words`);
});

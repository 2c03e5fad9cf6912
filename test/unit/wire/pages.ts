/**
 * The generated parts of docs/PROTOCOL.md and docs/ERRORS.md: tables from the code, examples.
 *
 * Owns: how tables and examples are set in Markdown, and the marks between which they stand in a
 * page. Never: the prose around them. Used by: pages.test.ts (compares), write-pages.ts (writes).
 */
import { Mode } from '../../../src/core/locks/command.js';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import * as limits from '../../../src/limits.js';
import {
  COMMAND_ROWS,
  type CommandRow,
  type FieldRow,
  HEAD_ROWS,
  RESERVED_COMMANDS,
} from '../../../src/wire/commands.js';
import { ERROR_ROWS, ErrorCode, type ErrorRow } from '../../../src/wire/errors.js';
import { type Parameter, ROUTES, type Route } from '../../../src/wire/http-routes.js';
import { HTTP_SCHEMAS } from '../../../src/wire/http-schema.js';
import { unpackOracle } from './oracle.js';
import { EXAMPLES, type Example } from './protocol-examples.js';

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return lines.join('\n');
}

function fieldTable(rows: readonly FieldRow[], first: number): string {
  return table(
    ['place', 'field', 'type', 'absent', 'meaning'],
    rows.map((row, index) => [
      String(first + index),
      `\`${row.name}\``,
      row.type,
      row.isNeeded ? 'no' : 'nil',
      row.meaning,
    ]),
  );
}

function commandSection(row: CommandRow): string {
  const first = row.isLogged ? HEAD_ROWS.length : 1;
  const parts = [`#### ${row.number} ${row.name}`, row.meaning];
  if (row.isLogged) parts.push('Takes the head, then:');
  if (row.fields.length > 0) parts.push(fieldTable(row.fields, first));
  else parts.push(row.isLogged ? 'nothing more.' : 'Takes nothing.');
  if (row.replyFields.length === 0) parts.push('Gives nothing beyond the head of the reply.');
  else parts.push('Gives:', fieldTable(row.replyFields, 4));
  return parts.join('\n\n');
}

function commandSections(isLogged: boolean): string {
  return COMMAND_ROWS.filter((row) => row.isLogged === isLogged)
    .map(commandSection)
    .join('\n\n');
}

function yesNo(value: boolean): string {
  return value ? 'yes' : 'no';
}

/** Codes that nothing in this release gives; pages.test.ts looks whether that is so. */
export const NOT_YET: ReadonlySet<string> = new Set(['DEADLOCK', 'MODE_MISMATCH', 'CROSS_SHARD']);

function meaningOf({ code, meaning }: ErrorRow): string {
  return NOT_YET.has(code) ? `*Not in this release.* ${meaning}` : meaning;
}

function errorTable(rows: readonly ErrorRow[]): string {
  return table(
    ['number', 'code', 'retry', 'outcome', 'HTTP', 'meaning'],
    rows.map((row) => [
      String(row.number),
      `\`${row.code}\``,
      yesNo(row.retryable),
      row.outcome,
      String(row.status),
      meaningOf(row),
    ]),
  );
}

const GOOD_CODES = {
  Ok: OutcomeCode.Ok,
  Queued: OutcomeCode.Queued,
  Watching: ErrorCode.Watching,
};

/** PascalCase as words. */
function wordsOf(name: string): string {
  return name.replace(/(?<!^)[A-Z]/g, (letter) => ` ${letter}`).toLowerCase();
}

function numberTable(numbers: Readonly<Record<string, number>>): string {
  const rows = Object.entries(numbers).map(([name, number]) => [String(number), wordsOf(name)]);
  return table(['number', 'name'], rows);
}

const LIMIT_ROWS: readonly (readonly [number, string])[] = [
  [limits.FRAME_BYTES_MAX, 'bytes of a frame’s body, both ways'],
  [limits.FRAME_OPERATIONS_MAX, 'requests in one frame'],
  [limits.OPERATION_BYTES_MAX, 'bytes of one operation'],
  [limits.NESTING_DEPTH_MAX, 'levels of arrays and maps in an operation, its own array counted'],
  [limits.FRAME_TIMEOUT_MS, 'ms from the first byte of a frame to its last'],
  [limits.CONNECTION_REQUESTS_MAX, 'unanswered requests on a connection, then it is not read'],
  [limits.REQUEST_DEADLINE_DEFAULT_MS, 'ms that a request has when it names no deadline'],
  [limits.REQUEST_DEADLINE_MAX_MS, 'ms that a request has at most'],
  [limits.NAME_BYTES_MAX, 'bytes of a lock name, at least 1'],
  [limits.REQUEST_ID_BYTES_MAX, 'bytes of a free-form request id, at least 1'],
  [limits.METADATA_BYTES_MAX, 'bytes of metadata'],
  [limits.OWNER_BYTES_MAX, 'bytes of an owner'],
  [limits.ACKNOWLEDGED_SINGLES_MAX, 'single acknowledged sequences in a request'],
  [limits.CLIENT_NAME_BYTES_MAX, 'bytes of a client name'],
  [limits.CREDENTIAL_BYTES_MAX, 'bytes of a credential'],
  [limits.LIST_ROWS_MAX, 'rows of a list’s page'],
  [limits.CONNECTION_WATCHES_MAX, 'watches of one connection'],
  [limits.WATCH_OUT_BYTES_MAX, 'bytes that a watcher may leave unread before it is told no more'],
  [limits.WATCH_ROWS_MAX, 'events in one part of a watch'],
  [limits.WATCH_PROGRESS_MS, 'ms without an event, about, after which a watch marks progress'],
  [limits.GET_WAITERS_MAX, 'waiters that a get shows; their number is always told'],
];

/** A value as people read it: binaries as h'…', absent as nil. */
export function notationOf(value: unknown): string {
  if (value === null) return 'nil';
  if (value instanceof Uint8Array) return `h'${Buffer.from(value).toString('hex')}'`;
  if (Array.isArray(value)) return `[${value.map(notationOf).join(', ')}]`;
  if (typeof value === 'object') {
    const entries = Object.entries(value as Record<string, unknown>);
    return `{${entries.map(([key, part]) => `${key}: ${notationOf(part)}`).join(', ')}}`;
  }
  return JSON.stringify(value);
}

const DUMP_BYTES_A_LINE = 24;

/** Hexadecimal digits, the length on a line of its own. */
export function dumpOf(frame: Uint8Array): string {
  const digits = Array.from(frame, (byte) => byte.toString(16).padStart(2, '0'));
  const lines = [digits.slice(0, 4).join(' ')];
  for (let at = 4; at < digits.length; at += DUMP_BYTES_A_LINE) {
    lines.push(digits.slice(at, at + DUMP_BYTES_A_LINE).join(' '));
  }
  return lines.join('\n');
}

function exampleSection(example: Example): string {
  const way = example.from === 'client' ? '→' : '←';
  const value = notationOf(unpackOracle(example.frame.subarray(4)));
  const body = `${way} ${value}\n`;
  return `${way} ${example.title}\n\n\`\`\`\n${body}\n${dumpOf(example.frame)}\n\`\`\``;
}

function exampleSections(): string {
  return EXAMPLES.map(({ heading, examples }) => {
    return `### ${heading}\n\n${examples.map(exampleSection).join('\n\n')}`;
  }).join('\n\n');
}

function parameterRows(place: string, rows: readonly Parameter[]): string[][] {
  return rows.map(({ name, type, isNeeded, meaning }) => {
    return [`\`${name}\``, place, type, isNeeded ? 'yes' : 'no', meaning];
  });
}

/** What a route gives: the members of its component. */
function answerLine(route: Route): string {
  if (route.answer === '') return `Gives ${route.media ?? ''}.`;
  const schema = HTTP_SCHEMAS[route.answer] as { properties: object };
  const members = Object.keys(schema.properties).map((name) => `\`${name}\``);
  return `Gives ${members.join(', ')}.`;
}

function routeSection(route: Route): string {
  const parts = [`### ${route.method} ${route.path}`, route.meaning];
  const rows = [...parameterRows('query', route.query), ...parameterRows('body', route.body)];
  if (rows.length > 0) parts.push(table(['parameter', 'in', 'type', 'needed', 'meaning'], rows));
  if (route.isNamed) parts.push('Has to be named, by `Idempotency-Key` or `request_id`.');
  if (route.session === 'path') parts.push('Needs `Holdfast-Session-Secret`.');
  parts.push(answerLine(route));
  return parts.join('\n\n');
}

function routeSections(): string {
  return ROUTES.map(routeSection).join('\n\n');
}

/** Text by the name of its mark. */
function sections(): ReadonlyMap<string, string> {
  const reserved = RESERVED_COMMANDS.map(String).join(', ');
  const inLog = ERROR_ROWS.filter((row) => row.number < 40);
  const outside = ERROR_ROWS.filter((row) => row.number >= 40 && row.number < 60);
  return new Map([
    ['head', fieldTable(HEAD_ROWS, 0)],
    ['commands not logged', commandSections(false)],
    ['commands logged', commandSections(true)],
    ['reserved', `Reserved numbers, refused today: ${reserved}.`],
    ['modes', numberTable(Mode)],
    ['lease ends', numberTable(LeaseEnd)],
    ['good codes', numberTable(GOOD_CODES)],
    ['events', numberTable(EventKind)],
    [
      'limits',
      table(
        ['bound', 'of what'],
        LIMIT_ROWS.map(([bound, what]) => [bound.toLocaleString('en'), what]),
      ),
    ],
    ['routes', routeSections()],
    ['examples', exampleSections()],
    ['errors of the log', errorTable(inLog)],
    ['errors of a node', errorTable(outside)],
    ['errors of the client', errorTable(ERROR_ROWS.filter((row) => row.number >= 60))],
  ]);
}

/** The pages with generated parts. */
export const GENERATED_PAGES: readonly string[] = [
  'docs/PROTOCOL.md',
  'docs/ERRORS.md',
  'docs/HTTP.md',
];

/**
 * The page with every generated part as it has to be.
 * Throws when the page has a mark that nothing is generated for, or a mark that is not closed.
 */
export function regenerated(page: string): string {
  const known = sections();
  return page.replace(/<!-- generated: ([\w ]+) -->\n.*?<!-- end -->/gs, (_match, name: string) => {
    const text = known.get(name);
    if (text === undefined) throw new Error(`nothing is generated for the mark '${name}'`);
    return `<!-- generated: ${name} -->\n${text}\n<!-- end -->`;
  });
}

/** Names of the marks in a page. */
export function marksOf(page: string): string[] {
  return [...page.matchAll(/<!-- generated: ([\w ]+) -->/g)].map((match) => match[1] ?? '');
}

/** Names of everything that is generated. */
export function sectionNames(): string[] {
  return [...sections().keys()];
}

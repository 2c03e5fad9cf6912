import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';
import { Command, CommandKind, LOGGED_COMMAND_MIN } from '../../../src/core/locks/command.js';
import { ERROR_ROWS, ErrorCode } from '../../../src/wire/errors.js';
import { Fault } from '../../../src/wire/fault.js';
import { FrameReader, frameBytesAt } from '../../../src/wire/frame.js';
import { decodeOperation } from '../../../src/wire/operation.js';
import { decodeQuery, Query } from '../../../src/wire/query.js';
import { decodeReplies } from '../../../src/wire/response.js';
import { filesBelow, projectFile } from '../../gate/paths.js';
import { dumpOf, GENERATED_PAGES, marksOf, NOT_YET, regenerated, sectionNames } from './pages.js';
import { EXAMPLES } from './protocol-examples.js';

const ALL = EXAMPLES.flatMap(({ examples }) => examples);

t.test('the generated parts of the pages are those of the code (npm run docs)', async (t) => {
  const marks: string[] = [];
  for (const name of GENERATED_PAGES) {
    const page = readFileSync(projectFile(name), 'utf8');
    t.equal(page, regenerated(page), name);
    marks.push(...marksOf(page));
  }
  t.same(marks.sort(), sectionNames().sort(), 'each part stands in one page, once');
});

t.test('a page that differs from the code would be seen', async (t) => {
  const page = readFileSync(projectFile('docs/ERRORS.md'), 'utf8');
  const changed = page.replace('| 10 | `LOCK_BUSY`', '| 11 | `LOCK_BUSY`');
  t.not(changed, page);
  t.equal(regenerated(changed), page);
  t.throws(() => regenerated('<!-- generated: nonsense -->\n<!-- end -->'), /nonsense/);
});

t.test(
  'the codes that are marked as not in this release are those that nothing gives',
  async (t) => {
    const tables = ['src/wire/errors.ts', 'src/core/locks/outcome.ts'];
    const files = filesBelow('src').filter(
      (name) => name.endsWith('.ts') && !tables.includes(name),
    );
    const text = files.map((name) => readFileSync(projectFile(name), 'utf8')).join('\n');
    const names = new Map(Object.entries(ErrorCode).map(([name, number]) => [number, name]));
    for (const { number, code } of ERROR_ROWS) {
      const isGiven = new RegExp(`(Outcome|Error)Code\\.${names.get(number)}\\b`).test(text);
      t.equal(isGiven, !NOT_YET.has(code), code);
    }
  },
);

t.test(
  'a node reads every example of a client, and refuses only the one meant to be',
  async (t) => {
    const reader = new FrameReader();
    for (const { title, frame } of ALL.filter((example) => example.from === 'client')) {
      t.equal(frameBytesAt(frame, 0, frame.length), frame.length, title);
      t.equal(reader.open(frame, 4, frame.length), 0, title);
      while (reader.next()) {
        const { operationStart, operationEnd, command } = reader;
        const fault =
          command >= LOGGED_COMMAND_MIN
            ? decodeOperation(frame, operationStart, operationEnd, new Command())
            : decodeQuery(frame, operationStart, operationEnd, new Query());
        t.equal(fault, /control character/.test(title) ? Fault.Name : Fault.None, title);
      }
      t.equal(reader.fault, 0, title);
    }
  },
);

t.test('a client reads every example of a node', async (t) => {
  for (const { title, frame } of ALL.filter((example) => example.from === 'node')) {
    t.equal(frameBytesAt(frame, 0, frame.length), frame.length, title);
    t.ok((decodeReplies(frame, 4, frame.length) ?? []).length > 0, title);
  }
});

t.test('the examples show every command that a client is meant to use', async (t) => {
  const reader = new FrameReader();
  const shown = new Set<number>();
  for (const { frame } of ALL.filter((example) => example.from === 'client')) {
    reader.open(frame, 4, frame.length);
    while (reader.next()) shown.add(reader.command);
  }
  const { Acquire, Cancel, Check, Get, Hello, List, Lookup, Ping } = CommandKind;
  const { Release, Renew, SessionAttach, SessionOpen, SessionRenew } = CommandKind;
  const wanted: number[] = [Acquire, Cancel, Check, Get, Hello, List, Lookup, Ping, Release, Renew];
  const { Watch, Unwatch, Abandon, Audit, Explain } = CommandKind;
  wanted.push(SessionAttach, SessionOpen, SessionRenew, Watch, Unwatch, Abandon, Audit);
  const { ForceRelease, Disable, Enable, ExpireSession, ReportRefusal } = CommandKind;
  wanted.push(Explain, ForceRelease, Disable, Enable, ExpireSession, ReportRefusal);
  for (const command of wanted) t.ok(shown.has(command), `command ${command}`);
});

const PYTHON = '/usr/bin/python3';

/** True when the interpreter of the system is there and has a MessagePack library. */
function hasPython(): boolean {
  if (!existsSync(PYTHON)) return false;
  try {
    execFileSync(PYTHON, ['-c', 'import msgpack'], { stdio: 'ignore' });
    return true;
  } catch {
    return false; // the library is an optional package of the system
  }
}

const withoutPython = hasPython() ? false : 'needs the Debian package python3-msgpack';

t.test(
  'a client written from the page alone agrees with every example',
  { skip: withoutPython },
  async (t) => {
    const script = projectFile('test/cluster/python/check_examples.py');
    const output = execFileSync(PYTHON, ['-B', script, projectFile('docs/PROTOCOL.md')], {
      encoding: 'utf8',
    });
    t.match(output, new RegExp(`${ALL.length} examples`));
    t.match(dumpOf(ALL[0]!.frame), /^00 00 00 /);
  },
);

/** The product is tidy, and each rule of tidiness refuses a planted violation. */

import { readFileSync } from 'node:fs';
import t from 'tap';
import { filesBelow, projectFile } from './paths.js';
import { anyBorders, fileLinesMax, headerLines, tidy } from './tidy.js';

const files = ['src', 'test', 'loadtest']
  .flatMap(filesBelow)
  .filter((file) => /\.(ts|mjs)$/.test(file));

function read(file: string): string {
  return readFileSync(projectFile(file), 'utf8');
}

t.test('every file keeps to the limits of size, names, headers and purity', async (t) => {
  t.ok(files.length > 0, 'there is something to check');
  t.strictSame(
    files.flatMap((file) => tidy(file, read(file))),
    [],
  );
});

t.test('any enters by one file at most', async (t) => {
  const borders = files.filter((file) => file.startsWith('src/') && anyBorders(read(file)) > 0);
  t.ok(borders.length <= 1, 'one border', { borders });
});

t.test('versions are exact and the lock file has no addresses to download from', async (t) => {
  const manifest = JSON.parse(read('package.json'));
  for (const kind of ['dependencies', 'devDependencies']) {
    for (const [name, version] of Object.entries<string>(manifest[kind])) {
      t.match(version, /^(npm:@?[^@]+@)?\d+\.\d+\.\d+[-.\w]*$/, `${name} has an exact version`);
    }
  }
  t.notMatch(read('package-lock.json'), /"resolved": "http/);
});

const header = '/**\n * One.\n * Two.\n * Three.\n */\n';

/** Text planted in a file, and what must be said about it. */
const planted: [rule: string, file: string, text: string, complaint: RegExp][] = [
  ['a long line', 'src/io/a.ts', `${header}// ${'x'.repeat(98)}\n`, /101 columns/],
  ['a long file', 'src/io/a.ts', header + '\n'.repeat(fileLinesMax), /lines, at most 700/],
  ['no header', 'src/io/a.ts', 'export const a = 1;\n', /opens with 0 lines/],
  ['a short header', 'src/io/a.ts', '// One.\n// Two.\n\nexport {};\n', /opens with 2 lines/],
  ['a name in another case', 'src/io/tcpServer.ts', header, /kebab-case/],
  ['a folder named by kind', 'src/io/utils/a.ts', header, /by kind/],
  ['a silenced compiler', 'src/io/a.ts', `${header}// @ts-${'ignore'}\n`, /silences/],
  ['a focused test', 'test/unit/a.test.ts', "t.only('a', () => {});\n", /one test only/],
];

/** Code that differs between two nodes or two runs, planted in the core. */
const impure = [
  'const a = Date.now();',
  'const a = Math.random();',
  'const { random } = Math;',
  'const a = Promise.resolve();',
  'let a: Promise<void>;',
  'async function a() {}',
  'class A { async a() {} }',
  'const a = async () => {};',
  'async function a() { await b; }',
  'async function a() { for await (const c of b) {} }',
  'const a = new Intl.Collator();',
  "const a = 'b'.localeCompare('c');",
  'const a = (1).toLocaleString();',
  'setTimeout(b, 1);',
  'const a = { performance };',
  'const a = globalThis;',
];

t.test('a planted violation of each rule is found', async (t) => {
  for (const [rule, file, text, complaint] of planted) {
    t.match(tidy(file, text), [complaint], rule);
  }
  for (const code of impure) {
    for (const file of ['src/core/locks/a.ts', 'src/core/raft/a.ts', 'src/collections/a.ts']) {
      t.not(tidy(file, `${header}${code}\n`).length, 0, `${file}: ${code}`);
    }
    t.strictSame(tidy('src/server/a.ts', `${header}${code}\n`), [], `server may: ${code}`);
  }
  t.not(tidy('src/replica/a.ts', `${header}const a = Date.now();\n`).length, 0);
  t.not(tidy('src/wire/a.ts', `${header}const a = Buffer.alloc(1);\n`).length, 0);
});

t.test('a name that only looks like a banned one is left alone', async (t) => {
  const code =
    'class A { process(date: number) { return this.performance + this.random + Math.max(date); } }';
  t.strictSame(tidy('src/core/raft/a.ts', `${header}${code}\n`), []);
  t.equal(headerLines('#!/usr/bin/env node\n// a\n// b\n// c\nexport {};\n'), 3);
});

/** The linter's settings refuse what the rules of style refuse, shown on planted files. */

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { projectFile } from './paths.js';

const biome = projectFile('node_modules/@biomejs/biome/bin/biome');

/** Lints texts, each under its path, as the project does. Gives `path rule` for each break. */
function lint(t: Test, texts: ReadonlyMap<string, string>): Set<string> {
  // Outside the project, whose settings leave the folder of fixtures out.
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-lint-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  for (const [file, text] of texts) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  }
  copyFileSync(projectFile('test/gate/lint.json'), path.join(folder, 'biome.json'));
  const words = ['lint', '--colors=off', '--max-diagnostics=none', '.'];
  const run = spawnSync(process.execPath, [biome, ...words], { cwd: folder, encoding: 'utf8' });
  const breaks = `${run.stdout}${run.stderr}`.matchAll(/^(\S+?):\d+:\d+ lint\/\w+\/(\w+) /gm);
  return new Set([...breaks].map(([, file, rule]) => `${file} ${rule}`));
}

const longFunction = `export function f(): number {\n${'  f();\n'.repeat(70)}  return 1;\n}\n`;
const fittingFunction = `export function f(): number {\n${'  f();\n'.repeat(66)}  return 1;\n}\n`;
const longMethod = `export class A {\n  f(): void {\n${'    this.f();\n'.repeat(71)}  }\n}\n`;

const broken: Record<string, [file: string, text: string]> = {
  noExcessiveLinesPerFunction: ['src/io/long-function.ts', longFunction],
  noExplicitAny: ['src/io/any.ts', 'export const a: any = 1;\n'],
  noConsole: ['src/io/console.ts', "console.log('a');\n"],
  noBarrelFile: ['src/io/index.ts', "export { a } from './a.js';\n"],
  noReExportAll: ['src/io/all.ts', "export * from './a.js';\n"],
  useNodejsImportProtocol: ['src/io/protocol.ts', "import 'fs';\n"],
  noUnusedVariables: ['src/io/unused.ts', 'const a = 1;\n'],
  noUnusedImports: ['src/io/unused-import.ts', "import { a } from './a.js';\n"],
  noEmptyBlockStatements: ['src/io/empty.ts', 'try {\n  f();\n} catch {}\n'],
};

const allowed: Record<string, string> = {
  'src/io/fitting-function.ts': fittingFunction,
  'src/cli/console.ts': "console.log('a');\n",
  'src/client/index.ts': "export { a } from './a.js';\n",
};

t.test('a planted violation of each rule is found', async (t) => {
  const found = lint(t, new Map(Object.values(broken)));
  for (const [rule, [file]] of Object.entries(broken)) t.ok(found.has(`${file} ${rule}`), rule);
});

t.test('a method is measured as a function is', async (t) => {
  const found = lint(t, new Map([['src/io/a.ts', longMethod]]));
  t.ok(found.has('src/io/a.ts noExcessiveLinesPerFunction'));
});

t.test('what the rules allow passes', async (t) => {
  t.strictSame([...lint(t, new Map(Object.entries(allowed)))], []);
});

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { projectFile } from '../../gate/paths.js';
import { codeBlocks, readPage } from './markdown.js';

/** One for each run: two gates may share a clone. */
const FOLDER = projectFile(`dist-test/readme-types-${process.pid}`);

const OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  types: ['node'],
  paths: { holdfast: [projectFile('src/client/index.ts')] },
  strict: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  skipLibCheck: true,
};

/** What a strict compiler says of a program that imports the client by the package's name. */
function diagnose(name: string, source: string): string[] {
  const file = path.join(FOLDER, name);
  writeFileSync(file, source);
  const program = ts.createProgram([file], OPTIONS);
  const parsed = program.getSourceFile(file);
  const found: ts.Diagnostic[] = [...program.getSyntacticDiagnostics(parsed)];
  found.push(...program.getSemanticDiagnostics(parsed));
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

t.before(() => mkdirSync(FOLDER, { recursive: true }));
t.teardown(() => rmSync(FOLDER, { recursive: true, force: true }));

t.test('the README’s example is TypeScript under strict', async (t) => {
  const block = codeBlocks(readPage('README.md')).find(({ language }) => language === 'ts');
  t.same(diagnose('first-lock.mts', block?.text ?? ''), []);
});

t.test('a wrong example would be seen', async (t) => {
  const wrong = "import { connect } from 'holdfast';\nawait connect({ endpoints: 7401 });\n";
  t.match(diagnose('wrong.mts', wrong), [/number.*not assignable/]);
});

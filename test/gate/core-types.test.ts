/** The core compiles without Node and DOM: what reaches outside its arguments has no type there. */

import path from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { projectFile } from './paths.js';

const configFile = projectFile('src/core/tsconfig.json');

/** What the compiler says of a text that stood in src/core, under the own settings of the core. */
function complaintsAbout(text: string): string[] {
  const { config } = ts.readConfigFile(configFile, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, path.dirname(configFile));
  const file = projectFile('src/core/planted.ts');
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => name === file || fileExists(name);
  host.getSourceFile = (name, ...rest) =>
    name === file
      ? ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true)
      : getSourceFile(name, ...rest);
  const program = ts.createProgram([file], options, host);
  const diagnostics = ts.getPreEmitDiagnostics(program);
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}

t.test('plain code compiles', async (t) => {
  t.strictSame(complaintsAbout('export const a = new Map<string, Uint8Array>();\n'), []);
});

t.test('timers, Buffer, console, process and the DOM do not', async (t) => {
  const names = ['setTimeout', 'setImmediate', 'queueMicrotask', 'Buffer', 'console', 'process'];
  names.push('performance', 'crypto', 'window', 'fetch', 'TextEncoder');
  const text = names.map((name, index) => `export const a${index} = ${name};\n`).join('');
  const complaints = complaintsAbout(text);
  for (const name of names) {
    t.ok(
      complaints.some((line) => line.startsWith(`Cannot find name '${name}'`)),
      name,
      { complaints },
    );
  }
  t.match(complaintsAbout("import fs from 'node:fs';\nfs.readFileSync('a');\n"), [/node:fs/]);
});

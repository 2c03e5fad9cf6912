/**
 * Compiles src, test, loadtest and native-bench to dist-test/, each file alone, without its types.
 *
 * Owns dist-test/: a mirror of the tree in which every relative import resolves as it does in the
 * sources, worker files and entry points included. Only files that changed are written, each in one
 * rename, and an output whose source is gone is deleted. Types are another step of the gate.
 * Called by run.mjs and exec.mjs; needs typescript installed.
 */

import fs from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { listFiles, root } from './project.mjs';

const folders = ['src', 'test', 'loadtest', 'native-bench'];
const copied = new Set(['.html', '.css', '.svg', '.json', '.sql', '.lua']);

function readOptions() {
  const file = path.join(root, 'tsconfig.json');
  const { config, error } = ts.readConfigFile(file, ts.sys.readFile);
  if (error) throw new Error(ts.flattenDiagnosticMessageText(error.messageText, '\n'));
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  return {
    ...options,
    // transpileModule sees no package.json, from which nodenext would learn that files are modules.
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    noEmit: false,
    incremental: false,
    inlineSourceMap: true,
    inlineSources: true,
  };
}

function isFresh(source, output) {
  const written = fs.statSync(output, { throwIfNoEntry: false });
  return written !== undefined && written.mtimeMs >= fs.statSync(source).mtimeMs;
}

function writeWhole(output, text) {
  const part = `${output}.${process.pid}`;
  fs.mkdirSync(path.dirname(output), { recursive: true });
  fs.writeFileSync(part, text);
  fs.renameSync(part, output);
}

/** The output of a source file, relative to the project's root, or undefined if it has none. */
export function outputOf(file) {
  if (file.endsWith('.d.ts')) return undefined;
  if (file.endsWith('.ts')) return path.join('dist-test', `${file.slice(0, -3)}.js`);
  if (file.endsWith('tsconfig.json')) return undefined;
  return copied.has(path.extname(file)) ? path.join('dist-test', file) : undefined;
}

/** Brings dist-test/ up to date. Returns how many files were written. */
export function compile() {
  const options = readOptions();
  const wanted = new Set();
  let written = 0;
  for (const file of listFiles(folders)) {
    const target = outputOf(file);
    if (target === undefined) continue;
    wanted.add(target);
    const source = path.join(root, file);
    const output = path.join(root, target);
    if (isFresh(source, output)) continue;
    const text = fs.readFileSync(source, 'utf8');
    // Stack traces then name the source file, not a file beside the output.
    const sourceRoot = `${path.relative(path.dirname(output), path.dirname(source))}/`;
    const compilerOptions = { ...options, sourceRoot };
    const isScript = file.endsWith('.ts');
    const result = isScript
      ? ts.transpileModule(text, { compilerOptions, fileName: source })
      : null;
    writeWhole(output, result === null ? text : result.outputText);
    written += 1;
  }
  const outputs = folders.map((folder) => path.join('dist-test', folder));
  for (const file of listFiles(outputs)) {
    if (wanted.has(file) || !/\.(js|html|css)$/.test(file)) continue;
    fs.rmSync(path.join(root, file), { force: true });
  }
  return written;
}

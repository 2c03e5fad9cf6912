/**
 * A copy of the compiled product and simulator with some of its sources changed.
 *
 * Owns: folders below dist-test/images, each a mirror in which relative imports resolve as in the
 * sources. Never: touches the sources; a patch whose piece of source is no longer there exactly
 * once is an error: it has to be made anew. Used by: planted bugs, runs with tight limits.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { projectFile } from '../../gate/paths.js';

/** One change to one source file. */
export interface Patch {
  /** Below src. */
  readonly file: string;
  /** A piece of it that stands there exactly once. */
  readonly find: string;
  readonly replace: string;
}

const COPIED = ['src', 'test/sim', 'test/model'];

/**
 * Bounds so small that windows close, appends split, and entries leave memory, which takes hours
 * and gigabytes otherwise.
 */
export const TIGHT_LIMITS: readonly Patch[] = [
  limit('INFLIGHT_APPENDS_MAX', '64', '3'),
  limit('APPEND_ENTRIES_MAX', '256', '4'),
  limit('LOG_WINDOW_ENTRIES', '4_096', '24'),
  limit('BATCHES_IN_FLIGHT_MAX', '64', '12'),
  limit('BATCH_OPERATIONS_MAX', '4_096', '6'),
  limit('APPLY_OPERATIONS_MAX', '16_384', '8'),
  limit('READ_ROUNDS_MAX', '64', '2'),
];

function limit(name: string, value: string, tight: string): Patch {
  const find = `export const ${name} = ${value};`;
  return { file: 'limits.ts', find, replace: `export const ${name} = ${tight};` };
}

function transpile(text: string): string {
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      useDefineForClassFields: true,
    },
  });
  return outputText;
}

function patched(text: string, { file, find, replace }: Patch): string {
  const pieces = text.split(find);
  if (pieces.length !== 2) {
    throw new Error(`patch anew: src/${file} has ${pieces.length - 1} times ${find}`);
  }
  return pieces.join(replace);
}

/** The sources that `patches` change, by file, as they are then. Throws when one does not fit. */
export function changedSources(patches: readonly Patch[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const patch of patches) {
    const { file } = patch;
    const text = texts.get(file) ?? readFileSync(projectFile(`src/${file}`), 'utf8');
    texts.set(file, patched(text, patch));
  }
  return texts;
}

/** Builds the image `name` anew. Returns its folder. */
export function buildImage(name: string, patches: readonly Patch[]): string {
  const folder = projectFile(`dist-test/images/${name}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const part of COPIED) {
    cpSync(projectFile(`dist-test/${part}`), path.join(folder, part), { recursive: true });
  }
  for (const [file, text] of changedSources(patches)) {
    writeFileSync(path.join(folder, 'src', file.replace(/\.ts$/, '.js')), transpile(text));
  }
  return folder;
}

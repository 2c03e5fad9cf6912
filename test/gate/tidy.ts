/**
 * What a formatter cannot hold: sizes, file headers, names, and the purity of the core.
 *
 * Reads the syntax tree of one file and returns a line for each thing that is wrong. The core sees
 * only its arguments, so whatever differs between two nodes or two runs is refused there by name:
 * clocks, random numbers, promises, locales. The replica runs under the simulator, so it has no
 * clock and no timer of its own. Run by tidy.test.ts.
 */

import path from 'node:path';
import ts from 'typescript';

export const lineLengthMax = 100;
export const fileLinesMax = 700;
export const headerLinesMin = 3;
export const headerLinesMax = 10;

const clocksAndChance = ['Date', 'performance', 'process', 'crypto', 'globalThis'];
const timers = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask'];
const background = ['Promise', 'WeakRef', 'FinalizationRegistry', 'Atomics', 'SharedArrayBuffer'];
const locales = ['Intl'];

/** Names that may not stand in a folder's code, each with the reason that is told. */
const bannedNames: readonly { folder: RegExp; names: Set<string>; reason: string }[] = [
  {
    folder: /^src\/(limits\.ts$|core\/|collections\/)/,
    names: new Set([...clocksAndChance, ...timers, ...background, ...locales, 'eval']),
    reason: 'the core sees only its arguments',
  },
  {
    folder: /^src\/replica\//,
    names: new Set([...clocksAndChance, ...timers]),
    reason: 'the replica gets its clock and its chance from a port',
  },
  {
    folder: /^src\/wire\//,
    names: new Set([...clocksAndChance, ...timers, 'Buffer', 'require']),
    reason: 'wire runs in browsers and does not know the time',
  },
];
const isPure = /^src\/(limits\.ts$|core\/|collections\/)/;
const vagueFolders = /^src\/(.*\/)?(utils?|helpers?|types|common|misc|shared|lib)\//;
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)*$/;

function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}

function sizeProblems(file: string, lines: readonly string[]): string[] {
  const problems: string[] = [];
  lines.forEach((line, index) => {
    // Code points, since a name in a test may be written in any script.
    const length = [...line].length;
    if (length > lineLengthMax) {
      problems.push(`${file}:${index + 1} has ${length} columns, at most ${lineLengthMax}`);
    }
  });
  if (lines.length > fileLinesMax) {
    problems.push(`${file} has ${lines.length} lines, at most ${fileLinesMax}`);
  }
  return problems;
}

/** Counts the lines of text in the comment that opens a file; 0 if it opens with none. */
export function headerLines(text: string): number {
  const body = text.replace(/^#!.*\n/, '').trimStart();
  if (body.startsWith('/*')) {
    const comment = body.slice(2, Math.max(2, body.indexOf('*/')));
    return comment.split('\n').filter((line) => line.replace(/[*\s]/g, '') !== '').length;
  }
  const first = body.split('\n').findIndex((line) => !line.startsWith('//'));
  return first < 0 ? body.split('\n').length : first;
}

function headerProblems(file: string, text: string): string[] {
  const count = headerLines(text);
  if (count >= headerLinesMin && count <= headerLinesMax) return [];
  const wanted = `${headerLinesMin} to ${headerLinesMax}`;
  return [`${file}:1 opens with ${count} lines of comment, wanted ${wanted}`];
}

function nameProblems(file: string): string[] {
  const problems: string[] = [];
  if (!kebabCase.test(path.basename(file))) problems.push(`${file} is not named in kebab-case`);
  if (vagueFolders.test(file)) problems.push(`${file} is in a folder named by kind, not by topic`);
  return problems;
}

/** Whether an identifier refers to something: a property's key or a member's own name does not. */
function isUse(node: ts.Identifier): boolean {
  const { parent } = node;
  const isOwnName = 'name' in parent && parent.name === node;
  return !isOwnName || ts.isShorthandPropertyAssignment(parent);
}

/** Math.random, by any road: Math stands only before the name of another function of it. */
function isChance(node: ts.Node): boolean {
  if (!ts.isIdentifier(node) || node.text !== 'Math' || !isUse(node)) return false;
  const { parent } = node;
  const isAccess = ts.isPropertyAccessExpression(parent) && parent.expression === node;
  return !isAccess || parent.name.text === 'random';
}

function isLocale(node: ts.Node): boolean {
  return ts.isIdentifier(node) && /^(toLocale|localeCompare$)/.test(node.text);
}

function isAsync(node: ts.Node): boolean {
  if (ts.isAwaitExpression(node)) return true;
  if (ts.isForOfStatement(node) && node.awaitModifier !== undefined) return true;
  if (!ts.canHaveModifiers(node)) return false;
  return ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false;
}

function purityProblems(file: string, source: ts.SourceFile): string[] {
  const problems: string[] = [];
  const bans = bannedNames.filter(({ folder }) => folder.test(file));
  if (bans.length === 0) return problems;
  const complain = (node: ts.Node, what: string): void => {
    problems.push(`${file}:${lineOf(source, node)} ${what}`);
  };
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && isUse(node)) {
      const ban = bans.find(({ names }) => names.has(node.text));
      if (ban !== undefined) complain(node, `uses ${node.text}: ${ban.reason}`);
    }
    if (isChance(node)) complain(node, 'draws a random number');
    if (isPure.test(file) && isLocale(node)) complain(node, 'depends on the locale');
    if (isPure.test(file) && isAsync(node)) complain(node, 'is asynchronous');
    ts.forEachChild(node, visit);
  };
  visit(source);
  return problems;
}

function commentProblems(file: string, lines: readonly string[]): string[] {
  const problems: string[] = [];
  lines.forEach((line, index) => {
    const isSilencer = /\/[/*]\s*@ts-(ignore|nocheck)/.test(line);
    const isBareExpectation = /\/[/*]\s*@ts-expect-error\s*(\*\/)?$/.test(line);
    if (isSilencer || isBareExpectation) {
      problems.push(`${file}:${index + 1} silences the compiler without a reason`);
    }
  });
  return problems;
}

function focusProblems(file: string, source: ts.SourceFile): string[] {
  const problems: string[] = [];
  const visit = (node: ts.Node): void => {
    const isCall = ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression);
    if (isCall && node.expression.name.text === 'only') {
      problems.push(`${file}:${lineOf(source, node)} runs one test only`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return problems;
}

/** Checks one file, named relative to the project's root. Returns a line for each problem. */
export function tidy(file: string, text: string): string[] {
  const lines = text.replace(/\n$/, '').split('\n');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const problems = [...sizeProblems(file, lines), ...commentProblems(file, lines)];
  problems.push(...nameProblems(file));
  if (file.startsWith('src/')) problems.push(...headerProblems(file, text));
  if (file.startsWith('src/')) problems.push(...purityProblems(file, source));
  if (file.startsWith('test/')) problems.push(...focusProblems(file, source));
  return problems;
}

/** Lines that let `any` in. One border in the whole product may, in one file. */
export function anyBorders(text: string): number {
  return text.match(/biome-ignore(-all)? lint\/suspicious\/noExplicitAny/g)?.length ?? 0;
}

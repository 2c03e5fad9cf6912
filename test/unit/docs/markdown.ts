/**
 * The little of Markdown that the tests of the documents need: links, headings, code, tables.
 *
 * Owns: how a page is taken apart. Never: a judgement about it. Used by: the tests in this folder
 * and test/cluster/readme.test.ts.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { filesBelow, projectFile } from '../../gate/paths.js';

/** A fenced block of code: its language, '' when it names none, and its text. */
export interface CodeBlock {
  readonly language: string;
  readonly text: string;
}

const FENCE = /^```(\w*)\n(.*?)^```$/gms;

/** Every page of the project, relative to its root, in byte order. */
export function pages(): string[] {
  const top = readdirSync(projectFile('.')).filter((name) => name.endsWith('.md'));
  return [...top, ...filesBelow('docs').filter((name) => name.endsWith('.md'))].sort();
}

export function readPage(name: string): string {
  return readFileSync(projectFile(name), 'utf8');
}

export function codeBlocks(text: string): CodeBlock[] {
  return [...text.matchAll(FENCE)].map((match) => {
    return { language: match[1] ?? '', text: match[2] ?? '' };
  });
}

/** The page without its blocks of code. */
export function prose(text: string): string {
  return text.replace(FENCE, '');
}

/** What stands between single backticks outside blocks of code. */
export function codeSpans(text: string): string[] {
  return [...prose(text).matchAll(/`([^`\n]+)`/g)].map((match) => match[1] ?? '');
}

/** Targets of links, in order, code spans and blocks left out. */
export function linkTargets(text: string): string[] {
  const plain = prose(text).replace(/`[^`\n]*`/g, '');
  return [...plain.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '');
}

/** The names by which headings are linked to, as GitHub makes them. */
export function anchors(text: string): Set<string> {
  const found = new Set<string>();
  for (const match of prose(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const words = (match[1] ?? '').toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '');
    found.add(words.trim().replace(/\s/g, '-'));
  }
  return found;
}

/**
 * The rows of the first table under a heading, its head left out; cells trimmed, without their
 * backticks. Throws when the page has no such heading or no table before the next one.
 */
export function tableUnder(text: string, heading: string): string[][] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.replace(/^#+ /, '') === heading);
  if (start < 0) throw new Error(`there is no heading '${heading}'`);
  const end = lines.findIndex((line, at) => at > start && line.startsWith('#'));
  const section = lines.slice(start, end < 0 ? lines.length : end);
  const first = section.findIndex((line) => line.startsWith('|'));
  if (first < 0) throw new Error(`there is no table under '${heading}'`);
  const rows: string[][] = [];
  for (const line of section.slice(first + 2)) {
    if (!line.startsWith('|')) break;
    const cells = line.replace(/^\||\|$/g, '').split('|');
    rows.push(cells.map((cell) => cell.replaceAll('`', '').trim()));
  }
  return rows;
}

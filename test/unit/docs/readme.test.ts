import { existsSync, readdirSync } from 'node:fs';
import t from 'tap';
import { JSON_OPTION } from '../../../src/cli/command.js';
import { COMMANDS } from '../../../src/cli/commands/table.js';
import { projectFile } from '../../gate/paths.js';
import { codeBlocks, codeSpans, pages, readPage, tableUnder } from './markdown.js';

const README = readPage('README.md');
/** What npm does by itself, and what it runs under another word. */
const NPM_OWN = new Set(['install', 'ci', 'audit', 'exec', 'run']);

const packageFile = JSON.parse(readPage('package.json')) as {
  readonly name: string;
  readonly scripts: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
};

/** Every line of code that a page shows, whether in a block or in a sentence. */
function shownCode(page: string): string[] {
  const text = readPage(page);
  const blocks = codeBlocks(text).filter(({ language }) => language === '' || language === 'sh');
  return [...blocks.flatMap((block) => block.text.split('\n')), ...codeSpans(text)];
}

t.test('every npm script that a page names exists', async (t) => {
  let named = 0;
  for (const page of pages()) {
    for (const line of shownCode(page)) {
      const match = /^npm (?:run )?([\w-]+)/.exec(line);
      const script = match?.[1];
      if (script === undefined || (NPM_OWN.has(script) && !line.startsWith('npm run '))) continue;
      named += 1;
      t.ok(packageFile.scripts[script] !== undefined, `${page}: ${line}`);
    }
  }
  t.ok(named >= 4, `${named} scripts`);
});

/** The command whose words `words` begin with, the longest first. */
function commandOf(words: readonly string[]): (typeof COMMANDS)[number] | undefined {
  const sorted = [...COMMANDS].sort((left, right) => right.path.length - left.path.length);
  return sorted.find(({ path }) => path.every((word, at) => words[at] === word));
}

t.test('every holdfast command and option that a page shows exists', async (t) => {
  let shown = 0;
  for (const page of pages()) {
    for (const line of shownCode(page)) {
      const match = /^(?:npx )?holdfast ([a-z].*)$/.exec(line);
      if (match === null) continue;
      const words = (match[1] ?? '').split(/\s+/);
      const command = commandOf(words);
      shown += 1;
      t.ok(command !== undefined, `${page}: ${line}`);
      const end = words.indexOf('--');
      const own = words.slice(0, end < 0 ? words.length : end);
      const names = [...(command?.options ?? []), JSON_OPTION].map(({ name }) => `--${name}`);
      for (const word of own.filter((candidate) => candidate.startsWith('--'))) {
        t.ok([...names, '--help'].includes(word), `${page}: ${line}: ${word}`);
      }
    }
  }
  t.ok(shown > 10, `${shown} lines`);
});

t.test('the README names the version of Node that package.json asks for', async (t) => {
  const version = packageFile.engines.node.replace('>=', '');
  t.ok(README.includes(`Node ${version} or newer`), version);
});

t.test('the folder list of the README is src, test and docs, whole', async (t) => {
  const listed = tableUnder(README, 'The folders').flatMap(([folder = '']) => folder.split(', '));
  const folders = readdirSync(projectFile('src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => `src/${entry.name}/`);
  for (const folder of folders) t.ok(listed.includes(folder), folder);
  for (const folder of listed) t.ok(existsSync(projectFile(folder)), folder);
});

t.test('the example imports the package by the name that it has', async (t) => {
  const examples = codeBlocks(README).filter(({ language }) => language === 'ts');
  t.equal(examples.length, 1);
  t.match(examples[0]?.text, `from '${packageFile.name}'`);
});

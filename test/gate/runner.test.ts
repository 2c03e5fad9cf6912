/** The gate's own runner cannot be fooled: what did not pass is counted as failed. */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { projectFile, projectRoot } from './paths.js';

interface Result {
  passed: number;
  failed: number;
  skipped: number;
  reason: string;
  text: string;
}

interface Runner {
  runFile(file: string, shown: boolean): Promise<Result>;
  judge(run: { text: string; status: number; signal: null; timedOut: boolean }): Result;
  excerptOf(text: string): string;
}

const runner: Runner = await import(pathToFileURL(projectFile('test/gate/tap.mjs')).href);

const cases: [name: string, code: string, wanted: Partial<Result>][] = [
  ['passes', 't.equal(1, 1); t.equal(2, 2);', { passed: 2, failed: 0, reason: '' }],
  ['fails', 't.equal(1, 1); t.equal(1, 2);', { passed: 1, failed: 1, reason: '1 failed' }],
  ['throws', "t.equal(1, 1); throw new Error('x');", { passed: 1, failed: 1 }],
  ['exits early', 't.plan(2); t.equal(1, 1); process.exit(0);', { passed: 1, failed: 1 }],
  ['is killed', "process.kill(process.pid, 'SIGKILL');", { failed: 1, reason: 'ended by SIGKILL' }],
  ['asserts nothing', '', { passed: 0, failed: 1 }],
  ['never settles', "t.test('a', () => new Promise(() => {}));", { passed: 0, failed: 1 }],
];

for (const [name, code, wanted] of cases) {
  t.test(`a file that ${name}`, async (t) => {
    const folder = t.testdir({ 'a.test.mjs': `import t from 'tap';\n${code}\n` });
    const file = path.relative(projectRoot, path.join(folder, 'a.test.mjs'));
    t.match(await runner.runFile(file, false), wanted);
  });
}

/** A killed process may stay as a zombie until its new parent looks. */
function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false; // the process has gone, and its folder with it
  }
}

t.test('a process that a file leaves running ends with it', async (t) => {
  const code = `
    import { spawn } from 'node:child_process';
    import t from 'tap';
    const child = spawn('sleep', ['600'], { stdio: 'inherit' });
    child.unref();
    t.comment('pid ' + child.pid);
    t.pass();
  `;
  const folder = t.testdir({ 'a.test.mjs': code });
  const file = path.relative(projectRoot, path.join(folder, 'a.test.mjs'));
  const result = await runner.runFile(file, false);
  const pid = Number(/pid (\d+)/.exec(result.text)?.[1]);
  t.match(result, { passed: 1, failed: 0 });
  t.ok(pid > 0);
  while (isRunning(pid)) await new Promise(setImmediate);
});

t.test('a file past its time has failed, whatever it printed', async (t) => {
  const text = '# { total: 1, pass: 1 }';
  t.match(runner.judge({ text, status: 0, signal: null, timedOut: true }), { failed: 1 });
});

t.test('the excerpt shows the failed assertion and no other', async (t) => {
  const text =
    '    ok 1 - fine\n    not ok 2 - bad\n      ---\n      why: x\n      ...\n    ok 3 - fine\n';
  t.equal(runner.excerptOf(text), '    not ok 2 - bad\n      ---\n      why: x\n      ...');
});

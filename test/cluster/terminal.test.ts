/** Ctrl-C in a real terminal, where npm and its child both get the signal. */

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { projectFile, projectRoot } from '../gate/paths.js';
import { freePorts } from './harness.js';

interface Shown {
  readonly status: number | null;
  readonly text: string;
}

/** Runs words in a pseudo terminal; Ctrl-C is pressed when `text` is shown. */
function pressControlC(test: Test, text: string, words: readonly string[]): Promise<Shown> {
  const script = projectFile('test/cluster/python/press_control_c.py');
  const child = spawn('/usr/bin/python3', [script, text, ...words], {
    cwd: projectRoot,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  test.teardown(() => child.kill('SIGKILL'));
  let shown = '';
  child.stdout.on('data', (bytes: Buffer) => {
    shown += bytes.toString();
  });
  return new Promise((resolve) => {
    child.once('close', (status) => resolve({ status, text: shown }));
  });
}

t.test('Ctrl-C in npm start ends all five nodes in order, and says only that', async (t) => {
  const folder = path.join(t.testdir({}), 'data');
  const [port = 0] = await freePorts(1);
  const base = String(20_000 + (port % 10_000));
  const words = ['npm', 'start', '--', '--data', folder, '--base-port', base];
  const { text } = await pressControlC(t, 'holdfast: cluster ready', words);
  t.match(text, /holdfast: cluster ready/);
  t.match(text, /holdfast: stopping: SIGINT/);
  t.notMatch(text, /killing|NODE_ENDED|did not stop/);
  for (let nodeId = 1; nodeId <= 5; nodeId += 1) {
    const log = readFileSync(path.join(folder, 'logs', `node-${nodeId}.log`), 'utf8');
    t.match(log.trimEnd().split('\n').at(-1), /"message":"stopped"/, `node ${nodeId}`);
  }
});

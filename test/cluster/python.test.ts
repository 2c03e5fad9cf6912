import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import t from 'tap';
import { projectFile } from '../gate/paths.js';
import { Cluster } from './harness.js';

const PYTHON = '/usr/bin/python3';

interface Ended {
  readonly status: number | null;
  readonly output: string;
}

/** Runs the system's Python without leaving compiled files in the tree. */
function python(...words: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(PYTHON, ['-B', ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.once('error', reject);
    child.once('close', (status) => resolve({ status, output }));
  });
}

async function hasPython(): Promise<boolean> {
  return existsSync(PYTHON) && (await python('-c', 'import msgpack')).status === 0;
}

const skip = (await hasPython()) ? false : 'needs the Debian package python3-msgpack';

t.test('a client in another language holds, waits and hands over', { skip }, async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3 });
  const leader = await cluster.leader();
  const follower = [1, 2, 3].find((nodeId) => nodeId !== leader) ?? 0;
  const script = projectFile('test/cluster/python/hold_and_hand_over.py');
  const { status, output } = await python(script, cluster.endpoint(follower));
  t.equal(status, 0, output);
  t.match(output, /^ok the next token is larger than everything before$/m);
  t.match(output, /^ok tokens \d+ and \d+$/m);
});

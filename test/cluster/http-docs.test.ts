import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import t from 'tap';
import { codeBlocks, readPage } from '../unit/docs/markdown.js';
import { Cluster } from './harness.js';

const CURL = '/usr/bin/curl';
const skip = existsSync(CURL) ? false : 'needs curl';

interface Ended {
  readonly status: number | null;
  readonly text: string;
}

/** Runs a block as people type it, with the addresses of this cluster. */
function runBlock(cluster: Cluster, block: string): Promise<Ended> {
  const script = block.replace(/http:\/\/127\.0\.0\.1:750(\d)/g, (_match, nodeId: string) => {
    return cluster.httpUrl(Number(nodeId));
  });
  return new Promise((resolve) => {
    const child = spawn('/bin/bash', ['-e', '-o', 'pipefail', '-c', script]);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        text += chunk;
      });
    }
    child.once('close', (status) => resolve({ status, text }));
  });
}

t.test('every line of curl in the documents works against a cluster', { skip }, async (t) => {
  const cluster = await Cluster.start({ test: t });
  const blocks = ['docs/HTTP.md', 'README.md'].flatMap((page) =>
    codeBlocks(readPage(page)).filter(({ text }) => text.includes('curl ')),
  );
  t.equal(blocks.length, 5);
  const texts: string[] = [];
  for (const { text } of blocks) {
    const ended = await runBlock(cluster, text);
    t.equal(ended.status, 0, `${text}\n${ended.text}`);
    texts.push(ended.text);
  }
  t.match(texts[0], /"holder":\{.*"metadata":"worker-7"/s, 'who has it is shown');
  t.match(texts[0], /"released":true/);
  t.match(texts[1], /"lease_id":"[0-9a-f]{32}"/);
  t.match(texts[2], /event: granted\ndata: \{.*"name":"jobs\/nightly"/);
  t.match(texts[3], /"barrier_token":\d+.*"metadata":"worker-7"/);
  t.match(texts[4], /"fencing_token":\d+/);
});

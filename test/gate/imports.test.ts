/** The rules for imports hold in the product, and each of them refuses a planted violation. */

import t from 'tap';
import { brokenRules, reach, readImports, sharedPackages } from './import-rules.js';
import { projectRoot } from './paths.js';

t.test('imports of the product go downhill, and a package has one importer', async (t) => {
  const result = await readImports(projectRoot);
  t.ok(result.modules.length > 0, 'there is something to check');
  t.strictSame(brokenRules(result), []);
  t.strictSame(sharedPackages(result.modules), []);
});

t.test('every part of src has its place in the table', async (t) => {
  const result = await readImports(projectRoot);
  const parts = result.modules
    .map(({ source }) => source)
    .filter((source) => source.startsWith('src/'))
    .map((source) => source.slice('src/'.length).replace(/(\.ts$|\/.*)/, ''));
  t.strictSame(
    [...new Set(parts)].filter((part) => !(part in reach)),
    [],
  );
});

const planted = {
  'package.json': JSON.stringify({
    name: 'planted',
    type: 'module',
    dependencies: { msgpackr: '*' },
    devDependencies: { tap: '*' },
  }),
  node_modules: {
    msgpackr: { 'package.json': '{"name":"msgpackr","main":"index.js"}', 'index.js': '' },
    tap: { 'package.json': '{"name":"tap","main":"index.js"}', 'index.js': '' },
  },
  test: { 'helper.ts': 'export const helper = 1;' },
  src: {
    'limits.ts': "import '../test/helper.js'; import './collections/ring.js';",
    collections: { 'ring.ts': "export type Frame = import('../wire/frame.js').Frame;" },
    core: {
      raft: {
        'step.ts': "import '../locks/apply.js'; import 'node:assert';",
        'log.ts': 'export const log = 1;',
      },
      locks: { 'apply.ts': "import '../raft/log.js'; import 'msgpackr';" },
    },
    wire: {
      'frame.ts': "import 'node:net'; import 'msgpackr'; export type Frame = 1;",
      'a.ts': "import './b.js';",
      'b.ts': "import './a.js';",
    },
    replica: {
      'turn.ts': "import type { Tcp } from '../io/tcp.js'; import 'node:fs'; import 'node:buffer';",
    },
    io: { 'tcp.ts': "import '../server/main.js'; import 'tap'; export type Tcp = 1;" },
    client: { 'client.ts': "import '../core/raft/log.js'; import 'msgpackr';" },
    server: { 'main.ts': "import './missing.js';" },
  },
};
t.test('a planted violation of each rule is found', async (t) => {
  const result = await readImports(t.testdir(planted));
  const lines = brokenRules(result);
  const wanted: [rule: string, from: string][] = [
    ['limits-imports-downhill', 'src/limits.ts'],
    ['collections-imports-downhill', 'src/collections/ring.ts'],
    ['raft-knows-no-locks', 'src/core/raft/step.ts'],
    ['locks-know-no-raft', 'src/core/locks/apply.ts'],
    ['no-node-modules', 'src/core/raft/step.ts'],
    ['no-node-modules', 'src/wire/frame.ts'],
    ['replica-has-no-devices', 'src/replica/turn.ts → fs'],
    ['replica-imports-downhill', 'src/replica/turn.ts'],
    ['io-imports-downhill', 'src/io/tcp.ts'],
    ['client-imports-downhill', 'src/client/client.ts'],
    ['no-packages', 'src/core/locks/apply.ts'],
    ['no-development-packages', 'src/io/tcp.ts'],
    ['src-stands-alone', 'src/limits.ts'],
    ['resolvable', 'src/server/main.ts'],
    ['no-cycles', 'src/wire/a.ts'],
  ];
  for (const [rule, from] of wanted) {
    t.ok(
      lines.some((line) => line.startsWith(`${rule}: ${from}`)),
      `${rule} at ${from}`,
      { lines },
    );
  }
  t.notOk(
    lines.some((line) => line.includes('buffer')),
    'the buffer module is no device',
  );
  t.match(sharedPackages(result.modules), [
    'msgpackr is imported by src/client/client.ts, src/core/locks/apply.ts, src/wire/frame.ts',
  ]);
});

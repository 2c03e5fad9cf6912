/** The codecs of the hot path leave nothing to the garbage collector, however large the numbers. */
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { compiledFile } from '../../gate/paths.js';

const flags = ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=128'];
const probe = compiledFile('test/unit/wire/allocation-probe.ts');

t.test('an operation allocates nothing on the heap', async (t) => {
  const output = execFileSync(process.execPath, [...flags, probe], { encoding: 'utf8' });
  const { planted, ...measured } = JSON.parse(output) as Record<string, number>;
  t.ok(planted! > 10, 'the probe sees one object an operation', { planted });
  t.equal(Object.keys(measured).length, 7);
  for (const [name, bytes] of Object.entries(measured)) {
    t.ok(bytes < 1, `${name}: ${bytes.toFixed(3)} bytes an operation`);
  }
});

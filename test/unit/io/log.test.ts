/**
 * The log on LMDB does what every log does, with segments so small that every rule crosses some.
 */

import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { openLog } from '../../../src/io/log/log.js';
import { logConformance } from '../../conformance/log-port.js';

let folders = 0;

function makeStorage(folder: string, segmentBytesMax: number) {
  folders += 1;
  const own = path.join(folder, String(folders));
  return {
    open: async () => {
      const { log, state } = await openLog({
        folder: own,
        nodeId: 1,
        segmentBytesMax,
        onFatal: (reason) => t.fail(reason),
      });
      return { log, state, setEvents: log.setEvents.bind(log) };
    },
  };
}

t.test('with small segments', async (t) => {
  const folder = t.testdir({});
  logConformance(t, () => makeStorage(folder, 2_000), 6);
});

t.test('with segments of full size', async (t) => {
  const folder = t.testdir({});
  logConformance(t, () => makeStorage(folder, 64 << 20), 3);
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }));
});

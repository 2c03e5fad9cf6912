/**
 * The simulated log does what every log does: the suite is that of the log on LMDB.
 */
import t from 'tap';
import { logConformance } from '../conformance/log-port.js';
import { SimDisk } from './sim-disk.js';
import { openSimLog } from './sim-log.js';
import { World } from './world.js';

/** A world that runs by itself, since the suite waits with promises. */
function makeStorage(segmentBytesMax: number) {
  const world = new World(1);
  const disk = new SimDisk();
  disk.segmentBytesMax = segmentBytesMax;
  t.teardown(() => disk.media.forget());
  const turn = setInterval(() => world.run(world.nowUs + 1_000_000), 1);
  t.teardown(() => clearInterval(turn));
  return {
    open: () => {
      const { log, state } = openSimLog(world, disk, 1);
      const setEvents = (events: typeof log.events): void => {
        log.events = events;
      };
      return Promise.resolve({ log, state, setEvents });
    },
  };
}

t.test('with small segments', async (t) => logConformance(t, () => makeStorage(2_000), 20));
t.test('with segments of full size', async (t) =>
  logConformance(t, () => makeStorage(64 << 20), 10),
);

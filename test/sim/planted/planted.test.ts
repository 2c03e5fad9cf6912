/**
 * The list of planted bugs fits the sources as they are, and the hunt finds one of each room.
 * The whole list is a command of its own: npm run sim -- --planted.
 */
import t from 'tap';
import { changedSources, TIGHT_LIMITS } from './image.js';
import { hunt } from './planted.js';
import { PLANTS, type Plant, patchesOf } from './plants.js';

const LEAST = 30;
const HUNTED = [
  'raft: two of five are a majority',
  'storage: the checksum of a record is not looked at',
  'locks: the last waiter is granted first',
];

t.test('every bug of the list can be planted', (t) => {
  t.ok(PLANTS.length >= LEAST, `${PLANTS.length} bugs`);
  t.equal(new Set(PLANTS.map(({ name }) => name)).size, PLANTS.length, 'each has its name');
  for (const plant of PLANTS) {
    t.doesNotThrow(() => changedSources([...TIGHT_LIMITS, ...patchesOf(plant)]), plant.name);
  }
  t.end();
});

for (const [at, name] of HUNTED.entries()) {
  t.test(`caught: ${name}`, (t) => {
    const plant = PLANTS.find((each) => each.name === name) as Plant;
    const found = hunt(plant, `gate-${process.pid}-${at}`);
    t.ok(found, `${found?.checker} after ${found?.seeds} seeds: ${found?.said}`);
    t.end();
  });
}

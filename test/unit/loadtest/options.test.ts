/** The command line of `npm run bench`: every profile has its name, wrong words are refused. */
import t from 'tap';
import {
  EXIT_UNAVAILABLE,
  EXIT_USAGE,
  helpText,
  PROFILES,
  parseBench,
  UsageError,
} from '../../../loadtest/options.js';

function refused(words: readonly string[]): number {
  try {
    parseBench(words);
  } catch (error) {
    if (error instanceof UsageError) return error.status;
    throw error;
  }
  return 0;
}

t.test('every profile is in the help, and those to come say so', async (t) => {
  const help = helpText();
  for (const [name, { isBuilt }] of Object.entries(PROFILES)) {
    const line = help.split('\n').find((each) => each.startsWith(`  ${name} `)) ?? '';
    t.equal(line.includes('not in this build yet'), !isBuilt, line);
    const status = refused(['--profile', name]);
    t.equal(status, isBuilt ? 0 : EXIT_UNAVAILABLE, name);
  }
});

t.test('options of another kind of loop, and numbers that are none, are refused', async (t) => {
  for (const words of [
    ['--profile', 'none'],
    ['--profile', 'headline', '--rate', '100'],
    ['--profile', 'open-loop', '--inflight', '100'],
    ['--duration', '0'],
    ['--duration', 'long'],
    ['--connections', '1.5'],
    ['--unknown'],
    ['--profile', 'failover', '--endpoints', '127.0.0.1:7401'],
  ]) {
    t.equal(refused(words), EXIT_USAGE, words.join(' '));
  }
});

t.test('what is given wins over the default of the profile', async (t) => {
  const wish = parseBench(['--profile', 'open-loop', '--rate', '1000', '--duration', '2.5']);
  if (wish.kind !== 'run') throw new Error(wish.kind);
  t.equal(wish.options.rate, 1_000);
  t.equal(wish.options.durationS, 2.5);
  t.equal(wish.options.connections, PROFILES['open-loop']?.connections);
  t.equal(wish.options.inflight, null);
});

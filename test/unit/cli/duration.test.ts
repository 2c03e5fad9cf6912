import fc from 'fast-check';
import t from 'tap';
import { formatDuration, parseDuration } from '../../../src/cli/duration.js';
import { OptionError } from '../../../src/server/options.js';

t.test('durations with a unit are read as whole milliseconds', async (t) => {
  const cases: readonly [string, number][] = [
    ['0', 0],
    ['0s', 0],
    ['250ms', 250],
    ['5s', 5_000],
    ['1.5s', 1_500],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['1d', 86_400_000],
  ];
  for (const [text, ms] of cases) t.equal(parseDuration('--ttl', text), ms, text);
});

t.test('what is no duration is refused with the option’s name', async (t) => {
  const bad = ['', '30', '-5s', '+5s', '5 s', '5S', 's', '1e3s', 'NaN', 'Infinity', '5sec', '5s '];
  for (const text of [
    ...bad,
    '0.0001ms',
    '1.5ms',
    '999999999999d',
    '5w',
    '5y',
    '00',
    '1m30s',
    '0.5',
  ]) {
    t.throws(() => parseDuration('--ttl', text), { option: '--ttl', code: 'USAGE' }, text);
  }
});

t.test('property: any text is a duration or an OptionError', async () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        return Number.isSafeInteger(parseDuration('--wait', text));
      } catch (error) {
        return error instanceof OptionError;
      }
    }),
  );
});

t.test('durations are written for people', async (t) => {
  const cases: readonly [number, string][] = [
    [-5, '0ms'],
    [0, '0ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [4_260, '4.2s'],
    [59_999, '59.9s'],
    [60_000, '1m'],
    [200_000, '3m20s'],
    [7_500_000, '2h5m'],
  ];
  for (const [ms, text] of cases) t.equal(formatDuration(ms), text);
});

/**
 * Figures that a test measured, as TAP comments that the report collects.
 *
 * Owns: the form of such a line, written and read. Never: a verdict; what has to hold is asserted
 * by the test. Used by: the acceptance tests and main.ts.
 */

/** What a figure uses of a tap test. */
export interface FigureTest {
  comment(text: string): unknown;
}

const MARK = 'figure:';

/** Notes one figure, such as figure(t, 'writes', 1000). */
export function figure(test: FigureTest, name: string, value: number | string): void {
  test.comment(`${MARK} ${name} = ${value}`);
}

/** The middle of the values; the lower one of two. NaN when there is none. */
export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}

/** Notes count, least, median and greatest of some times. */
export function figureOfTimes(test: FigureTest, name: string, timesMs: readonly number[]): void {
  const round = (ms: number): number => Math.round(ms);
  const least = round(Math.min(...timesMs));
  const most = round(Math.max(...timesMs));
  const median = round(medianOf(timesMs));
  const text = `count ${timesMs.length}, min ${least} ms, median ${median} ms, max ${most} ms`;
  figure(test, name, text);
}

/** The figures in the TAP text of a run, in order. */
export function figuresIn(text: string): string[] {
  const found: string[] = [];
  for (const line of text.split('\n')) {
    const at = line.indexOf(`# ${MARK} `);
    if (at >= 0) found.push(line.slice(at + MARK.length + 3));
  }
  return found;
}

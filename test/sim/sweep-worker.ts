/**
 * Runs ranges of seeds that its parent sends, one after the other, and sends their counts back.
 *
 * Owns: nothing. Prints the failing seeds itself. Ends with its parent. Started by: main.ts.
 */
import { openRunner } from './run-seed.js';
import { type Range, runRange } from './sweep.js';

const runSeed = await openRunner();
process.on('message', (range: Range) => {
  const totals = runRange(range, runSeed, false, (text) => process.stdout.write(`${text}\n`));
  process.send?.(totals);
});
process.on('disconnect', () => process.exit(0));
process.send?.(null);

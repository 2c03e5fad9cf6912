/**
 * Events that a sink refused, as lines of a file: added by one command, offered again by another.
 *
 * Owns: that both may run at once and die anywhere without losing a letter; one may be delivered
 * twice. A retry takes the file away under another name, and whoever added to it meanwhile sees
 * that and adds again. Never: when an event is given up (delivery.ts).
 * Used by: delivery.ts, commands/audit.ts.
 */
import fs from 'node:fs';
import type { Json } from '../../wire/event-json.js';
import { CliError } from '../exit-codes.js';
import { appendLines, cutTornLine } from './checkpoint.js';
import type { Delivered, Sink } from './sinks.js';

/** An event and the last words of the sink that refused it. */
interface Letter {
  readonly reason: string;
  readonly event: Json;
}

/** Puts `event` aside, durably. */
export function addLetter(file: string, letter: Letter): void {
  cutTornLine(file);
  while (appendLines(file, [JSON.stringify(letter)]) !== inodeOf(file)) {
    // A retry has taken the file away, perhaps before it had this line: once more.
  }
}

/** 0 for no file. */
function inodeOf(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.ino ?? 0;
}

/** What comes after the last newline was never finished: its event was not passed over. */
function readLetters(file: string): Letter[] {
  const lines = fs.readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line, at) => letterOf(line, file, at + 1));
}

function letterOf(line: string, file: string, number: number): Letter {
  try {
    const letter = JSON.parse(line) as Partial<Letter> | null;
    if (typeof letter?.event === 'object') return letter as Letter;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new CliError('USAGE', `${file}: line ${number} is no dead letter of holdfast audit`, {
    option: '--dead-letters',
  });
}

/**
 * Offers the letters in `file` to the sink again; those that are not taken are put back.
 * Letters of a retry that died are beside the file, and are put back first.
 * Throws CliError USAGE for a file of something else, which stays as it was.
 */
export async function retryLetters(
  file: string,
  sink: Sink,
  signal: AbortSignal,
): Promise<{ readonly delivered: number; readonly left: number }> {
  const claimed = `${file}.retry`;
  if (fs.existsSync(claimed)) {
    for (const letter of readLetters(claimed)) addLetter(file, letter);
    fs.rmSync(claimed);
  }
  const counts = { delivered: 0, left: 0 };
  if (!fs.existsSync(file)) return counts;
  readLetters(file);
  fs.renameSync(file, claimed);
  for (const { reason, event } of readLetters(claimed)) {
    const result = signal.aborted ? null : await sink.deliver([event], signal);
    if (result === 'taken') {
      counts.delivered += 1;
      continue;
    }
    counts.left += 1;
    addLetter(file, { reason: result === null ? reason : reasonIn(result), event });
  }
  fs.rmSync(claimed);
  return counts;
}

function reasonIn(result: Exclude<Delivered, 'taken'>): string {
  return 'refused' in result ? result.refused : result.unreachable;
}

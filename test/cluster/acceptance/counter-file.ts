/**
 * A counter in a real file that is read, changed and written in three steps, and its journal.
 *
 * Owns: the form of both files. Never: a lock, a check or a repair: two workers inside at the same
 * time lose a change or break the order of tokens, and the test sees it. Each step gives the event
 * loop away, so tasks of one process can get in between as processes can.
 * Used by: counter-worker.ts (adds), counter tests (read the result).
 */
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** What stands in the counter's file: how often it was written, and the last writer's token. */
export interface CounterState {
  readonly count: number;
  readonly token: number;
}

export class CounterFile {
  private readonly file: string;
  private readonly journal: string;

  /** @param folder an existing folder; every worker names the same one */
  constructor(folder: string) {
    this.file = path.join(folder, 'counter');
    this.journal = path.join(folder, 'journal');
  }

  /** Makes both files, with a count of 0. */
  async create(): Promise<void> {
    await writeFile(this.file, '0 0\n');
    await writeFile(this.journal, '');
  }

  async read(): Promise<CounterState> {
    return stateOf(await readFile(this.file, 'utf8'));
  }

  async write(state: CounterState): Promise<void> {
    const line = `${state.count} ${state.token}\n`;
    await writeFile(this.file, line);
    await appendFile(this.journal, line);
  }

  /** Every state that was written, in the order of the writes. */
  async history(): Promise<CounterState[]> {
    const lines = (await readFile(this.journal, 'utf8')).split('\n');
    return lines.filter((line) => line !== '').map(stateOf);
  }
}

function stateOf(line: string): CounterState {
  const [count, token] = line.split(' ').map(Number);
  if (count === undefined || token === undefined || !Number.isSafeInteger(count + token)) {
    throw new Error(`the counter's line is ${JSON.stringify(line)}, wanted two numbers`);
  }
  return { count, token };
}

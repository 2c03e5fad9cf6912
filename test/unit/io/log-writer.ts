/**
 * A process that writes to a log until it is killed, for the tests of crashes and of bad disks.
 *
 * Arguments: folder, bytes of an entry, orders in flight, [segment bytes, [silence ms]]. Prints
 * `open <last index>` and then `durable <last index>` for each notice. Started by
 * log-crash.test.ts.
 */
import { writeSync } from 'node:fs';
import { openLog } from '../../../src/io/log/log.js';
import { LogError } from '../../../src/io/log/log-error.js';
import { makeEntry } from '../../conformance/log-driver.js';

const [folder, entryBytes, inFlight, segmentBytes, silenceMs] = process.argv.slice(2);

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

async function main(): Promise<void> {
  const { log, state } = await openLog({
    folder: folder!,
    nodeId: 1,
    onFatal: (reason) => say(`fatal ${reason}`),
    onNote: (text) => say(`note ${text}`),
    segmentBytesMax: Number(segmentBytes ?? 64 << 20),
    silenceMsMax: Number(silenceMs ?? 20_000),
  });
  let last = state.lastIndex;
  let appendId = last;
  const give = () => {
    last += 1;
    appendId += 1;
    const entries = [makeEntry(last, 1, Number(entryBytes))];
    const hardState = last % 10 === 0 ? { term: last, votedFor: 1 } : null;
    log.append({ appendId, resetTo: 0, truncateFrom: 0, entries, hardState, commitIndex: 0 });
  };
  say(`open ${last}`);
  log.setEvents({
    onRead: () => undefined,
    onDurable: (id) => {
      // The process may be killed at any instant after this line has left it.
      say(`durable ${id}`);
      while (appendId - id < Number(inFlight)) give();
    },
  });
  for (let order = 0; order < Number(inFlight); order++) give();
}

main().catch((error: unknown) => {
  say(error instanceof LogError ? `refused ${error.code} ${error.message}` : String(error));
  process.exit(3);
});

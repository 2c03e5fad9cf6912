/**
 * A process that opens a log and says what is in it, since a damaged file can also kill its reader.
 *
 * Arguments: folder, segment bytes. Prints `entries <count> <crc over all>` or `refused <code>`.
 * Started by log-damage.test.ts.
 */
import { writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { openLog } from '../../../src/io/log/log.js';
import { LogError } from '../../../src/io/log/log-error.js';
import { LogDriver, plain } from '../../conformance/log-driver.js';

const [folder, segmentBytes] = process.argv.slice(2);

async function main(): Promise<void> {
  const segmentBytesMax = Number(segmentBytes);
  const onFatal = () => undefined;
  const { log, state } = await openLog({ folder: folder!, nodeId: 1, segmentBytesMax, onFatal });
  const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
  let crc = 0;
  for (let from = 1; from <= state.lastIndex; ) {
    const entries = await driver.read(from, state.lastIndex);
    crc = crc32(plain(entries).join('\n'), crc);
    from += entries.length;
  }
  writeSync(1, `entries ${state.lastIndex} ${crc}\n`);
  await log.close();
}

main().catch((error: unknown) => {
  writeSync(1, `refused ${error instanceof LogError ? error.code : String(error)}\n`);
  process.exitCode = 3;
});

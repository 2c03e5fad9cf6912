/** Operations are counted in a real log, and one too few or too many is seen. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t from 'tap';
import { countLog } from '../../../loadtest/log-count.js';
import { Meter } from '../../../loadtest/meter.js';
import { logCheck } from '../../../loadtest/verdict.js';
import { CommandKind } from '../../../src/core/locks/command.js';
import { OutcomeCode } from '../../../src/core/locks/outcome.js';
import { EntryKind } from '../../../src/core/raft/message.js';
import { RECORD_HEADER_BYTES, viewOf, writeHeader } from '../../../src/io/log/record.js';
import { openSegmentedLog } from '../../../src/io/log/verify.js';
import { EntryWriter } from '../../../src/wire/entry.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { type PackValue, writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';

const data = mkdtempSync(path.join(tmpdir(), 'holdfast-count-'));
t.teardown(() => rmSync(data, { recursive: true, force: true }));
const ID = new Uint8Array(16);

function record(operations: readonly PackValue[][]): Uint8Array {
  const writer = new EntryWriter();
  for (const operation of operations) {
    const out = new OutBuffer();
    writeValue(out, operation);
    writer.addOperation(1, 1, out.bytes, 0, out.length);
  }
  const entry = writer.close(1, 1, ID);
  const bytes = new Uint8Array(RECORD_HEADER_BYTES + entry.length);
  bytes.set(entry, RECORD_HEADER_BYTES);
  writeHeader(viewOf(bytes), 0, 1, 0, EntryKind.Batch);
  return bytes;
}

const acquire: PackValue[] = [CommandKind.Acquire, 1, ID, null, null, 'a'];
const renew: PackValue[] = [CommandKind.Renew, null, null, null, null, ID];

// Segments so small that the entries lie in several.
const folder = path.join(data, 'log');
mkdirSync(folder);
const { log } = openSegmentedLog(folder, 5_000, null, { onProgress: () => undefined });
for (let index = 1; index <= 40; index += 1) {
  const operations = index % 4 === 0 ? [] : [acquire, acquire, renew];
  log.append(index, record(operations));
  log.commit();
}
log.close();

t.test('operations are counted by command, over all segments', async (t) => {
  const count = countLog(data);
  t.equal(count.entries, 40);
  t.equal(count.lastIndex, 40);
  t.equal(count.operations[CommandKind.Acquire], 60);
  t.equal(count.operations[CommandKind.Renew], 30);
  t.equal(count.operations[CommandKind.Release], 0);
});

function told(acquires: number, renewals: number): Meter {
  const meter = new Meter();
  for (let i = 0; i < acquires; i += 1) {
    meter.onAnswer(CommandKind.Acquire, i % 2 === 0 ? OutcomeCode.Ok : OutcomeCode.LockBusy, 1);
  }
  for (let i = 0; i < renewals; i += 1) meter.onAnswer(CommandKind.Renew, OutcomeCode.Ok, 1);
  return meter;
}

t.test('a log that has what was answered is good, whatever the answers were', async (t) => {
  const check = logCheck(1, countLog(data), [told(60, 10), told(0, 20)], false);
  t.equal(check.isKept, true, check.detail);
});

t.test('one acknowledged operation that is not in the log is seen', async (t) => {
  const check = logCheck(1, countLog(data), [told(61, 30)], false);
  t.equal(check.isKept, false, check.detail);
});

t.test('one operation in the log that nobody was told of is seen', async (t) => {
  const check = logCheck(1, countLog(data), [told(60, 29)], false);
  t.equal(check.isKept, false, check.detail);
});

t.test(
  'what was refused before the log need not be in it; an unknown outcome may be',
  async (t) => {
    const meter = told(60, 30);
    meter.onAnswer(CommandKind.Acquire, ErrorCode.Overloaded, 1);
    t.equal(logCheck(1, countLog(data), [meter], false).isKept, true);
    const doubtful = told(59, 30);
    doubtful.onAnswer(CommandKind.Acquire, ErrorCode.UnknownOutcome, 1);
    t.equal(logCheck(1, countLog(data), [doubtful], false).isKept, true);
    const lost = told(61, 30);
    lost.onAnswer(CommandKind.Acquire, ErrorCode.UnknownOutcome, 1);
    t.equal(logCheck(1, countLog(data), [lost], false).isKept, false);
  },
);

/**
 * What a snapshot costs at a million leases: replay, writing, reading back, digests.
 *
 * Owns: a log of acquires in batches, on a real disk, and the report as one JSON line. Compares with
 * the alternative, writing rows of the live state, by the time that writing alone takes. Run by
 * hand: `node test/gate/exec.mjs native-bench/snapshot.ts [leases [operations an entry]]`.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CommandKind, OPERATION_VERSION } from '../src/core/locks/command.js';
import { LockMachine } from '../src/core/locks/lock-machine.js';
import { defaultSettings } from '../src/core/locks/settings.js';
import { MachineRestorer } from '../src/core/locks/snapshot-restorer.js';
import { wordsOf } from '../src/io/snapshots/restore.js';
import { chunkFile, SnapshotFiles } from '../src/io/snapshots/snapshot-files.js';
import { SNAPSHOT_CHUNK_BYTES, SNAPSHOT_ROWS_AT_ONCE } from '../src/limits.js';
import { Replayer } from '../src/replica/replay.js';
import { EntryWriter } from '../src/wire/entry.js';
import { writeValue } from '../src/wire/msgpack-writer.js';
import { OutBuffer } from '../src/wire/out-buffer.js';

const leases = Number(process.argv[2] ?? 1_000_000);
const batch = Number(process.argv[3] ?? 500);
const clusterId = new Uint8Array(16).fill(7);
const DAY_MS = 86_400_000;

/** One entry of `batch` acquires from the lock `first` on. */
function makeEntry(first: number): Uint8Array {
  const writer = new EntryWriter();
  writer.open();
  for (let at = first; at < first + batch; at += 1) {
    const out = new OutBuffer();
    const name = `orders/shard-${at % 97}/job-${at}`;
    writeValue(out, [CommandKind.Acquire, `r${at}`, null, null, null, name, DAY_MS]);
    writer.addOperation(1, OPERATION_VERSION, out.bytes, 0, out.length);
  }
  return writer.close(1_000 + first / batch, 1, new Uint8Array(16).fill(first / batch));
}

function measure<T>(work: () => T): [T, number] {
  const startedMs = performance.now();
  const result = work();
  return [result, Math.round(performance.now() - startedMs)];
}

/** Reads the chunks back in slices; the longest slice is the longest pause of a node that serves. */
function readBack(files: SnapshotFiles): [LockMachine, number] {
  const restorer = new MachineRestorer(wordsOf(clusterId), Uint32Array.of(1, 2));
  let longestMs = 0;
  for (let position = 0; position < files.chunks.length; position += 1) {
    let isDone = false;
    restorer.add(fs.readFileSync(chunkFile(files.folder, position)));
    while (!isDone) {
      const startedMs = performance.now();
      isDone = restorer.step(SNAPSHOT_ROWS_AT_ONCE);
      longestMs = Math.max(longestMs, performance.now() - startedMs);
    }
  }
  const machine = restorer.finish();
  if (machine === null) throw new Error(restorer.fault);
  return [machine, longestMs];
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-snapshot-'));
const settings = { ...defaultSettings(), freeResultsMax: 2_000_000 };
const machine = new LockMachine(settings, wordsOf(clusterId));
const replayer = new Replayer(machine);
const data: Uint8Array[] = [];
for (let first = 0; first < leases; first += batch) data.push(makeEntry(first));
const [, replayMs] = measure(() => {
  for (const [at, bytes] of data.entries()) replayer.apply(at + 1, bytes);
});
const [, digestMs] = measure(() => machine.digest());
const files = new SnapshotFiles(path.join(folder, 'draft'));
const [, writeMs] = measure(() => {
  machine.writeSnapshot(SNAPSHOT_CHUNK_BYTES, (chunk) => files.add(chunk));
});
const [[restored, longestMs], restoreMs] = measure(() => readBack(files));
const [digest, restoredDigestMs] = measure(() => restored.digest());
if (digest !== machine.digest()) throw new Error('the digests differ');
fs.rmSync(folder, { recursive: true });
process.stdout.write(
  `${JSON.stringify({
    machine: { cpu: os.cpus()[0]?.model, cores: os.cpus().length, node: process.version },
    leases: machine.counts.leases,
    log_bytes: data.reduce((sum, bytes) => sum + bytes.length, 0),
    snapshot_bytes: files.bytes,
    chunks: files.chunks.length,
    replay_us_per_operation: (replayMs * 1_000) / leases,
    replay_ms: replayMs,
    digest_ms: digestMs,
    write_ms: writeMs,
    restore_ms: restoreMs,
    restore_longest_slice_ms: Math.round(longestMs * 10) / 10,
    restored_digest_ms: restoredDigestMs,
    rss_mib: Math.round(process.memoryUsage().rss / (1 << 20)),
  })}\n`,
);

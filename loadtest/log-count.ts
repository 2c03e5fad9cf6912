/**
 * Counts the operations in the log of a stopped node, by command: what was really replicated.
 *
 * Owns: walking the records of every segment, read-only in effect. Every record's checksum is
 * looked at, so a damaged one is an error and not a smaller count. Never: a running node's log.
 * Used by: verdict.ts.
 */
import path from 'node:path';
import { CommandKind, LOGGED_COMMAND_MIN } from '../src/core/locks/command.js';
import { Environment } from '../src/io/log/environment.js';
import { RECORD_HEADER_BYTES, RecordHeader } from '../src/io/log/record.js';
import { listSegments, segmentFolder } from '../src/io/log/segment-files.js';
import { EntryReader } from '../src/wire/entry.js';
import { arrayHeaderBytes, unsignedAt } from '../src/wire/msgpack-reader.js';

const COMMANDS_MAX = 64;

export interface LogCount {
  /** Index of the first entry that is there; above 1 when older ones were compacted away. */
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly entries: number;
  /** Operations by command number. */
  readonly operations: Float64Array;
}

/** @param dataFolder of a node whose process has ended */
export function countLog(dataFolder: string): LogCount {
  const folder = path.join(dataFolder, 'log');
  const operations = new Float64Array(COMMANDS_MAX);
  const header = new RecordHeader();
  const reader = new EntryReader();
  const firsts = listSegments(folder);
  let entries = 0;
  let lastIndex = 0;
  for (const first of firsts) {
    const environment = Environment.open(segmentFolder(folder, first));
    for (const index of environment.keys()) {
      const record = environment.get(index);
      if (record === null || !header.tryRead(record)) {
        throw new Error(`the record of index ${index} is damaged`);
      }
      const data = record.subarray(RECORD_HEADER_BYTES);
      // A no-op of a new leader has no entry header.
      if (reader.open(data)) {
        while (reader.next()) countOperation(data, reader.start, reader.end, operations);
      }
      entries += 1;
      lastIndex = index;
    }
    environment.close();
  }
  return { firstIndex: firsts[0] ?? 1, lastIndex, entries, operations };
}

function countOperation(
  data: Uint8Array,
  start: number,
  end: number,
  operations: Float64Array,
): void {
  const at = start + arrayHeaderBytes(data[start] as number);
  const kind = unsignedAt(data, at, end);
  if (kind < LOGGED_COMMAND_MIN || kind >= COMMANDS_MAX)
    throw new Error(`command ${kind} in a log`);
  operations[kind] = (operations[kind] as number) + 1;
}

/** What clients ask for; the cluster's own commands are left out. */
export const CLIENT_COMMANDS: readonly number[] = [
  CommandKind.SessionOpen,
  CommandKind.SessionClose,
  CommandKind.Acquire,
  CommandKind.Release,
  CommandKind.Renew,
];

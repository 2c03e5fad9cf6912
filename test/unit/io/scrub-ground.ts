/**
 * A data folder as a node leaves it, for tests of what checks one: founded, with log, snapshots and
 * history, written by the product's own code.
 *
 * Owns: the folder's shape, and how a byte of it is damaged. Used by: tests of io/scrub, the scrub
 * and `holdfast verify`.
 */
import fs from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import { historyFolder } from '../../../src/io/history/history-folder.js';
import { type LmdbLog, openLog } from '../../../src/io/log/log.js';
import { segmentFolder } from '../../../src/io/log/segment-files.js';
import type { FoundingRecord } from '../../../src/wire/founding.js';
import { encodeFounding } from '../../../src/wire/founding.js';
import { WorkerPool } from '../../../src/workers/pool.js';
import { LogDriver } from '../../conformance/log-driver.js';
import { CLUSTER_ID, lockEntry } from './snapshot-maker.js';

const NO_BOUND = 2 ** 40;
/** A log takes so many orders before one of them must be durable. */
const ORDERS_AT_ONCE = 100;
/** Entries before a snapshot that stay in the log. */
const TAIL = 30;
/** About 110 entries a segment. */
export const SEGMENT_BYTES = 20_000;

export interface GroundOptions {
  /** A snapshot is made at each of these indices. */
  readonly snapshots?: readonly number[];
  /** The last entry. */
  readonly last?: number;
  /** False: what a snapshot makes superfluous is deleted. */
  readonly keepsHistory?: boolean;
  readonly isFounded?: boolean;
  /** Entries before a snapshot that stay in the log; TAIL by default. */
  readonly tail?: number;
  /** Where; a folder of the test's own by default, one for each test. */
  readonly folder?: string;
}

/** The founding record of a cluster of three in which node 1 has this disk. */
export function foundingOf(diskId: Uint8Array, clusterId = CLUSTER_ID): FoundingRecord {
  const members = [1, 2, 3].map((nodeId) => ({
    nodeId,
    diskId: nodeId === 1 ? diskId : new Uint8Array(16).fill(nodeId),
    peer: `127.0.0.1:${7_600 + nodeId}`,
    client: `127.0.0.1:${7_400 + nodeId}`,
    zone: null,
  }));
  return { clusterId, members, settings: defaultSettings(), featureLevel: 1 };
}

export interface OpenGround {
  readonly folder: string;
  readonly log: LmdbLog;
  readonly driver: LogDriver;
  /** Adds entries up to an index; what was added is committed but for the last. */
  append(to: number): Promise<void>;
  /** Makes a snapshot, as the node does, and drops what it makes superfluous. */
  snapshot(index: number): Promise<void>;
}

/** Opens a folder below the test's own, and writes it. */
export async function openGround(t: Test, options: GroundOptions = {}): Promise<OpenGround> {
  const { snapshots = [], last = 0, keepsHistory = true, isFounded = true } = options;
  const { tail = TAIL } = options;
  const folder = options.folder ?? path.join(t.testdir({}), 'data');
  const pool = new WorkerPool();
  t.teardown(() => pool.close());
  const { log, state, identity } = await openLog({
    folder,
    nodeId: 1,
    segmentBytesMax: SEGMENT_BYTES,
    onFatal: (reason) => t.fail(reason),
  });
  const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
  if (isFounded) await log.storeFounding(encodeFounding(foundingOf(identity.diskId)));
  await driver.append({ hardState: { term: 1, votedFor: 1 } });
  let at = 0;
  let baseIndex = 0;
  const append = async (to: number): Promise<void> => {
    while (at < to) {
      at += 1;
      const id = driver.give({ entries: [lockEntry(at)], commitIndex: at - 1 });
      if (at % ORDERS_AT_ONCE === 0 || at === to) await driver.durable(id);
    }
  };
  const snapshot = async (index: number): Promise<void> => {
    await log.seal();
    const task = { dataFolder: folder, index, baseIndex, clusterId: CLUSTER_ID };
    await pool.compact({ ...task, settings: defaultSettings(), chunkBytes: 5_000 });
    await pool.run('publishDraft', { dataFolder: folder, index });
    if (keepsHistory) await pool.keepSegments({ dataFolder: folder, index: index - tail });
    await log.dropBefore(index - tail);
    const bytesMax = keepsHistory ? NO_BOUND : 0;
    await pool.keepSnapshots({ dataFolder: folder, index, bytesMax });
    baseIndex = index;
  };
  for (const index of snapshots) {
    await append(index + 5);
    await snapshot(index);
  }
  await append(last);
  return { folder, log, driver, append, snapshot };
}

/** The same, closed as a node leaves it. */
export async function makeGround(t: Test, options: GroundOptions = {}): Promise<string> {
  const { folder, log } = await openGround(t, options);
  await log.close();
  return folder;
}

export function flipAt(file: string, offset: number): void {
  const bytes = fs.readFileSync(file);
  bytes[offset]! ^= 1;
  // In place: the file keeps its inode, and whoever has it open sees the new byte.
  const handle = fs.openSync(file, 'r+');
  fs.writeSync(handle, bytes, offset, 1, offset);
  fs.closeSync(handle);
}

/** Segments of a folder by their first index. */
export function segmentsOf(folder: string): number[] {
  if (!fs.existsSync(folder)) return [];
  const names = fs.readdirSync(folder).filter((name) => name.startsWith('segment-'));
  return names.map((name) => Number(name.slice('segment-'.length))).sort((a, b) => a - b);
}

export function logOf(dataFolder: string): string {
  return path.join(dataFolder, 'log');
}

/** Flips a bit in the name that the entry of `index` locks. Returns the segment that has it. */
export function damageEntry(dataFolder: string, index: number): string {
  for (const parent of [logOf(dataFolder), historyFolder(dataFolder)]) {
    const first = segmentsOf(parent).findLast((each) => each <= index);
    if (first === undefined) continue;
    const folder = segmentFolder(parent, first);
    const file = path.join(folder, 'data.mdb');
    // The bytes of a name may be in a page that is free: each of them is damaged.
    const bytes = fs.readFileSync(file);
    const name = Buffer.from(`name-${index}`);
    const isWhole = (at: number): boolean =>
      !/[0-9]/.test(String.fromCharCode(bytes[at + name.length] ?? 0));
    let hits = 0;
    for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + 1)) {
      if (!isWhole(at)) continue;
      flipAt(file, at);
      hits += 1;
    }
    if (hits > 0) return folder;
  }
  throw new Error(`entry ${index} is in no segment`);
}

/** Every file below a folder with its size and time of change. */
export function treeOf(folder: string): string[] {
  const lines: string[] = [];
  for (const name of fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const { size, mtimeMs } = fs.statSync(path.join(folder, name));
    lines.push(`${name} ${size} ${mtimeMs}`);
  }
  return lines;
}

/**
 * A simulated disk: what is durable on it, how fast it is, and how it can be damaged.
 *
 * Owns: the media of one node and the damage done to them. What is written, in which order, and
 * what is believed at the next start is decided by the production files of src/io, which run on the
 * simulated media. Never: a real file. Used by: sim-log.ts, sim-cluster.ts, faults.ts.
 */
import { Entry, type EntryKind } from '../../src/core/raft/message.js';
import { listSnapshots, snapshotPlace } from '../../src/io/snapshots/snapshot-folder.js';
import { SimFile } from './devices/files.js';
import { Media, type StoredEnvironment } from './devices/media.js';
import type { World } from './world.js';

const SEGMENT_BYTES_MAX = 64 << 20;
/** Bytes at the beginning of a snapshot that hold clocks and counters. */
const HEAD_BYTES = 48;
const SILENCE_US_MAX = 20_000_000;
/** Offsets in a stored record: term, kind, then the entry's data. */
const TERM_OFFSET = 8;
const KIND_OFFSET = 24;

/** What survives a crash. */
export class SimDisk {
  readonly media = new Media();
  /** How long a durable commit takes, µs, least and most. */
  fsyncUs: readonly [number, number] = [100, 500];
  /** While true nothing becomes durable; the node ends when it lasts too long. */
  isHeld = false;
  /** What was damaged last is older than the snapshot: a start may do without it. */
  isCovered = false;
  silenceUsMax = SILENCE_US_MAX;
  segmentBytesMax = SEGMENT_BYTES_MAX;
  readonly folder = `${this.media.root}/data`;

  readonly logFolder = `${this.folder}/log`;
  /** The environment in which a record was found last: the next one is mostly there, too. */
  private lastFound = '';

  /** The record of `index` as it is durable now; read past every production rule. */
  private storedRecord(index: number): Uint8Array | undefined {
    const { logFolder, lastFound, media } = this;
    const near = media.environments.get(lastFound)?.values.get(index);
    if (near !== undefined) return near;
    for (const [folder, stored] of media.environments) {
      const record = folder.startsWith(logFolder) ? stored.values.get(index) : undefined;
      if (record === undefined) continue;
      this.lastFound = folder;
      return record;
    }
    return undefined;
  }

  /** Term of the entry that is durable at `index`, 0 when none is. */
  storedTerm(index: number): number {
    const record = this.storedRecord(index);
    return record === undefined ? 0 : termIn(record);
  }

  /** The entry that is durable at `index`. */
  storedEntry(index: number): Entry | undefined {
    const record = this.storedRecord(index);
    if (record === undefined) return undefined;
    const kind = record[KIND_OFFSET] as EntryKind;
    return new Entry(index, termIn(record), kind, record.subarray(KIND_OFFSET + 1));
  }

  /** Flips one bit of what is stored. Returns where, '' when nothing is. */
  flipBit(world: World): string {
    this.isCovered = false;
    const found: { place: string; stored: StoredEnvironment; key: number }[] = [];
    for (const [place, stored] of this.media.environments) {
      for (const key of stored.values.keys()) found.push({ place, stored, key });
    }
    const isState = world.chance(0.2);
    const kind = found.filter(({ place }) => place.endsWith('/state') === isState);
    const from = kind.length > 0 ? kind : found;
    if (from.length === 0) return '';
    const { place, stored, key } = from[world.prng.below(from.length)] as (typeof found)[number];
    const bytes = (stored.values.get(key) as Uint8Array).slice();
    const bit = world.prng.below(bytes.length * 8);
    bytes[bit >>> 3] = (bytes[bit >>> 3] as number) ^ (1 << (bit & 7));
    stored.values.set(key, bytes);
    return `bit ${bit} of key ${key} in ${place.slice(this.media.root.length)}`;
  }

  /** Flips one bit of a file of the newest snapshot. Returns its index, 0 when there is none. */
  flipSnapshotBit(world: World): number {
    const [index] = listSnapshots(this.folder);
    if (index === undefined) return 0;
    const { files } = this.media;
    const place = snapshotPlace(this.folder, index);
    const found = files.list().filter((path) => path.startsWith(place));
    const first = found.find((path) => path.endsWith('chunk-000000'));
    const any = found[world.prng.below(Math.max(1, found.length))];
    const path = world.chance(0.4) ? (first ?? any) : any;
    const file = path === undefined ? undefined : files.find(path);
    if (!(file instanceof SimFile) || file.bytes.length === 0) return 0;
    const bytes = file.bytes.slice();
    // The beginning has what no digest covers.
    const near = world.chance(0.4) ? Math.min(bytes.length, HEAD_BYTES) : bytes.length;
    const bit = world.prng.below(near * 8);
    bytes[bit >>> 3] = (bytes[bit >>> 3] as number) ^ (1 << (bit & 7));
    file.bytes = bytes;
    file.sync();
    return index;
  }

  /** Damages more than a bit: a record lost or out of place, a file cut. '' when nothing fits. */
  damage(world: World): string {
    this.isCovered = false;
    const segments = [...this.media.environments].filter(([place]) =>
      place.startsWith(this.logFolder),
    );
    const [place, stored] = segments[world.prng.below(Math.max(1, segments.length))] ?? [];
    if (place === undefined || stored === undefined) return '';
    const keys = [...stored.values.keys()].sort((left, right) => left - right);
    const where = place.slice(this.media.root.length);
    switch (world.prng.below(3)) {
      case 0: {
        stored.missingBytes = 1 + world.prng.below(8_192);
        return `${stored.missingBytes} bytes cut off ${where}`;
      }
      case 1: {
        // Not the last: a log that ends earlier cannot be told from one that never had it.
        const isNewest = segments.every(([other]) => other <= place);
        const last = isNewest ? keys.length - 1 : keys.length;
        if (last < 1) return '';
        const key = keys[world.prng.below(last)] as number;
        this.isCovered = key <= (listSnapshots(this.folder)[0] ?? 0);
        stored.values.delete(key);
        return `key ${key} lost in ${where}`;
      }
      default: {
        if (keys.length < 2) return '';
        const at = 1 + world.prng.below(keys.length - 1);
        const [before, key] = [keys[at - 1] as number, keys[at] as number];
        stored.values.set(key, (stored.values.get(before) as Uint8Array).slice());
        return `key ${key} has the record of ${before} in ${where}`;
      }
    }
  }
}

function termIn(record: Uint8Array): number {
  const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
  return view.getUint32(TERM_OFFSET) * 2 ** 32 + view.getUint32(TERM_OFFSET + 4);
}

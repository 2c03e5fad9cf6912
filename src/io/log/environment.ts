/**
 * One LMDB environment of ours: a folder with one table of big-endian u64 keys and byte values.
 *
 * Owns: the settings under which a commit is durable when it returns (`overlappingSync` off and
 * synchronous transactions), the size check before a file is mapped, and the layout of the folder.
 * Never: promises, a second writer, or a read transaction that outlives the call that opened it.
 * The only file that imports lmdb. Used by: the log thread; workers, to read.
 */
import fs from 'node:fs';
import path from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { syncFolder } from '../sync-folder.js';
import { setU64 } from './u64.js';

/** Address space of one environment; a file never comes near it (SEGMENT_BYTES_MAX is less). */
const MAP_BYTES = 512 << 20;

/** Offsets in a meta page of LMDB's data format 2: page header, then MDB_meta, native order. */
const META = {
  magic: 24,
  format: 28,
  pageBytes: 48,
  freeRoot: 88,
  mainRoot: 136,
  lastPage: 144,
  transaction: 152,
  bytes: 160,
} as const;
const META_MAGIC = 0xbeefc0de;
const META_FORMAT = 2;
const ROOT_EMPTY = 0xffff_ffff_ffff_ffffn;

/** The data file of an environment's folder. */
function dataFile(folder: string): string {
  return path.join(folder, 'data.mdb');
}

interface Meta {
  readonly transaction: bigint;
  /** Bytes that the file has to have. */
  readonly bytes: number;
  /** False when a tree would start beyond the last page. */
  readonly areRootsSound: boolean;
}

/** The meta page at `position`, null when there is none. BigInt costs nothing at open. */
function readMeta(handle: number, position: number, pageBytes: number): Meta | null {
  const page = new DataView(new ArrayBuffer(META.bytes));
  if (fs.readSync(handle, page, 0, META.bytes, position) !== META.bytes) return null;
  if (page.getUint32(META.magic, true) !== META_MAGIC) return null;
  if ((page.getUint32(META.format, true) & 0xffff) !== META_FORMAT) return null;
  const lastPage = page.getBigUint64(META.lastPage, true);
  if (lastPage >= BigInt(MAP_BYTES / pageBytes)) return null;
  const roots = [META.freeRoot, META.mainRoot].map((at) => page.getBigUint64(at, true));
  return {
    transaction: page.getBigUint64(META.transaction, true),
    bytes: (Number(lastPage) + 1) * pageBytes,
    areRootsSound: roots.every((root) => root === ROOT_EMPTY || root <= lastPage),
  };
}

function readPageBytes(handle: number): number {
  const field = new DataView(new ArrayBuffer(4));
  fs.readSync(handle, field, 0, 4, META.pageBytes);
  const pageBytes = field.getUint32(0, true);
  const isSound = pageBytes >= 512 && pageBytes <= 65_536 && (pageBytes & (pageBytes - 1)) === 0;
  return isSound ? pageBytes : 0;
}

/**
 * Says in words why the environment in `folder` must not be mapped, or null when it may be. LMDB
 * maps a file without looking at its length, and touching a page past its end is a SIGBUS.
 */
export function findDamage(folder: string): string | null {
  const file = dataFile(folder);
  if (!fs.existsSync(file)) return 'data.mdb is missing';
  const handle = fs.openSync(file, 'r');
  try {
    const size = fs.fstatSync(handle).size;
    const pageBytes = readPageBytes(handle);
    if (pageBytes === 0) return 'the page size in data.mdb is not valid';
    const first = readMeta(handle, 0, pageBytes);
    const second = readMeta(handle, pageBytes, pageBytes);
    if (first === null || second === null) return 'a meta page of data.mdb is not valid';
    // LMDB uses the newer one. The other may be half undone, after a commit that failed.
    const newest = first.transaction > second.transaction ? first : second;
    if (size < newest.bytes) return `data.mdb has ${size} bytes, wanted ${newest.bytes}`;
    return newest.areRootsSound ? null : 'a tree of data.mdb starts beyond its last page';
  } finally {
    fs.closeSync(handle);
  }
}

/** An open environment. Every method may throw an Error of LMDB; the caller then stops for good. */
export class Environment {
  private readonly database: RootDatabase<Uint8Array, Uint8Array>;
  private readonly key = new Uint8Array(8);
  private readonly keyView = new DataView(this.key.buffer);

  private constructor(
    readonly folder: string,
    readOnly = false,
  ) {
    this.database = open<Uint8Array, Uint8Array>(folder, {
      readOnly,
      encoding: 'binary',
      keyEncoding: 'binary',
      overlappingSync: false,
      compression: false,
      cache: false,
      noSubdir: false,
      maxDbs: 1,
      mapSize: MAP_BYTES,
    });
  }

  /** Opens the environment in `folder`, which findDamage has passed. */
  static open(folder: string): Environment {
    return new Environment(folder);
  }

  /** Opens for reading what another thread may have open, and no longer writes. */
  static openToRead(folder: string): Environment {
    return new Environment(folder, true);
  }

  /**
   * Creates an environment so that a crash leaves either all of it or nothing under `folder`: it
   * is built beside it and renamed. The file starts at `fileBytes`, sparse: LMDB may leave its
   * last pages unwritten when they are free, and the size check could not tell that from a cut.
   */
  static create(folder: string, fileBytes: number): Environment {
    const parent = path.dirname(folder);
    const draft = path.join(parent, 'draft');
    fs.rmSync(draft, { recursive: true, force: true });
    fs.mkdirSync(draft);
    const environment = new Environment(draft);
    environment.close();
    const handle = fs.openSync(dataFile(draft), 'r+');
    try {
      fs.ftruncateSync(handle, Math.max(fileBytes, fs.fstatSync(handle).size));
      fs.fsyncSync(handle);
    } finally {
      fs.closeSync(handle);
    }
    syncFolder(draft);
    fs.renameSync(draft, folder);
    syncFolder(parent);
    return new Environment(folder);
  }

  /**
   * Deletes the environment in `folder`, which is closed, and makes that durable. It loses its name
   * first: a process that ends between the two files of a folder would leave one that looks like
   * damage. Whoever creates or opens the next one beside it clears the draft away.
   */
  static delete(folder: string): void {
    const parent = path.dirname(folder);
    const draft = path.join(parent, 'draft');
    fs.rmSync(draft, { recursive: true, force: true });
    if (fs.existsSync(folder)) fs.renameSync(folder, draft);
    syncFolder(parent);
    fs.rmSync(draft, { recursive: true, force: true });
  }

  /** The value at `key`, valid until the next call of any environment; null when there is none. */
  get(key: number): Uint8Array | null {
    setU64(this.keyView, 0, key);
    const found = this.database.getBinaryFast(this.key);
    if (found === undefined) return null;
    // The library's buffer is longer than it says, and a Buffer, whose slice() does not copy.
    return new Uint8Array(found.buffer, found.byteOffset, found.length);
  }

  /** Inside `commit`: stores `value`, which is copied before this returns. */
  put(key: number, value: Uint8Array): void {
    setU64(this.keyView, 0, key);
    this.database.putSync(this.key, value);
  }

  /** Inside `commit`: deletes the value at `key`, if there is one. */
  delete(key: number): void {
    setU64(this.keyView, 0, key);
    this.database.removeSync(this.key);
  }

  /** Runs `work` as one transaction, on disk when this returns. A throw in `work` undoes it. */
  commit(work: () => void): void {
    this.database.transactionSync(work);
  }

  /** Lets go of the snapshot that gets have opened: one that stays makes the file grow. */
  endReads(): void {
    this.database.resetReadTxn();
  }

  /** The keys stored, ascending. */
  keys(): number[] {
    const keys: number[] = [];
    for (const key of this.database.getKeys()) {
      const view = new DataView(key.buffer, key.byteOffset, key.byteLength);
      keys.push(view.getUint32(0) * 2 ** 32 + view.getUint32(4));
    }
    this.endReads();
    return keys;
  }

  /** Closes at once: there is never an asynchronous write to wait for. */
  close(): void {
    void this.database.close();
  }
}

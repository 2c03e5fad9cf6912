/**
 * Simulated storage media: environments of the log and files of snapshots, below one made-up path.
 *
 * Owns: what survives a crash, and the points at which a crash or an error can strike: each sync,
 * and each name that goes when a folder is removed. Every error of the device is counted, so that
 * it can be demanded that somebody has ended by it. The production files of src/io run on it
 * unchanged: every path below MEDIA_ROOT is answered here in place of LMDB and of the file system,
 * all others go their usual way.
 * Used by: sim-disk.ts.
 */
import fs from 'node:fs';
import type { Prng } from '../../../src/collections/prng.js';
import { Environment } from '../../../src/io/log/environment.js';
import { SimFile, SimFiles, SimFolder, type SimNode } from './files.js';

/** No such path exists on a real machine. */
export const MEDIA_ROOT = '/holdfast-simulated-media/';

/** The power goes at a sync point: what was committed before is there, the rest is not. */
export class PowerCut extends Error {
  override readonly name = 'PowerCut';
}

/** The device said no: the node ends, and a start that needs it fails. */
export class DeviceError extends Error {
  override readonly name = 'DeviceError';
  /** As the system's errors have them. */
  readonly code = 'EIO';
  readonly syscall = 'fsync';
}

/** What the next sync point does in place of its work. */
export type SyncFault = 'none' | 'rejects' | 'rejects but stays';

/** One environment: a map of keys to values, and the length of its file. */
export class StoredEnvironment {
  values = new Map<number, Uint8Array>();
  /** Bytes that are missing at the end of the file. */
  missingBytes = 0;
}

const byPrefix = new Map<string, Media>();
let lastMedia = 0;

/** The disk of one node. */
export class Media {
  readonly root: string;
  readonly environments = new Map<string, StoredEnvironment>();
  readonly files: SimFiles;
  /** Syncs and removals that still succeed before the power goes. */
  stepsLeft = Number.POSITIVE_INFINITY;
  /** Strikes at the next sync, whatever it is. */
  nextFault: SyncFault = 'none';
  /** Strikes at files and folders alone, those of snapshots, after so many of their syncs. */
  fileFault: SyncFault = 'none';
  fileSyncsLeft = 0;
  /** Errors of the device so far, and who hears of each. */
  deviceErrors = 0;
  onDeviceError: () => void = () => undefined;

  constructor() {
    install();
    lastMedia += 1;
    this.root = `${MEDIA_ROOT}${lastMedia}`;
    this.files = new SimFiles(this.root);
    byPrefix.set(this.root, this);
  }

  /** Makes the paths of this disk unknown again. */
  forget(): void {
    byPrefix.delete(this.root);
  }

  /** Everything is gone, as on a new disk. */
  wipe(): void {
    this.environments.clear();
    this.files.clear();
  }

  /** What was written and not synced is gone, or not, or half. */
  losePower(prng: Prng): void {
    this.files.losePower(prng);
  }

  /** Nothing that was told to fail does. */
  clearFaults(): void {
    this.nextFault = 'none';
    this.fileFault = 'none';
  }

  /** Carries out `work`, durable when this returns, or fails as it was told to. */
  sync(work: () => void, isOfFile = false): void {
    this.step();
    const fault = this.takeFault(isOfFile);
    if (fault !== 'rejects') work();
    if (fault === 'none') return;
    this.deviceErrors += 1;
    this.onDeviceError();
    throw new DeviceError(fault === 'rejects' ? 'EIO: simulated' : 'EIO: simulated, and yet done');
  }

  /** Removes what is at the path; nothing of that is durable yet. */
  remove(path: string): void {
    this.files.remove(path, () => this.step());
  }

  private step(): void {
    if (this.stepsLeft <= 0) throw new PowerCut('the power is gone');
    this.stepsLeft -= 1;
  }

  private takeFault(isOfFile: boolean): SyncFault {
    let fault = this.nextFault;
    this.nextFault = 'none';
    if (!isOfFile || this.fileFault === 'none') return fault;
    if (this.fileSyncsLeft === 0) {
      if (fault === 'none') fault = this.fileFault;
      this.fileFault = 'none';
    } else this.fileSyncsLeft -= 1;
    return fault;
  }
}

function mediaOf(path: string): Media | undefined {
  if (!path.startsWith(MEDIA_ROOT)) return undefined;
  const end = path.indexOf('/', MEDIA_ROOT.length);
  return byPrefix.get(end < 0 ? path : path.slice(0, end));
}

/** Has the methods of an Environment, on a StoredEnvironment. */
class SimEnvironment {
  private changes: (() => void)[] | null = null;

  constructor(
    readonly folder: string,
    private readonly media: Media,
    private readonly stored: StoredEnvironment,
  ) {}

  get(key: number): Uint8Array | null {
    return this.stored.values.get(key) ?? null;
  }

  put(key: number, value: Uint8Array): void {
    const copy = value.slice();
    this.changed().push(() => this.stored.values.set(key, copy));
  }

  delete(key: number): void {
    this.changed().push(() => this.stored.values.delete(key));
  }

  commit(work: () => void): void {
    const changes: (() => void)[] = [];
    this.changes = changes;
    work();
    this.changes = null;
    this.media.sync(() => {
      for (const change of changes) change();
    });
  }

  keys(): number[] {
    return [...this.stored.values.keys()].sort((left, right) => left - right);
  }

  endReads(): void {
    this.changes = null;
  }

  close(): void {
    this.changes = null;
  }

  private changed(): (() => void)[] {
    if (this.changes === null) throw new Error('a change outside of a commit');
    return this.changes;
  }
}

function openEnvironment(media: Media, folder: string): SimEnvironment {
  const stored = media.environments.get(folder);
  if (stored === undefined) throw new Error(`no environment in ${folder}`);
  return new SimEnvironment(folder, media, stored);
}

let isInstalled = false;

/** Puts the simulated media in front of LMDB and of the file system, for its own paths only. */
function install(): void {
  if (isInstalled) return;
  isInstalled = true;
  installEnvironments();
  installFiles();
}

type Call = (...words: unknown[]) => unknown;

/** Replaces `target[name]` for paths of simulated media; the real one keeps all others. */
function divert(target: object, name: string, answer: (media: Media, words: unknown[]) => unknown) {
  const real = Reflect.get(target, name) as Call;
  const diverted = function (this: unknown, ...words: unknown[]): unknown {
    const [path] = words;
    const media = typeof path === 'string' ? mediaOf(path) : undefined;
    return media === undefined ? real.apply(this, words) : answer(media, words);
  };
  Reflect.set(target, name, diverted);
}

function installEnvironments(): void {
  divert(Environment, 'open', (media, [folder]) => openEnvironment(media, folder as string));
  divert(Environment, 'openToRead', (media, [folder]) => openEnvironment(media, folder as string));
  divert(Environment, 'create', (media, [folder]) => {
    media.sync(() => media.environments.set(folder as string, new StoredEnvironment()));
    return openEnvironment(media, folder as string);
  });
  divert(Environment, 'delete', (media, [folder]) => {
    media.sync(() => media.environments.delete(folder as string));
  });
}

const DATA_FILE = '/data.mdb';
const PAGE_BYTES = 4_096;
const FILE_PAGES = 4;
interface Handle {
  readonly media: Media;
  readonly node: SimNode | StoredEnvironment;
}

const handles = new Map<number, Handle>();
/** Descriptors of simulated files: no system hands out negative ones. */
let lastHandle = -1_000;

function handleOf(media: Media, node: SimNode | StoredEnvironment): number {
  lastHandle -= 1;
  handles.set(lastHandle, { media, node });
  return lastHandle;
}

/** The two meta pages of an LMDB file of FILE_PAGES pages, as findDamage reads them. */
function metaPages(): DataView {
  const view = new DataView(new ArrayBuffer(2 * PAGE_BYTES));
  for (const page of [0, PAGE_BYTES]) {
    view.setUint32(page + 24, 0xbeef_c0de, true);
    view.setUint32(page + 28, 2, true);
    view.setUint32(page + 48, PAGE_BYTES, true);
    view.setBigUint64(page + 88, 2n, true);
    view.setBigUint64(page + 136, 2n, true);
    view.setBigUint64(page + 144, BigInt(FILE_PAGES - 1), true);
    view.setBigUint64(page + 152, page === 0 ? 1n : 2n, true);
  }
  return view;
}

const META_PAGES = metaPages();

function environmentOfFile(media: Media, path: string): StoredEnvironment | undefined {
  if (!path.endsWith(DATA_FILE)) return undefined;
  return media.environments.get(path.slice(0, -DATA_FILE.length));
}

function installFiles(): void {
  divert(fs, 'existsSync', (media, [path]) => {
    const name = path as string;
    if (media.environments.has(name) || media.files.find(name) !== undefined) return true;
    return environmentOfFile(media, name) !== undefined;
  });
  divert(fs, 'readdirSync', (media, [path]) => {
    const folder = `${path as string}/`;
    const names = [...media.environments.keys()].filter((name) => name.startsWith(folder));
    const found = media.files.find(path as string);
    const files = found instanceof SimFolder ? [...found.names.keys()] : [];
    return [...names.map((name) => name.slice(folder.length)), ...files].sort();
  });
  divert(fs, 'rmSync', (media, [path]) => media.remove(path as string));
  divert(fs, 'mkdirSync', (media, [path]) => media.files.makeFolder(path as string) && undefined);
  divert(fs, 'renameSync', (media, [from, to]) => media.files.rename(from as string, to as string));
  divert(fs, 'statSync', (media, [path]) => ({ size: fileAt(media, path as string).bytes.length }));
  divert(fs, 'readFileSync', (media, [path]) => {
    return Buffer.from(fileAt(media, path as string).bytes);
  });
  divert(fs, 'openSync', (media, [path, flags]) => {
    const stored = environmentOfFile(media, path as string);
    if (stored !== undefined) return handleOf(media, stored);
    if (flags === 'w') return handleOf(media, media.files.truncate(path as string));
    const node = media.files.find(path as string);
    if (node === undefined) throw new Error(`ENOENT: ${path as string}`);
    return handleOf(media, node);
  });
  installDescriptors();
}

function fileAt(media: Media, path: string): SimFile {
  const file = media.files.find(path);
  if (!(file instanceof SimFile)) throw new Error(`ENOENT: ${path}`);
  return file;
}

/** Replaces `fs[name]` for descriptors of simulated files. */
function divertHandle(name: string, answer: (handle: Handle, words: unknown[]) => unknown): void {
  const real = Reflect.get(fs, name) as Call;
  Reflect.set(fs, name, (...words: unknown[]): unknown => {
    const handle = handles.get(words[0] as number);
    return handle === undefined ? real(...words) : answer(handle, words);
  });
}

function installDescriptors(): void {
  divertHandle('readSync', (_handle, words) => {
    const [, target, offset, length, position] = words as [number, DataView, ...number[]];
    const from = new Uint8Array(META_PAGES.buffer, position, length);
    new Uint8Array(target.buffer, target.byteOffset).set(from, offset);
    return length;
  });
  divertHandle('fstatSync', ({ node }) => {
    const missingBytes = 'missingBytes' in node ? node.missingBytes : 0;
    return { size: FILE_PAGES * PAGE_BYTES - missingBytes };
  });
  divertHandle('writeFileSync', ({ node }, [, bytes]) => {
    // Not slice(): a Buffer's is no copy.
    if (node instanceof SimFile) node.bytes = new Uint8Array(bytes as Uint8Array);
  });
  divertHandle('fsyncSync', ({ media, node }) => {
    if (!('missingBytes' in node)) media.sync(() => node.sync(), true);
  });
  divertHandle('closeSync', (_handle, [handle]) => handles.delete(handle as number) && undefined);
}

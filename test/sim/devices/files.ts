/**
 * A simulated file system: what a process sees, and what of it would survive the power.
 *
 * Owns: for each file and each folder both states, and what becomes of the difference when the
 * power goes: what was not synced is kept, lost or torn, as chance will have it. A rename is one
 * change: it has happened or not. Never: a path outside of its root. Used by: media.ts.
 */
import type { Prng } from '../../../src/collections/prng.js';

const NOTHING = new Uint8Array(0);

export class SimFile {
  bytes: Uint8Array = NOTHING;
  synced: Uint8Array = NOTHING;

  copy(): SimFile {
    const copy = new SimFile();
    copy.bytes = this.bytes;
    copy.synced = this.synced;
    return copy;
  }

  sync(): void {
    this.synced = this.bytes;
  }

  losePower(prng: Prng): void {
    if (this.bytes === this.synced) return;
    const kept = prng.below(3);
    if (kept === 0) this.bytes = this.synced;
    // Torn: its length is there, its end is not.
    if (kept === 1 && this.bytes.length > 0) {
      const torn = this.bytes.slice();
      torn.fill(0, prng.below(torn.length));
      this.bytes = torn;
    }
    this.synced = this.bytes;
  }
}

export type SimNode = SimFile | SimFolder;

export class SimFolder {
  readonly names = new Map<string, SimNode>();
  synced = new Map<string, SimNode>();
  /** A name was given to what had another since the last sync. */
  private isRenamed = false;

  copy(): SimFolder {
    const copies = new Map<SimNode, SimNode>();
    const copyOf = (node: SimNode): SimNode => {
      const known = copies.get(node) ?? node.copy();
      copies.set(node, known);
      return known;
    };
    const copy = new SimFolder();
    for (const [name, node] of this.names) copy.names.set(name, copyOf(node));
    for (const [name, node] of this.synced) copy.synced.set(name, copyOf(node));
    copy.isRenamed = this.isRenamed;
    return copy;
  }

  rename(from: string, to: string): void {
    const node = this.names.get(from) as SimNode;
    this.names.delete(from);
    this.names.set(to, node);
    this.isRenamed = true;
  }

  sync(): void {
    this.synced = new Map(this.names);
    this.isRenamed = false;
  }

  losePower(prng: Prng): void {
    const isAllKept = prng.below(2) === 0;
    const before = this.synced;
    const now = new Map(this.names);
    this.names.clear();
    for (const name of [...new Set([...before.keys(), ...now.keys()])].sort()) {
      const isKept = this.isRenamed ? isAllKept : prng.below(2) === 0;
      const node = (isKept ? now : before).get(name);
      if (node !== undefined) this.names.set(name, node);
    }
    this.sync();
    for (const node of this.names.values()) node.losePower(prng);
  }
}

/** Paths below one root. */
export class SimFiles {
  private top = new SimFolder();

  /** The system names what is in a folder in no order: another one each time. */
  private turns = 0;

  constructor(private readonly root: string) {}

  find(path: string): SimNode | undefined {
    let node: SimNode = this.top;
    for (const name of this.split(path)) {
      const next: SimNode | undefined =
        node instanceof SimFolder ? node.names.get(name) : undefined;
      if (next === undefined) return undefined;
      node = next;
    }
    return node;
  }

  /** Makes the folder and what is missing above it. */
  makeFolder(path: string): SimFolder {
    let folder = this.top;
    for (const name of this.split(path)) {
      let next = folder.names.get(name);
      if (next === undefined) {
        next = new SimFolder();
        folder.names.set(name, next);
      }
      if (!(next instanceof SimFolder)) throw new Error(`ENOTDIR: ${path}`);
      folder = next;
    }
    return folder;
  }

  /** An empty file, which the path names from now on. */
  truncate(path: string): SimFile {
    const [folder, name] = this.place(path);
    const found = folder.names.get(name);
    const file = found instanceof SimFile ? found : new SimFile();
    file.bytes = NOTHING;
    folder.names.set(name, file);
    return file;
  }

  /**
   * Removes what is at the path name by name, the deepest first, as far as it is there. `before`
   * each of them the process may end.
   */
  remove(path: string, before: () => void): void {
    const node = this.find(path);
    if (node === undefined) return;
    if (node instanceof SimFolder) {
      for (const name of this.turned([...node.names.keys()]))
        this.remove(`${path}/${name}`, before);
    }
    before();
    const [folder, name] = this.place(path);
    folder.names.delete(name);
  }

  private turned(names: readonly string[]): readonly string[] {
    this.turns += 1;
    const first = this.turns % Math.max(1, names.length);
    return [...names.slice(first), ...names.slice(0, first)];
  }

  rename(from: string, to: string): void {
    const [folder, name] = this.place(from);
    const [target, newName] = this.place(to);
    if (folder !== target || !folder.names.has(name)) throw new Error(`ENOENT: ${from}`);
    if (folder.names.has(newName)) throw new Error(`ENOTEMPTY: ${to}`);
    folder.rename(name, newName);
  }

  /** The names in the root itself are durable: who makes a data folder sees to that. */
  losePower(prng: Prng): void {
    for (const node of this.top.names.values()) node.losePower(prng);
  }

  clear(): void {
    this.top = new SimFolder();
  }

  /** A copy that nothing changes. */
  backup(): SimFolder {
    return this.top.copy();
  }

  restore(backup: SimFolder): void {
    this.top = backup.copy();
  }

  /** Paths of all files, sorted. */
  list(): string[] {
    const found: string[] = [];
    const visit = (folder: SimFolder, path: string): void => {
      for (const [name, node] of folder.names) {
        if (node instanceof SimFolder) visit(node, `${path}/${name}`);
        else found.push(`${path}/${name}`);
      }
    };
    visit(this.top, this.root);
    return found.sort();
  }

  private split(path: string): string[] {
    return path
      .slice(this.root.length)
      .split('/')
      .filter((name) => name !== '');
  }

  private place(path: string): [SimFolder, string] {
    const at = path.lastIndexOf('/');
    const folder = this.find(path.slice(0, at));
    if (!(folder instanceof SimFolder)) throw new Error(`ENOENT: ${path}`);
    return [folder, path.slice(at + 1)];
  }
}

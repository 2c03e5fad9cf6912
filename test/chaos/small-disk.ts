/**
 * A small disk for one node that can be filled up and emptied: a tmpfs of its own.
 *
 * Owns: the mount and the ballast in it. Never: a node. Used by: the chaos command and the test of
 * a full disk, where the machine permits mounts.
 */
import { spawnSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { LOG_FREE_BYTES_MIN } from '../../src/limits.js';

const SIZE_MIB = 400;
const MIB = 1 << 20;

export class SmallDisk {
  private constructor(private readonly folder: string) {}

  /** Mounts it on `folder`, or says why not. */
  static mount(folder: string): SmallDisk | string {
    const words = ['-t', 'tmpfs', '-o', `size=${SIZE_MIB}m`, 'tmpfs', folder];
    const result = spawnSync('mount', words, { encoding: 'utf8' });
    return result.status === 0 ? new SmallDisk(folder) : `mount: ${result.stderr.trim()}`;
  }

  /** Leaves `leftBytes` free: by default less than a node's log wants. */
  fill(leftBytes = LOG_FREE_BYTES_MIN / 2): void {
    this.empty();
    const { bavail, bsize } = statfsSync(this.folder);
    const bytes = bavail * bsize - leftBytes;
    if (bytes > 0) writeFileSync(this.ballast, Buffer.alloc(Math.floor(bytes / MIB) * MIB, 1));
  }

  empty(): void {
    rmSync(this.ballast, { force: true });
  }

  unmount(): void {
    spawnSync('umount', ['-l', this.folder]);
  }

  private get ballast(): string {
    return path.join(this.folder, 'ballast');
  }
}

/**
 * A disk that can be filled up: a file system in memory, mounted for one drill.
 *
 * Owns: the mount and the ballast in it. Refuses by DRILL_NOT_PERMITTED where the machine does not
 * let it mount: a drill that cannot be played is never passed over. Never: a disk that was there
 * before. Used by: scenarios/full-disk.ts.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import path from 'node:path';
import { LOG_FREE_BYTES_MIN } from '../../limits.js';
import { CliError } from '../exit-codes.js';

const MIB = 1 << 20;

export class SmallDisk {
  private isMounted = true;

  private constructor(private readonly folder: string) {}

  /** Mounts one of `mib` on `folder`. Throws CliError DRILL_NOT_PERMITTED. */
  static mount(folder: string, mib: number): SmallDisk {
    const words = ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', folder];
    const { status, stderr, error } = spawnSync('mount', words, { encoding: 'utf8' });
    if (status === 0) return new SmallDisk(folder);
    const why = error?.message ?? stderr.trim();
    throw new CliError(
      'DRILL_NOT_PERMITTED',
      `run this drill as root on Linux: it mounts a small file system of its own (${why})`,
    );
  }

  /** Leaves less room than the log of a node wants. */
  fill(): void {
    const { bavail, bsize } = statfsSync(this.folder);
    const chunk = Buffer.alloc(MIB, 1);
    const handle = openSync(this.ballast, 'w');
    try {
      for (let left = bavail * bsize - LOG_FREE_BYTES_MIN / 2; left > MIB; left -= MIB) {
        writeSync(handle, chunk);
      }
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  }

  empty(): void {
    rmSync(this.ballast, { force: true });
  }

  /** Takes it away, with what is in it, also while a process has files open. Idempotent. */
  unmount(): void {
    if (this.isMounted) spawnSync('umount', ['-l', this.folder]);
    this.isMounted = false;
  }

  private get ballast(): string {
    return path.join(this.folder, 'ballast');
  }
}

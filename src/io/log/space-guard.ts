/**
 * Stops the log before the disk is full: at ENOSPC the native code of LMDB may abort halfway.
 *
 * Owns: what is known of the free space, asked for again after so many bytes or ms. Never: a
 * write. Used by: the log thread, before each order.
 */
import fs from 'node:fs';
import { LOG_FREE_BYTES_MIN } from '../../limits.js';

/** Bytes written, and ms, after which free space is asked for again. */
const CHECK_BYTES = 1 << 20;
const CHECK_MS = 200;
const MIB = 1 << 20;

/** Bytes that an ordinary user may still write on the disk that holds `folder`. */
export function freeBytesOf(folder: string): number {
  const { bavail, bsize } = fs.statfsSync(folder);
  return bavail * bsize;
}

export class SpaceGuard {
  /** Free space in MiB, as last told. */
  toldMib = 0;
  private freeBytes = 0;
  private writtenBytes = 0;
  private askedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * @param ask gives the free bytes of the disk that holds `folder`
   * @param tell hears of every change of the whole MiB
   */
  constructor(
    private readonly folder: string,
    private readonly ask: (folder: string) => number,
    private readonly tell: (mib: number) => void,
  ) {}

  /** Throws when fewer than LOG_FREE_BYTES_MIN would be left after writing `bytes` more. */
  expect(bytes: number): void {
    const nowMs = performance.now();
    const isStale = this.writtenBytes >= CHECK_BYTES || nowMs - this.askedAtMs >= CHECK_MS;
    if (isStale) this.look(nowMs);
    this.writtenBytes += bytes;
    if (this.freeBytes - this.writtenBytes >= LOG_FREE_BYTES_MIN) return;
    throw new Error(
      `free space on the disk of ${this.folder}: the log stops below ${LOG_FREE_BYTES_MIN} ` +
        `bytes, there are ${this.freeBytes}`,
    );
  }

  private look(nowMs: number): void {
    this.freeBytes = this.ask(this.folder);
    this.writtenBytes = 0;
    this.askedAtMs = nowMs;
    const mib = Math.floor(this.freeBytes / MIB);
    if (mib === this.toldMib) return;
    this.toldMib = mib;
    this.tell(mib);
  }
}

/**
 * Keeps a second process off a data folder: LMDB itself would let two in.
 *
 * Owns: an abstract Unix socket named after the folder's device and inode, which vanishes with the
 * process however it ends, and the file LOCK, which says who holds the folder and also covers a
 * process in another network namespace, where abstract sockets are apart. A LOCK left by a killed
 * process is recognised by process id, start time and boot id, and taken over.
 * Used by: log.ts, before the log thread starts.
 */
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { LogError, LogErrorCode } from './log-error.js';

const FILE = 'LOCK';

interface Holder {
  readonly pid: number;
  /** Start of the process in clock ticks since boot; empty where /proc is not there. */
  readonly startedAt: string;
  readonly bootId: string;
}

/** Field 22 of /proc/PID/stat; the command's name before it may itself hold spaces and brackets. */
function readStart(pid: number): string {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return ''; // the process has ended, or there is no /proc
  }
}

function readBootId(): string {
  try {
    return fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return ''; // not Linux: process id alone decides
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function readHolder(file: string): Holder | null {
  try {
    const holder = JSON.parse(fs.readFileSync(file, 'utf8')) as Partial<Holder>;
    const { pid, startedAt = '', bootId = '' } = holder;
    return typeof pid === 'number' ? { pid, startedAt, bootId } : null;
  } catch {
    return null; // no file, or one that a crash cut short: the socket still decides
  }
}

function isHeld(holder: Holder): boolean {
  if (holder.bootId !== readBootId() || !isAlive(holder.pid)) return false;
  return holder.startedAt === readStart(holder.pid);
}

function refuse(folder: string, holder: Holder | null): LogError {
  const who = holder === null ? 'another process' : `process ${holder.pid}`;
  return new LogError(
    LogErrorCode.FolderLocked,
    `Stop ${who} first, or choose another data folder: ${folder} is in use.`,
  );
}

/** Listens on the folder's abstract socket; the promise is rejected when somebody else does. */
function listen(folder: string): Promise<net.Server> {
  const { dev, ino } = fs.statSync(folder);
  const server = net.createServer((socket) => socket.destroy());
  server.unref();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(`\0holdfast-${dev}-${ino}`, () => resolve(server));
  });
}

/** Who has `folder`, which exists, open: in words, null when nobody has. Takes nothing. */
export async function findFolderHolder(folder: string): Promise<string | null> {
  const holder = readHolder(path.join(folder, FILE));
  if (holder !== null && isHeld(holder)) return `process ${holder.pid}`;
  if (process.platform !== 'linux') return null;
  try {
    const server = await listen(folder);
    await new Promise<void>((resolve) => server.close(() => resolve()));
    return null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return 'another process';
  }
}

/** A folder that this process holds until release() or its end. */
export class FolderLock {
  private constructor(
    private readonly file: string,
    private readonly server: net.Server | null,
  ) {}

  /** Takes `folder`, which exists. Rejects with LogError FOLDER_LOCKED when it is taken. */
  static async take(folder: string): Promise<FolderLock> {
    const file = path.join(folder, FILE);
    const holder = readHolder(file);
    if (holder !== null && isHeld(holder)) throw refuse(folder, holder);
    let server: net.Server | null = null;
    if (process.platform === 'linux') {
      try {
        server = await listen(folder);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
        throw refuse(folder, readHolder(file));
      }
    }
    const own: Holder = {
      pid: process.pid,
      startedAt: readStart(process.pid),
      bootId: readBootId(),
    };
    // Written whole and renamed: a reader never sees half of it.
    fs.writeFileSync(`${file}.${process.pid}`, `${JSON.stringify(own)}\n`);
    fs.renameSync(`${file}.${process.pid}`, file);
    return new FolderLock(file, server);
  }

  /** Gives the folder back. */
  async release(): Promise<void> {
    fs.rmSync(this.file, { force: true });
    const { server } = this;
    if (server !== null) await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

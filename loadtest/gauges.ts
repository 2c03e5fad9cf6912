/**
 * What the operating system counts: CPU of processes, bytes between nodes, flushes of a disk.
 *
 * Owns: reading /proc, /sys and `ss`. What a machine does not tell is null, and the report says so
 * aloud. Never: a rate; runner.ts subtracts two readings. Used by: runner.ts.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';

const US_PER_S = 1_000_000;
const CLOCK_TICKS_PER_S = 100;
/** Fields of /proc/PID/stat behind the name: user and system time, in ticks. */
const USER_FIELD = 11;
const SYSTEM_FIELD = 12;
/** Field of /sys/dev/block/…/stat: flushes completed. */
const FLUSH_FIELD = 15;

export interface CpuTime {
  readonly userUs: number;
  readonly systemUs: number;
}

/** CPU time of a process so far, all its threads. */
export function cpuOf(pid: number): CpuTime {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const us = (field: number): number => (Number(fields[field]) * US_PER_S) / CLOCK_TICKS_PER_S;
  return { userUs: us(USER_FIELD), systemUs: us(SYSTEM_FIELD) };
}

export function ownCpu(): CpuTime {
  const { user, system } = process.cpuUsage();
  return { userUs: user, systemUs: system };
}

export function cpuSince(now: CpuTime, before: CpuTime): CpuTime {
  return { userUs: now.userUs - before.userUs, systemUs: now.systemUs - before.systemUs };
}

export function cpuSum(times: readonly CpuTime[]): CpuTime {
  let userUs = 0;
  let systemUs = 0;
  for (const time of times) {
    userUs += time.userUs;
    systemUs += time.systemUs;
  }
  return { userUs, systemUs };
}

/**
 * Bytes sent so far, both ways, over the connections of these ports on this machine; null when
 * `ss` is not there. A connection that was closed takes its count with it.
 */
export function bytesBetween(ports: readonly number[]): number | null {
  const filter = ports.flatMap((port) => [`sport = :${port}`, `dport = :${port}`]).join(' or ');
  let text: string;
  try {
    text = execFileSync('ss', ['-tinHO', 'state', 'established', `( ${filter} )`], {
      encoding: 'utf8',
    });
  } catch {
    return null; // told in the report as null
  }
  let sum = 0;
  for (const [, bytes] of text.matchAll(/bytes_sent:(\d+)/g)) sum += Number(bytes);
  return sum;
}

/** Flushes that the disk under `folder` has completed; null when it has no counter. */
export function flushesUnder(folder: string): number | null {
  const { dev } = statSync(folder);
  // glibc's packing of major and minor, for the numbers that block devices have.
  const major = (dev >> 8) & 0xfff;
  const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00);
  const device = `/sys/dev/block/${major}:${minor}`;
  // A partition counts no flushes; the disk that it is on does.
  const file = existsSync(`${device}/partition`) ? `${device}/../stat` : `${device}/stat`;
  if (!existsSync(file)) return null;
  const fields = readFileSync(file, 'latin1').trim().split(/\s+/);
  const flushes = fields[FLUSH_FIELD];
  return flushes === undefined ? null : Number(flushes);
}

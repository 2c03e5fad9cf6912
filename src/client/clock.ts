/**
 * Local time as the client sees it, and chance: the only sources of both in the client.
 *
 * Owns: the rule that a suspended machine ages a lease (docs/CLIENT.md): elapsed time is the
 * greater of two counters, one that stops during suspend and one that does not. Never: the wall
 * clock. Used by: every file of the client; tests put a clock of their own in its place.
 */
import { randomBytes } from 'node:crypto';
import os from 'node:os';

/** One reading of both counters. Only differences between two readings mean anything. */
export interface Instant {
  /** CLOCK_MONOTONIC in ms: fine, but it stands still while the machine is suspended. */
  readonly awakeMs: number;
  /** Time since boot in ms, suspend included, as coarse as uptimeQuantumMs. */
  readonly uptimeMs: number;
}

/** A timer that was started; cancel() after it fired does nothing. */
export interface Timer {
  cancel(): void;
}

/** Time and chance. SystemClock is the real one. */
export interface Clock {
  /** Step of the uptime counter in ms. */
  readonly uptimeQuantumMs: number;
  /** Reads both counters. */
  read(): Instant;
  /** The awake counter alone, in ms: for everything but safe deadlines. */
  nowMs(): number;
  /** Calls `onTime` once, not before `afterMs` (0 … TIMER_MS_MAX), possibly much later. */
  startTimer(afterMs: number, onTime: () => void): Timer;
  /** A number from 0 to below 1. */
  random(): number;
  /** 16 unguessable bytes. */
  randomId(): Uint8Array;
}

/**
 * Milliseconds that went by from one reading to a later one, suspend included. When the uptime
 * counter ran ahead by more than its own step, the machine was suspended and a step is added, so
 * that rounding never makes a lease look younger than it is.
 */
export function elapsedMs(clock: Clock, from: Instant, to: Instant): number {
  const awake = to.awakeMs - from.awakeMs;
  const uptime = to.uptimeMs - from.uptimeMs;
  const quantum = clock.uptimeQuantumMs;
  return uptime > awake + quantum ? uptime + quantum : awake;
}

/** Node reads /proc/uptime on Linux (steps of 10 ms); elsewhere the kernel gives seconds. */
const LINUX_QUANTUM_MS = 10;
const OTHER_QUANTUM_MS = 1_000;
const NS_PER_MS = 1e6;
const ID_BYTES = 16;

/** The clock of this machine. Its timers keep the process alive. */
export class SystemClock implements Clock {
  readonly uptimeQuantumMs = process.platform === 'linux' ? LINUX_QUANTUM_MS : OTHER_QUANTUM_MS;

  read(): Instant {
    return { awakeMs: this.nowMs(), uptimeMs: os.uptime() * 1_000 };
  }

  nowMs(): number {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1_000 + nanoseconds / NS_PER_MS;
  }

  startTimer(afterMs: number, onTime: () => void): Timer {
    const handle = setTimeout(onTime, afterMs);
    return { cancel: () => clearTimeout(handle) };
  }

  random(): number {
    return Math.random();
  }

  randomId(): Uint8Array {
    return new Uint8Array(randomBytes(ID_BYTES));
  }
}

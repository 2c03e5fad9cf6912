/**
 * Elapsed time from the kernel's monotonic clock.
 *
 * Owns nothing. Never: the wall clock (invariant I8). `performance.now` reads CLOCK_MONOTONIC
 * (libuv's uv_hrtime), which no operator and no time server steps; it stands still in suspend.
 * Used by: the replica, through ClockPort.
 */
import type { ClockPort } from '../replica/ports.js';

const US_PER_MS = 1_000;

export class MonotonicClock implements ClockPort {
  nowUs(): number {
    return performance.now() * US_PER_MS;
  }
}

/**
 * The moment by which a command under a lock must be gone, on two clocks that processes share.
 *
 * Owns: the sums. The CLI fixes a deadline and sends it through a pipe to the watchdog, which may
 * read it late; so it is absolute, on the monotonic clock and on the uptime of the machine, both
 * the same for all processes of one boot. Uptime goes on while the machine is suspended, and
 * whichever clock is further decides. Never: wall clocks. Used by: lock-run.ts, watchdog/main.ts.
 */
import { uptime } from 'node:os';

/** /proc/uptime counts hundredths of a second and rounds down. */
const UPTIME_GRAIN_MS = 10;

/** A point in time, or rather two that are the same one unless the machine was suspended. */
export interface Instant {
  readonly monotonicMs: number;
  readonly uptimeMs: number;
}

/** What the watchdog is held to. */
export interface SafeDeadline extends Instant {
  /** The group gets SIGTERM when this much is left, and at most this long before SIGKILL. */
  readonly terminateLeadMs: number;
  /** The group gets SIGKILL when this much is left. */
  readonly killLeadMs: number;
}

export function readInstant(): Instant {
  return { monotonicMs: Number(process.hrtime.bigint()) / 1e6, uptimeMs: uptime() * 1_000 };
}

function clamp(value: number, least: number, greatest: number): number {
  return Math.min(Math.max(value, least), greatest);
}

/**
 * The deadline of a lease that is safe for `remainingMs` more.
 *
 * @param before read before `remainingMs` was asked for, so that a stall between the two shortens
 *   the deadline and never stretches it.
 * @param ttlMs sets the leads: a quarter for SIGTERM (200 ms to 5 s), a tenth for SIGKILL
 *   (100 ms to 1 s), which is what a busy machine may delay the watchdog by.
 */
export function deadlineFrom(before: Instant, remainingMs: number, ttlMs: number): SafeDeadline {
  return {
    monotonicMs: before.monotonicMs + remainingMs,
    uptimeMs: before.uptimeMs + remainingMs - UPTIME_GRAIN_MS,
    terminateLeadMs: clamp(ttlMs / 4, 200, 5_000),
    killLeadMs: clamp(ttlMs / 10, 100, 1_000),
  };
}

/** Milliseconds until the deadline by the clock that is further; negative when it has passed. */
export function remainingUntil(deadline: Instant, now: Instant): number {
  return Math.min(deadline.monotonicMs - now.monotonicMs, deadline.uptimeMs - now.uptimeMs);
}

/** Milliseconds from one instant to another by the clock that went further. */
export function elapsedBetween(from: Instant, to: Instant): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.uptimeMs - from.uptimeMs);
}

/** What is due for a running command. */
export type Due = 'nothing' | 'terminate' | 'kill';

/**
 * What is due now.
 *
 * @param terminatedAt when SIGTERM was sent, null when it was not.
 */
export function whatIsDue(deadline: SafeDeadline, terminatedAt: Instant | null, now: Instant): Due {
  const remainingMs = remainingUntil(deadline, now);
  if (remainingMs <= deadline.killLeadMs) return 'kill';
  if (terminatedAt === null) {
    return remainingMs <= deadline.terminateLeadMs ? 'terminate' : 'nothing';
  }
  const waitedMs = elapsedBetween(terminatedAt, now);
  return waitedMs >= deadline.terminateLeadMs ? 'kill' : 'nothing';
}

/** Time between two looks at the clocks: a suspended machine wakes up into the next one. */
const LOOK_MS = 50;

/** How long the watchdog may sleep until something could be due, 1 to LOOK_MS. */
export function sleepBeforeLook(deadline: SafeDeadline, now: Instant): number {
  const remainingMs = remainingUntil(deadline, now);
  const untilKillMs = remainingMs - deadline.killLeadMs;
  const untilTerminateMs = remainingMs - deadline.terminateLeadMs;
  return clamp(untilTerminateMs > 0 ? untilTerminateMs : untilKillMs, 1, LOOK_MS);
}

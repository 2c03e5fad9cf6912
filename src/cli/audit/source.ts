/**
 * The audit stream for the commands that show and deliver it.
 *
 * Owns: how the client's pages are opened for a command: its endpoints, its time-out, its end by a
 * signal. Never: which node is asked, or what is asked again (client/audit-pages.ts).
 * Used by: commands/audit.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Ambient } from '../../client/ambient.js';
import { AuditPages } from '../../client/audit-pages.js';
import { SystemClock } from '../../client/clock.js';
import { dialTcp } from '../../client/tcp.js';
import type { ClusterOptions } from '../cluster-options.js';

/** Pages until `signal` aborts. Close it. */
export function openPages(options: ClusterOptions, signal: AbortSignal): AuditPages {
  const { endpoints, timeoutMs: deadlineMs } = options;
  const plan = { dial: dialTcp, endpoints: () => endpoints, deadlineMs };
  const pages = new AuditPages(new Ambient(new SystemClock()), plan);
  signal.addEventListener('abort', () => pages.close(), { once: true });
  if (signal.aborted) pages.close();
  return pages;
}

/** Waits, less when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

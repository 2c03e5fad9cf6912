/**
 * The profile watch-fanout: watchers on every node, told of a steady stream of events.
 *
 * Owns: how many watchers there are, and what must hold. Used by: runs.ts.
 */
import { FanOut } from './fan-out.js';
import { sessionTtlMs } from './load.js';
import type { BenchOptions } from './options.js';
import type { Run } from './run.js';
import type { Target } from './target.js';
import { runLoad } from './window.js';

const WATCHERS = 5_000;

export async function runFanOut(target: Target, options: BenchOptions): Promise<Run> {
  const { host, port } = await target.leader();
  const rate = options.rate ?? 1;
  const load = new FanOut({
    leader: { host, port },
    nodes: target.endpoints,
    connections: options.connections,
    watchers: WATCHERS,
    rate,
    sessionTtlMs: sessionTtlMs(options.durationS),
  });
  const window = await runLoad(target, load, options.durationS, options.profile);
  const { missing, deliveries, lag } = load;
  const served = window.ops / window.seconds / rate;
  return {
    window,
    meters: [load.meter],
    extra: {
      watch_fanout: {
        watchers: WATCHERS,
        connections: options.connections,
        deliveries,
        deliveries_per_second: Math.round(deliveries / window.seconds),
        lag_ms: lag.figures(),
      },
    },
    checks: [
      {
        name: 'deliveries',
        isKept: missing === 0,
        detail: `${deliveries} told, ${missing} missing`,
      },
      {
        name: 'schedule',
        isKept: served > 0.98,
        detail: `${(served * 100).toFixed(1)} % of what was due in the time was answered in it`,
      },
    ],
    isRepeating: false,
  };
}

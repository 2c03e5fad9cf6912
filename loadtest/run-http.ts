/**
 * The profile http: autocannon against the HTTP port of the leader.
 *
 * Owns: which node is asked, and what is asked of the answers. Used by: runs.ts.
 */
import { HttpLoad } from './http-load.js';
import { NAMES_DEFAULT, sessionTtlMs } from './load.js';
import { type BenchOptions, UsageError } from './options.js';
import type { Run } from './run.js';
import type { Target } from './target.js';
import { runLoad } from './window.js';

export async function runHttp(target: Target, options: BenchOptions): Promise<Run> {
  const { cluster } = target;
  if (cluster === null) {
    throw new UsageError('--endpoints: http wants a cluster of its own, whose HTTP ports it knows');
  }
  const { nodeId } = await target.leader();
  const load = new HttpLoad({
    url: cluster.httpUrl(nodeId),
    connections: options.connections,
    names: NAMES_DEFAULT,
    sessionTtlMs: sessionTtlMs(options.durationS),
  });
  const window = await runLoad(target, load, options.durationS, options.profile);
  const detail = `autocannon counted ${load.faults} errors, time-outs, resets, other statuses`;
  return {
    window,
    meters: [load.meter],
    extra: { http: { node: 'leader', connections: options.connections, pipelining: 1 } },
    checks: [{ name: 'statuses', isKept: load.faults === 0, detail }],
    isRepeating: true,
  };
}

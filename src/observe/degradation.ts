/**
 * What each dependency's failure does to a node: one table, repeated in docs/OPERATIONS.md.
 *
 * Owns: time-outs, retries, modes and the metric to look at, as they are in the code: the figures
 * are taken from limits.ts. Never: a behaviour; each row names the file that has it and the test
 * that brings it about. Used by: docs, tests.
 */
import {
  ELECTION_TICKS_MAX,
  FORWARD_SLACK_MS,
  HISTORY_SLICE_MS,
  LOG_FREE_BYTES_MIN,
  LOG_SILENCE_MS_MAX,
  PEER_BACKOFF_MS_MAX,
  PEER_PROBE_MS,
  PEER_PROBES_LOST_MAX,
  SCRUB_BYTES_PER_SECOND,
  SCRUB_PAUSE_MS,
  SNAPSHOT_ANSWER_MS_MAX,
  TICK_MS,
  WATCH_OUT_BYTES_MAX,
} from '../limits.js';

/** What goes on without the dependency. */
export type Mode = 'fail closed' | 'stale' | 'serves on' | 'refuse';

export interface DegradationRow {
  readonly dependency: string;
  readonly timeOut: string;
  readonly retry: string;
  /** When it is tried no more, or tried again. */
  readonly circuit: string;
  readonly mode: Mode;
  readonly does: string;
  /** A metric of /metrics, or of `audit send --metrics`. */
  readonly metric: string;
  readonly code: string;
  readonly test: string;
}

const MIB = 1 << 20;

export const DEGRADATION: readonly DegradationRow[] = [
  {
    dependency: 'majority',
    timeOut: `${ELECTION_TICKS_MAX * TICK_MS} ms without answers: the leader steps down`,
    retry: 'none by nodes; clients ask again by request id',
    circuit: 'closed again by the next election',
    mode: 'fail closed',
    does: 'nothing is granted, renewed, released or expired; stale reads go on',
    metric: 'holdfast_leaderless_seconds_total',
    code: 'src/core/raft/election.ts',
    test: 'test/cluster/acceptance/lost-majority.test.ts',
  },
  {
    dependency: 'one peer',
    timeOut: `${PEER_PROBES_LOST_MAX} probes of ${PEER_PROBE_MS} ms`,
    retry: `dialled again after at most ${PEER_BACKOFF_MS_MAX} ms, for ever`,
    circuit: 'none',
    mode: 'serves on',
    does: 'commits by the others; the peer is sent what it missed, or a snapshot',
    metric: 'holdfast_match_index',
    code: 'src/io/peers/peer-dialer.ts',
    test: 'test/unit/io/peers.test.ts',
  },
  {
    dependency: 'log disk',
    timeOut: `${LOG_SILENCE_MS_MAX / 1_000} s of silence`,
    retry: 'none: after the first failed write or sync the node ends',
    circuit: 'at the next start the whole log is verified',
    mode: 'fail closed',
    does: 'the node ends by SIGKILL; another leads',
    metric: 'holdfast_log_append_duration_seconds',
    code: 'src/io/log/watchdog.ts',
    test: 'test/cluster/acceptance/slow-disk.test.ts',
  },
  {
    dependency: 'space on the log disk',
    timeOut: `below ${LOG_FREE_BYTES_MIN / MIB} MiB`,
    retry: 'none',
    circuit: 'history is cut to what is free at each snapshot',
    mode: 'fail closed',
    does: 'the node ends before the disk is full',
    metric: 'holdfast_disk_free_bytes',
    code: 'src/io/log/space-guard.ts',
    test: 'test/unit/io/log-crash.test.ts',
  },
  {
    dependency: 'what is stored on it',
    timeOut: `a pass at ${SCRUB_BYTES_PER_SECOND / MIB} MiB/s each ${SCRUB_PAUSE_MS / 60_000} min`,
    retry: 'what seems damaged is read twice',
    circuit: 'none; a start reads all of it',
    mode: 'serves on',
    does: 'the place is named; `holdfast repair` brings the folder back while the node is down',
    metric: 'holdfast_scrub_faults',
    code: 'src/server/scrub.ts',
    test: 'test/unit/server/scrub.test.ts',
  },
  {
    dependency: 'snapshot worker',
    timeOut: `none to make one; ${SNAPSHOT_ANSWER_MS_MAX / 1_000} s a chunk to fetch one`,
    retry: 'after as many entries again; a fetch with the next offer',
    circuit: 'none',
    mode: 'serves on',
    does: 'the log grows until a snapshot succeeds',
    metric: 'holdfast_snapshots_failed_total',
    code: 'src/server/snapshots.ts',
    test: 'test/unit/workers/compaction.test.ts',
  },
  {
    dependency: 'event history',
    timeOut: `pages in slices of ${HISTORY_SLICE_MS} ms`,
    retry: 'once; then it is given up and begins with the newest snapshot',
    circuit: 'open until the next snapshot',
    mode: 'refuse',
    does: 'older pages are COMPACTED here; other nodes may have them; locks are not touched',
    metric: 'holdfast_audits_compacted_total',
    code: 'src/server/history.ts',
    test: 'test/unit/workers/history.test.ts',
  },
  {
    dependency: 'audit sink',
    timeOut: '10 s a request',
    retry: 'for ever while it cannot be reached; --attempts times when it refuses',
    circuit: 'pauses double up to 10 s',
    mode: 'serves on',
    does: '`audit send` waits, or puts the event into the dead letters; nodes do not notice',
    metric: 'holdfast_audit_sink_away',
    code: 'src/cli/audit/delivery.ts',
    test: 'test/unit/cli/audit.test.ts',
  },
  {
    dependency: 'span collector',
    timeOut: '10 s a request',
    retry: 'within that time, where it says that it cannot now',
    circuit: 'open from a request that failed to one that is taken; tried each second',
    mode: 'serves on',
    does: 'spans are lost and counted; requests do not notice',
    metric: 'holdfast_spans_total',
    code: 'src/server/span-export.ts',
    test: 'test/unit/server/span-export.test.ts',
  },
  {
    dependency: 'leader, of a node that forwards',
    timeOut: `the request’s own deadline and ${FORWARD_SLACK_MS / 1_000} s`,
    retry: 'never: the caller asks again under its key',
    circuit: 'a lost line is dialled anew with the next request',
    mode: 'refuse',
    does: '503 NOT_LEADER when nothing happened, 504 UNKNOWN_OUTCOME when it may have',
    metric: 'holdfast_http_request_duration_seconds',
    code: 'src/io/http/leader-line.ts',
    test: 'test/cluster/streams.test.ts',
  },
  {
    dependency: 'a watcher that does not read',
    timeOut: `${WATCH_OUT_BYTES_MAX / MIB} MiB unread`,
    retry: 'told what it missed when it reads again',
    circuit: 'none',
    mode: 'serves on',
    does: 'it alone is held back, then COMPACTED when memory has passed it',
    metric: 'holdfast_watches_blocked_total',
    code: 'src/replica/watching.ts',
    test: 'test/unit/replica/watch.test.ts',
  },
];

/** The table in Markdown, as docs/OPERATIONS.md has it. */
export function degradationTable(): string {
  const lines = [
    '| dependency | time-out | retry | circuit | mode | what it does | metric |',
    '|---|---|---|---|---|---|---|',
  ];
  for (const { dependency, timeOut, retry, circuit, mode, does, metric } of DEGRADATION) {
    const shown = metric === '' ? '' : `\`${metric}\``;
    const cells = [dependency, timeOut, retry, circuit, mode, does, shown];
    lines.push(`| ${cells.join(' | ')} |`);
  }
  return lines.join('\n');
}

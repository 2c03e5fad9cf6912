/**
 * What a node says of itself at a scrape: status, meters, disk, in the words of the metrics.
 *
 * Owns: the names and labels of what the replica measured. Labels have few values: operations,
 * codes, causes; never a lock name, a principal's name or an id. Used by: node.ts.
 */
import type { Buckets } from '../collections/buckets.js';
import { LeaseEnd } from '../core/locks/outcome.js';
import type { ScrubStatus } from '../io/scrub/scrub-status.js';
import type { CountedBuckets, Family, Labels, Sample } from '../observe/families.js';
import type { NodeFigures } from '../observe/metrics.js';
import type { Meters } from '../replica/meters.js';
import { COMMAND_ROWS } from '../wire/commands.js';
import { codeName, leaseEndName } from '../wire/event-json.js';
import type { StatusReply } from '../wire/query-reply.js';
import type { SpanCounts } from './span-export.js';

const MS_PER_S = 1_000;
const US_PER_S = 1e6;
const MIB = 1 << 20;

/** What is asked beside the replica. */
export interface Surroundings {
  readonly freeMib: number;
  readonly historyBytes: number;
  readonly scrub: ScrubStatus;
  /** The history could not be read, and begins with the newest snapshot. */
  readonly isHistoryGivenUp: boolean;
  /** Null when this node sends spans nowhere. */
  readonly spans: SpanCounts | null;
  /** ms since each peer was heard last, by node id. */
  readonly silencesMs: ReadonlyMap<number, number>;
  readonly version: string;
}

/** What is asked of the replica. */
export interface MeasuredReplica {
  readonly meters: Meters;
  readonly pendingAgeMs: number;
  status(): StatusReply;
}

const NO_SPANS: SpanCounts = { sent: 0, failed: 0, dropped: 0, isFailing: false };

const OPERATIONS = new Map<number, string>(COMMAND_ROWS.map(({ number, name }) => [number, name]));

function operationName(kind: number): string {
  return OPERATIONS.get(kind) ?? `command_${kind}`;
}

function counted(buckets: Buckets, labels: Labels = {}): CountedBuckets {
  const bounds = buckets.boundsMs.map((ms) => ms / MS_PER_S);
  return { labels, bounds, counts: buckets.counts, sum: buckets.sumMs / MS_PER_S };
}

function countsOf(counts: Float64Array, label: string, nameOf: (at: number) => string): Sample[] {
  const samples: Sample[] = [];
  counts.forEach((value, at) => {
    if (value > 0) samples.push({ labels: { [label]: nameOf(at) }, value });
  });
  return samples;
}

function operationFamilies(meters: Meters): Family[] {
  const samples: Sample[] = [];
  meters.forEachOutcome((kind, code, value) => {
    samples.push({ labels: { operation: operationName(kind), code: codeName(code) }, value });
  });
  const decisions = meters.decisions.flatMap((buckets, kind) =>
    buckets === null ? [] : [counted(buckets, { operation: operationName(kind) })],
  );
  return [
    {
      name: 'holdfast_operations_total',
      help: 'Operations applied, by what was decided; the same on every node.',
      kind: 'counter',
      samples,
    },
    {
      name: 'holdfast_operation_duration_seconds',
      help: 'Time until an operation was decided, at the leader, its batch included.',
      kind: 'histogram',
      buckets: decisions,
    },
    {
      name: 'holdfast_refused_total',
      help: 'Requests refused by this node before the log, by code.',
      kind: 'counter',
      samples: countsOf(meters.refused, 'code', codeName),
    },
  ];
}

/** Forced ends are shown from the start, so that the first one is a rise. */
function endsOf(meters: Meters): Sample[] {
  const samples = countsOf(meters.ended, 'cause', leaseEndName);
  if (meters.ended[LeaseEnd.Forced] !== 0) return samples;
  return [...samples, { labels: { cause: leaseEndName(LeaseEnd.Forced) }, value: 0 }];
}

function lockFamilies(meters: Meters): Family[] {
  return [
    {
      name: 'holdfast_leases_ended_total',
      help: 'Leases that ended, by how.',
      kind: 'counter',
      samples: endsOf(meters),
    },
    counter(
      'holdfast_fencing_refusals_total',
      'Stale tokens that guards refused, as they reported it; the same on every node.',
      meters.fencingRefusals,
    ),
    {
      name: 'holdfast_lease_hold_seconds',
      help: 'Cluster time from grant to end.',
      kind: 'histogram',
      buckets: [counted(meters.holds)],
    },
    {
      name: 'holdfast_wait_seconds',
      help: 'Cluster time that a granted request stood in line.',
      kind: 'histogram',
      buckets: [counted(meters.waits)],
    },
  ];
}

function gaugeOf(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, help, kind: 'gauge', samples };
}

function gauge(name: string, help: string, value: number): Family {
  return gaugeOf(name, help, [{ labels: {}, value }]);
}

function counter(name: string, help: string, value: number): Family {
  return { name, help, kind: 'counter', samples: [{ labels: {}, value }] };
}

/** The background check of the disk; nothing where there is none. */
function scrubFamilies(scrub: ScrubStatus): Family[] {
  const { isEnabled, bytes, passes, passesFailed, ageMs, faults } = scrub;
  if (!isEnabled) return [];
  return [
    counter('holdfast_scrub_bytes_total', 'Read by the background check of the disk.', bytes),
    counter('holdfast_scrub_passes_total', 'Passes of it that have ended.', passes),
    counter('holdfast_scrub_passes_failed_total', 'Those that could not be made.', passesFailed),
    gauge(
      'holdfast_scrub_age_seconds',
      'Time since the last whole pass; since the start before the first.',
      ageMs / MS_PER_S,
    ),
    gauge('holdfast_scrub_faults', 'Places where the disk is damaged: alarm.', faults.length),
  ];
}

function nodeFamilies(replica: MeasuredReplica, around: Surroundings): Family[] {
  const { meters, pendingAgeMs } = replica;
  return [
    {
      name: 'holdfast_log_append_duration_seconds',
      help: 'Time from an order to the log until it is on disk, the queue included.',
      kind: 'histogram',
      buckets: [counted(meters.appends)],
    },
    {
      name: 'holdfast_leaderless_seconds_total',
      help: 'Time in which this node knew no leader.',
      kind: 'counter',
      samples: [{ labels: {}, value: meters.leaderlessUs / US_PER_S }],
    },
    gauge(
      'holdfast_pending_age_seconds',
      'Age of the oldest operation that is not decided.',
      pendingAgeMs / MS_PER_S,
    ),
    gauge('holdfast_disk_free_bytes', 'Free space on the disk of the log.', around.freeMib * MIB),
    gauge('holdfast_history_bytes', 'Kept for the audit stream alone.', around.historyBytes),
    gaugeOf('holdfast_build_info', 'Always 1; the labels say what runs.', [
      { labels: { version: around.version, node_version: process.version }, value: 1 },
    ]),
  ];
}

/** What this node hears of others, and sends to them. */
function outsideFamilies(status: StatusReply, around: Surroundings): Family[] {
  const { spans, silencesMs } = around;
  const { sent, failed, dropped, isFailing } = spans ?? NO_SPANS;
  const circuits: readonly (readonly [string, boolean])[] = [
    ['majority', status.leaderId === 0],
    ['event history', around.isHistoryGivenUp],
    ['span collector', isFailing],
  ];
  return [
    gaugeOf(
      'holdfast_peer_last_contact_seconds',
      'Time since a peer was heard; followers hear only their leader.',
      [...silencesMs].map(([nodeId, ms]) => {
        return { labels: { peer: String(nodeId) }, value: ms / MS_PER_S };
      }),
    ),
    gaugeOf(
      'holdfast_circuit_open',
      '1 while a dependency is taken to be gone, by row of the degradation table.',
      circuits.map(([dependency, isOpen]) => ({ labels: { dependency }, value: isOpen ? 1 : 0 })),
    ),
    {
      name: 'holdfast_spans_total',
      help: 'Spans sent to the collector, not taken by it, and dropped before.',
      kind: 'counter',
      samples: Object.entries({ sent, failed, dropped }).map(([state, value]) => {
        return { labels: { state }, value };
      }),
    },
  ];
}

/** What /metrics shows of a node. */
export function figuresOf(replica: MeasuredReplica, around: Surroundings): NodeFigures {
  const { meters } = replica;
  const status = replica.status();
  return {
    term: status.term,
    isLeader: status.role === 'leader',
    leaderId: status.leaderId,
    appliedIndex: status.appliedIndex,
    commitIndex: status.commitIndex,
    revision: status.revision,
    clusterTimeMs: status.clusterTime,
    counters: status.counters,
    families: [
      ...operationFamilies(meters),
      ...lockFamilies(meters),
      ...nodeFamilies(replica, around),
      ...scrubFamilies(around.scrub),
      ...outsideFamilies(status, around),
    ],
  };
}

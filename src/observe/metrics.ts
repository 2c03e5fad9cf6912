/**
 * The metrics of a node in the text format of Prometheus. The only file that imports prom-client.
 *
 * Owns: the name, the kind and the help of each metric (for ever: boards and alerts name them).
 * Never: counts on the hot path; the replica counts in plain numbers, which are read when a scrape
 * comes. Made by: server/node.ts. Used by: io/http, through a type of its own.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type Family, FamilyMetric } from './families.js';

/** What a node says of itself at a scrape. */
export interface NodeFigures {
  readonly term: number;
  readonly isLeader: boolean;
  readonly leaderId: number;
  readonly appliedIndex: number;
  readonly commitIndex: number;
  readonly revision: number;
  readonly clusterTimeMs: number;
  /** The counters of the status, by name. */
  readonly counters: { readonly [name: string]: number };
  /** Metrics with labels, and histograms that were counted elsewhere. */
  readonly families: readonly Family[];
}

/** How many of each the HTTP door has. */
export interface DoorFigures {
  readonly calls: number;
  readonly streams: number;
  readonly sockets: number;
}

type Kind = 'counter' | 'gauge';

/** Each counter of the status: its metric (after `holdfast_`), kind and help. */
const ROWS: { readonly [counter: string]: readonly [string, Kind, string] } = {
  proposed_entries: ['proposed_entries_total', 'counter', 'Log entries proposed by this node.'],
  proposed_operations: ['proposed_operations_total', 'counter', 'Operations in those entries.'],
  applied_entries: ['applied_entries_total', 'counter', 'Log entries applied.'],
  applied_operations: ['applied_operations_total', 'counter', 'Operations applied.'],
  replies: ['replies_total', 'counter', 'Final replies given, refusals included.'],
  refusals: ['refusals_total', 'counter', 'Requests refused by this node before the log.'],
  unknown_outcomes: ['unknown_outcomes_total', 'counter', 'Callers told UNKNOWN_OUTCOME.'],
  duplicates: ['duplicates_suppressed_total', 'counter', 'Requests answered from a stored result.'],
  appends: ['log_appends_total', 'counter', 'Orders to the log.'],
  appends_dropped: ['log_appends_dropped_total', 'counter', 'Appends refused: the disk is behind.'],
  elections: ['elections_won_total', 'counter', 'Terms that this node led.'],
  step_downs: ['step_downs_total', 'counter', 'Times that this node stopped leading.'],
  read_rounds: ['read_rounds_total', 'counter', 'Rounds that confirmed linearizable reads.'],
  reads: ['reads_total', 'counter', 'Reads answered.'],
  protocol_faults: ['protocol_faults_total', 'counter', 'Frames that could not be read.'],
  watch_events_told: ['watch_events_told_total', 'counter', 'Event rows given to watches.'],
  watches_blocked: ['watches_blocked_total', 'counter', 'Times a watcher read too slowly.'],
  watches_compacted: ['watches_compacted_total', 'counter', 'Watches told COMPACTED.'],
  audit_events_told: ['audit_events_told_total', 'counter', 'Event rows given to audit readers.'],
  audits_compacted: ['audits_compacted_total', 'counter', 'Audit readers told COMPACTED.'],
  audit_reads: ['audit_reads', 'gauge', 'Audit pages that are waited for.'],
  oldest_audited_revision: ['audit_oldest_revision', 'gauge', 'Oldest revision of the history.'],
  snapshots_taken: ['snapshots_taken_total', 'counter', 'Snapshots made and kept.'],
  snapshots_discarded: ['snapshots_discarded_total', 'counter', 'Drafts of another digest: alarm.'],
  snapshots_failed: ['snapshots_failed_total', 'counter', 'Snapshots that could not be made.'],
  snapshots_installed: ['snapshots_installed_total', 'counter', 'Snapshots of others installed.'],
  snapshot_fetches_failed: ['snapshot_fetches_failed_total', 'counter', 'Snapshots not fetched.'],
  snapshot_index: ['snapshot_index', 'gauge', 'Log index of the last snapshot.'],
  log_base_index: ['log_base_index', 'gauge', 'Index before the first entry that is kept.'],
  locks: ['locks', 'gauge', 'Locks with a record, idle ones included.'],
  leases: ['leases', 'gauge', 'Leases that have not ended.'],
  waits: ['waits', 'gauge', 'Requests that stand in a queue.'],
  sessions: ['sessions', 'gauge', 'Sessions, ended ones that are remembered included.'],
  results: ['results', 'gauge', 'Stored results of requests.'],
  disabled: ['disabled_rules', 'gauge', 'Names and prefixes that operators have disabled.'],
  serving: ['serving', 'gauge', '1 when this node leads and takes operations.'],
  last_index: ['log_last_index', 'gauge', 'Last index in the log.'],
  durable_index: ['log_durable_index', 'gauge', 'Last index on the disk of this node.'],
  connections: ['connections', 'gauge', 'Connections of clients, those of the HTTP door included.'],
  pending_operations: ['pending_operations', 'gauge', 'Operations that wait for a decision.'],
  pending_reads: ['pending_reads', 'gauge', 'Reads that wait for their answer.'],
  watches: ['watches', 'gauge', 'Watches.'],
  watches_behind: ['watches_behind', 'gauge', 'Watches that have not been told everything.'],
  oldest_revision: ['watch_oldest_revision', 'gauge', 'Oldest revision kept for watches.'],
};

const MATCH_INDEX = /^match_index_(\d+)$/;
const PREFIX = 'holdfast_';
const MS_PER_S = 1_000;
const NS_PER_S = 1e9;
const US_PER_S = 1e6;
const SECONDS = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
const DELAY_RESOLUTION_MS = 10;

/** Names of the status counters that have a metric. */
export function measuredCounters(): readonly string[] {
  return Object.keys(ROWS);
}

export class Metrics {
  private readonly registry = new Registry();
  private readonly counters = new Map<string, Counter | Gauge>();
  private readonly own = new Map<string, Gauge>();
  private readonly families = new Map<string, FamilyMetric>();
  private readonly matchIndex: Gauge<'peer'>;
  private readonly cpu: Counter<'mode'>;
  private readonly requests: Histogram<'route' | 'status'>;
  private readonly loopDelay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });

  /** @param figures asked at each scrape */
  constructor(private readonly figures: () => NodeFigures) {
    const registers = [this.registry];
    for (const [counter, [name, kind, help]] of Object.entries(ROWS)) {
      const settings = { name: PREFIX + name, help, registers };
      const metric = kind === 'counter' ? new Counter(settings) : new Gauge(settings);
      this.counters.set(counter, metric);
    }
    new Gauge({
      name: 'process_start_time_seconds',
      help: 'Start of the process, in seconds of the wall clock since 1970.',
      registers,
    }).set(performance.timeOrigin / MS_PER_S);
    this.matchIndex = new Gauge({
      name: `${PREFIX}match_index`,
      help: 'Last index that the leader knows a peer to have on disk.',
      labelNames: ['peer'],
      registers,
    });
    this.cpu = new Counter({
      name: 'process_cpu_seconds_total',
      help: 'CPU time of the process.',
      labelNames: ['mode'],
      registers,
    });
    this.requests = new Histogram({
      name: `${PREFIX}http_request_duration_seconds`,
      help: 'Time from an HTTP request to its answer, long polls included; status 0: hung up.',
      labelNames: ['route', 'status'],
      buckets: SECONDS,
      registers,
    });
    this.loopDelay.enable();
  }

  onAnswered(routeId: string, status: number, seconds: number): void {
    this.requests.observe({ route: routeId, status }, seconds);
  }

  /** Everything as text, with its media type. */
  async read(door: DoorFigures): Promise<{ readonly type: string; readonly text: string }> {
    this.takeFigures(door);
    return { type: this.registry.contentType, text: await this.registry.metrics() };
  }

  close(): void {
    this.loopDelay.disable();
  }

  private takeFigures(door: DoorFigures): void {
    const figures = this.figures();
    for (const [counter, value] of Object.entries(figures.counters)) {
      const metric = this.counters.get(counter);
      if (metric !== undefined) setTo(metric, value);
    }
    this.matchIndex.reset();
    for (const [counter, value] of Object.entries(figures.counters)) {
      const peer = MATCH_INDEX.exec(counter)?.[1];
      if (peer !== undefined) this.matchIndex.set({ peer }, value);
    }
    this.set('term', 'Raft term.', figures.term);
    this.set('leader', '1 when this node leads.', figures.isLeader ? 1 : 0);
    this.set('leader_node_id', 'Node id of the leader known here, 0 for none.', figures.leaderId);
    this.set('applied_index', 'Last log index applied.', figures.appliedIndex);
    this.set('commit_index', 'Last log index known to be committed.', figures.commitIndex);
    this.set('revision', 'Revision of the last event.', figures.revision);
    const time = figures.clusterTimeMs / MS_PER_S;
    this.set('cluster_time_seconds', 'Cluster time: stamp of the last applied entry.', time);
    this.set('http_calls', 'HTTP requests that were not answered yet, waits included.', door.calls);
    this.set('http_streams', 'Streams of events over HTTP.', door.streams);
    this.set('http_websockets', 'Open WebSockets.', door.sockets);
    for (const family of figures.families) this.takeFamily(family);
    this.takeProcess();
  }

  private takeFamily(family: Family): void {
    let metric = this.families.get(family.name);
    if (metric === undefined) {
      metric = new FamilyMetric(family);
      this.registry.registerMetric(metric as unknown as Gauge);
      this.families.set(family.name, metric);
    }
    metric.take(family);
  }

  private takeProcess(): void {
    const { loopDelay } = this;
    const quantile = (of: number): number => loopDelay.percentile(of) / NS_PER_S;
    this.set('event_loop_delay_p50_seconds', 'Median delay since the last scrape.', quantile(50));
    this.set('event_loop_delay_p99_seconds', 'p99 of the delay since then.', quantile(99));
    const greatest = Math.max(0, loopDelay.max) / NS_PER_S;
    this.set('event_loop_delay_max_seconds', 'Greatest delay since then.', greatest);
    loopDelay.reset();
    const memory = process.memoryUsage();
    this.set('resident_memory_bytes', 'Resident memory of the process.', memory.rss);
    this.set('heap_used_bytes', 'JavaScript heap in use.', memory.heapUsed);
    const { heap_size_limit: limit } = getHeapStatistics();
    this.set('heap_limit_bytes', 'Heap at which the process ends.', limit);
    this.set('array_buffers_bytes', 'Memory of array buffers.', memory.arrayBuffers);
    const { user, system } = process.cpuUsage();
    this.cpu.reset();
    this.cpu.inc({ mode: 'user' }, user / US_PER_S);
    this.cpu.inc({ mode: 'system' }, system / US_PER_S);
  }

  private set(name: string, help: string, value: number): void {
    let gauge = this.own.get(name);
    if (gauge === undefined) {
      gauge = new Gauge({ name: PREFIX + name, help, registers: [this.registry] });
      this.own.set(name, gauge);
    }
    gauge.set(value);
  }
}

/** A counter is read from a number that only rises: it is set, not added to. */
function setTo(metric: Counter | Gauge, value: number): void {
  if (metric instanceof Gauge) {
    metric.set(value);
    return;
  }
  metric.reset();
  metric.inc(value);
}

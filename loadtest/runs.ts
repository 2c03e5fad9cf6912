/**
 * One run of each profile: which loads it needs, in which order, and what it reports of them.
 *
 * Owns: the course of a run. Never: a load's own work, the form of a report. A run gets a cluster
 * that nobody else uses and hands back what has to be judged. Used by: main.ts.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { ClosedLoop } from './closed-loop.js';
import { Expiry } from './expiry.js';
import { Failover } from './failover.js';
import { Hot } from './hot.js';
import { Latency } from './latency.js';
import { NAMES_DEFAULT, sessionTtlMs } from './load.js';
import { OpenLoop } from './open-loop.js';
import type { BenchOptions } from './options.js';
import { acquireP99 } from './report.js';
import type { Run, Runner } from './run.js';
import { runFanOut } from './run-fan-out.js';
import { runHttp } from './run-http.js';
import type { Target } from './target.js';
import type { Check } from './verdict.js';
import { record, runLoad, say, sleep, WARM_UP_MS, type Window } from './window.js';
import { ZipfLoad } from './zipf.js';

const MS_PER_S = 1_000;

function plain(window: Window, extra: Readonly<Record<string, unknown>> = {}): Run {
  return { window, meters: [window.meter], extra, checks: [], isRepeating: false };
}

async function closedLoop(target: Target, options: BenchOptions, stem = 'load') {
  const { host, port } = await target.leader();
  return new ClosedLoop({
    host,
    port,
    connections: options.connections,
    inflight: options.inflight ?? 1,
    names: NAMES_DEFAULT,
    sessionTtlMs: sessionTtlMs(options.durationS),
    stem,
  });
}

async function runClosed(target: Target, options: BenchOptions): Promise<Run> {
  const load = await closedLoop(target, options);
  return plain(await runLoad(target, load, options.durationS, options.profile));
}

const OPEN_SESSIONS = 2_048;
const OPEN_SEATS = 32_768;

async function runOpen(target: Target, options: BenchOptions): Promise<Run> {
  const { host, port } = await target.leader();
  const rate = options.rate ?? 1;
  const load = new OpenLoop({
    host,
    port,
    connections: options.connections,
    sessions: OPEN_SESSIONS,
    names: NAMES_DEFAULT,
    sessionTtlMs: sessionTtlMs(options.durationS),
    acquiresPerSecond: rate / 2,
    renewalsPerSecond: 0,
    held: 0,
    churning: OPEN_SEATS,
  });
  const window = await runLoad(target, load, options.durationS, options.profile);
  return { ...plain(window), checks: [scheduleCheck(window, rate)] };
}

/** An open loop that fell behind its schedule has not been served what it asked for. */
function scheduleCheck(window: Window, rate: number): Check {
  const served = window.ops / window.seconds / rate;
  return {
    name: 'schedule',
    isKept: served > 0.98 || window.meter.refusals > 0,
    detail: `${(served * 100).toFixed(1)} % of what was due in the time was answered in it`,
  };
}

const HELD = 20_000;
const INTERVIEW_SESSIONS = 400;
const INTERVIEW_SEATS = 16_384;
/** Acquires, releases and renewals each are a third of the interview's rate. */
const INTERVIEW_KINDS = 3;
const INTERVIEW_RATE = 6_000;

/** Ends a follower of a cluster of our own. Returns its id, 0 when there is none to end. */
async function endReplica(target: Target): Promise<number> {
  const { cluster } = target;
  if (cluster === null) {
    say('one replica down: SKIPPED, the cluster is somebody else’s');
    return 0;
  }
  const { nodeId } = await target.leader();
  const victim = cluster.nodeIds.find((id) => id !== nodeId) ?? 0;
  await cluster.kill(victim);
  say(`node ${victim} is down`);
  return victim;
}

async function interviewLoad(target: Target, options: BenchOptions, rate: number, seconds: number) {
  const { host, port } = await target.leader();
  return new OpenLoop({
    host,
    port,
    connections: options.connections,
    sessions: INTERVIEW_SESSIONS,
    names: NAMES_DEFAULT,
    sessionTtlMs: sessionTtlMs(seconds),
    acquiresPerSecond: rate / INTERVIEW_KINDS,
    renewalsPerSecond: rate / INTERVIEW_KINDS,
    held: HELD,
    churning: INTERVIEW_SEATS,
  });
}

function leaseCheck(load: OpenLoop): Check {
  return {
    name: 'leases',
    isKept: load.lost === 0,
    detail: `${HELD} held all the time, ${load.lost} lost`,
  };
}

function renewals(load: OpenLoop, seconds: number) {
  const { meter } = load;
  const inWindow = meter.latencyOf(CommandKind.Renew).count;
  return {
    leases: HELD,
    sessions: INTERVIEW_SESSIONS,
    acknowledged: meter.answered[CommandKind.Renew],
    per_second: Math.round(inWindow / seconds),
    lost_leases: load.lost,
  };
}

async function runInterview(target: Target, options: BenchOptions): Promise<Run> {
  const rate = options.rate ?? INTERVIEW_RATE;
  const down = await endReplica(target);
  const load = await interviewLoad(target, options, rate, options.durationS);
  const window = await runLoad(target, load, options.durationS, options.profile);
  return {
    ...plain(window, {
      replica_down: down,
      acquire_p99_ms: acquireP99(load.meter),
      renewals: renewals(load, window.seconds),
    }),
    checks: [leaseCheck(load), scheduleCheck(window, rate)],
  };
}

const CALM_S = 10;
/** The tail is back when it is no worse than this many times the median second before the burst. */
const BACK_FACTOR = 2;
/** … or than this, whatever it was before: seconds differ even on an idle machine. */
const BACK_MS_MIN = 20;

function medianP99(rows: readonly { readonly p99Ms: number }[]): number {
  const sorted = rows.map((row) => row.p99Ms).sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

async function runBurst(target: Target, options: BenchOptions): Promise<Run> {
  const rate = options.rate ?? 1;
  const down = await endReplica(target);
  const wholeS = options.durationS + 2 * CALM_S;
  const load = await interviewLoad(target, options, INTERVIEW_RATE, wholeS);
  await load.open();
  load.start();
  await sleep(WARM_UP_MS);
  let calmRows = 0;
  let burstRows = 0;
  const window = await record(target, load, wholeS, options.profile, async () => {
    await sleep(CALM_S * MS_PER_S);
    calmRows = load.meter.seconds.length;
    say(`burst: ${rate}/s from now on`);
    load.setLoad(rate / INTERVIEW_RATE);
    await sleep(options.durationS * MS_PER_S);
    burstRows = load.meter.seconds.length;
    say(`burst: back to ${INTERVIEW_RATE}/s`);
    load.setLoad(1);
    await sleep(CALM_S * MS_PER_S);
  });
  await load.stop();
  await load.close();
  const { seconds } = load.meter;
  const calmMs = medianP99(seconds.slice(0, calmRows));
  const limitMs = Math.max(BACK_MS_MIN, calmMs * BACK_FACTOR);
  const after = seconds.slice(burstRows);
  const lastBad = after.findLastIndex((row) => row.p99Ms > limitMs);
  const during = seconds.slice(calmRows + 1, burstRows);
  const burstOps = during.reduce((sum, row) => sum + row.ops, 0);
  const extra = {
    replica_down: down,
    burst: {
      rate,
      ops_per_second: Math.round(burstOps / Math.max(1, during.length)),
      p99_ms_before: calmMs,
      p99_ms_during: medianP99(during),
      p99_back_after_s: lastBad + 1,
      p99_back_limit_ms: limitMs,
      refusals: load.meter.refusals,
    },
    renewals: renewals(load, window.seconds),
    seconds,
  };
  const back: Check = {
    name: 'p99 back',
    isKept: lastBad + 1 <= 5,
    detail: `${lastBad + 1} s after the burst, to ${limitMs.toFixed(1)} ms or less`,
  };
  return { ...plain(window, extra), checks: [leaseCheck(load), back] };
}

const ZIPF_PARKED = 16_384;

async function runZipf(target: Target, options: BenchOptions): Promise<Run> {
  const { host, port } = await target.leader();
  const sliceS = options.durationS / 2;
  const slices: Window[] = [];
  const headline = async (stem: string): Promise<void> => {
    const load = await closedLoop(target, options, stem);
    slices.push(await runLoad(target, load, sliceS, 'headline'));
  };
  await headline('before');
  const load = new ZipfLoad({
    host,
    port,
    connections: options.connections,
    inflight: options.inflight ?? 1,
    parked: ZIPF_PARKED,
    names: NAMES_DEFAULT,
    sessionTtlMs: sessionTtlMs(options.durationS),
  });
  const window = await runLoad(target, load, options.durationS, 'zipf');
  await headline('after');
  const rates = slices.map((slice) => slice.ops / slice.seconds);
  const beside = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  return {
    ...plain(window, {
      headline_ops_per_second: rates.map(Math.round),
      ratio_to_headline: Number((window.ops / window.seconds / beside).toFixed(3)),
      waits_timed_out: load.meter.refusals,
      waiting_most: load.parkedMost,
    }),
    meters: [...slices.map((slice) => slice.meter), load.meter],
  };
}

async function runHot(target: Target, options: BenchOptions): Promise<Run> {
  const { host, port } = await target.leader();
  const waiters = options.inflight ?? 1;
  const load = new Hot({
    host,
    port,
    connections: options.connections,
    waiters,
    sessionTtlMs: sessionTtlMs(options.durationS),
  });
  const window = await runLoad(target, load, options.durationS, options.profile);
  return plain(window, {
    waiters,
    hand_overs_per_second: Math.round(load.handOvers / window.seconds),
  });
}

/** The load beside the expiring leases is measured alone for this long first. */
const QUIET_S = 5;
/** … and the window is watched from this long before its first deadline. */
const BEFORE_WINDOW_MS = 200;
const SAMPLE_EVERY = 50;

async function runExpiry(target: Target, options: BenchOptions): Promise<Run> {
  const { host, port } = await target.leader();
  const beside = await closedLoop(target, options, 'beside');
  await beside.open();
  beside.start();
  await sleep(WARM_UP_MS);
  await record(target, beside, QUIET_S, 'alone ');
  const alone = beside.meter.total();
  const expiry = new Expiry({
    host,
    port,
    connections: options.connections,
    leases: options.leases,
    sampleEvery: SAMPLE_EVERY,
    sessionTtlMs: sessionTtlMs(options.durationS),
  });
  say(`taking ${options.leases} leases`);
  await expiry.open();
  await sleep(Math.max(0, expiry.untilWindowMs - BEFORE_WINDOW_MS));
  const before = new Latency();
  before.add(beside.meter.total());
  beside.meter.restart();
  const window = await record(target, beside, 0, 'expiry', async () => {
    await expiry.freed();
    await sleep(MS_PER_S);
  });
  await beside.stop();
  await expiry.close();
  await beside.close();
  const freedMs = expiry.freedMs - expiry.lastDeadlineMs;
  const granted = `${expiry.lateness.count} of ${expiry.waiterCount} granted`;
  return {
    window,
    meters: [beside.meter, expiry.meter],
    extra: {
      expiry: {
        leases: options.leases,
        within_one_second: expiry.inWindow,
        waiters: expiry.waiterCount,
        window_ms: expiry.lastDeadlineMs - expiry.firstDeadlineMs,
        last_freed_late_ms: freedMs,
        lateness_ms: expiry.lateness.figures(),
        others_p99_ms_alone: alone.at(99),
        others_p99_ms: beside.meter.total().at(99),
      },
    },
    checks: [
      {
        name: 'freed',
        isKept: expiry.freedMs > 0 && expiry.lateness.count === expiry.waiterCount,
        detail: `${granted}, the last ${freedMs} ms late`,
      },
    ],
    isRepeating: false,
  };
}

const FAILOVER_STEADY_MS = 1_500;
const FAILOVER_MS_MAX = 30_000;
const FAILOVER_SETTLE_MS = 1_000;

async function runFailover(target: Target, options: BenchOptions): Promise<Run> {
  const { cluster } = target;
  if (cluster === null) throw new Error('failover kills nodes: it wants a cluster of its own');
  const load = new Failover(target.endpoints, options.inflight ?? 1);
  load.start();
  await sleep(WARM_UP_MS);
  const gaps = new Latency();
  const each: number[] = [];
  const handle = {
    meter: load.meter,
    get bytes() {
      return load.bytes;
    },
    open: () => Promise.resolve(),
    start: () => undefined,
    stop: () => load.stop(FAILOVER_MS_MAX),
    close: () => Promise.resolve(),
  };
  const untilMs = performance.now() + options.durationS * MS_PER_S;
  const window = await record(target, handle, options.durationS, options.profile, async () => {
    while (performance.now() < untilMs) {
      const gapMs = await failOnce(target, load);
      gaps.record(gapMs);
      each.push(Math.round(gapMs));
    }
  });
  await load.stop(FAILOVER_MS_MAX);
  return {
    // Processes and connections came and went: their counters say nothing over the whole window.
    window: { ...window, leader: null, followers: null, peerBytes: null },
    meters: [load.meter],
    extra: {
      failover_ms: { count: gaps.count, p50: gaps.at(50), p99: gaps.at(99), max: gaps.maxMs },
      failovers_ms: each,
      answered_from_a_stored_result: load.repeats,
    },
    checks: [],
    isRepeating: true,
  };
}

/** Kills the leader, waits until others serve, starts it again. Returns the gap in ms. */
async function failOnce(target: Target, load: Failover): Promise<number> {
  const { cluster } = target;
  if (cluster === null) return 0;
  await sleep(FAILOVER_STEADY_MS);
  const leader = await cluster.leader();
  load.watch();
  const before = load.acknowledged;
  await cluster.kill(leader);
  const killedMs = performance.now();
  const isServed = (): boolean => load.acknowledged > before && load.sinceLastAckMs() < 100;
  // The first answers after the kill may be those that were under way: wait for a while of them.
  while (performance.now() - killedMs < FAILOVER_SETTLE_MS || !isServed()) {
    await sleep(5);
    if (performance.now() - killedMs > FAILOVER_MS_MAX) throw new Error('nobody serves');
  }
  const gapMs = load.longestGapMs();
  say(`node ${leader} killed: ${gapMs.toFixed(0)} ms without an acknowledged operation`);
  await cluster.restart(leader);
  return gapMs;
}

export const RUNNERS: Readonly<Record<string, Runner>> = {
  headline: runClosed,
  saturated: runClosed,
  'inflight-1024': runClosed,
  latency: runClosed,
  unpipelined: runClosed,
  'open-loop': runOpen,
  interview: runInterview,
  burst: runBurst,
  zipf: runZipf,
  hot: runHot,
  expiry: runExpiry,
  failover: runFailover,
  http: runHttp,
  'watch-fanout': runFanOut,
};

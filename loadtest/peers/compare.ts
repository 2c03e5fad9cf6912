/**
 * Holdfast beside other lock services: same machine, same run, slices in turn.
 *
 * Owns: rounds in which each system is started, driven at several in-flight counts, and ended
 * before the next is started, so that idle members take nothing from who is measured. An operation
 * is one acquire or one release that was acknowledged and checked. What is not installed is skipped
 * aloud. Never: a setting that makes a peer less durable than it is by itself. Used by: main.ts.
 */
import { ClosedLoop } from '../closed-loop.js';
import { NAMES_DEFAULT, sessionTtlMs } from '../load.js';
import type { Meter } from '../meter.js';
import type { BenchOptions } from '../options.js';
import { DURABILITY, Target } from '../target.js';
import { type Check, judge, type Verdict } from '../verdict.js';
import { runLoad, say, sleep, type Window } from '../window.js';
import { Etcd } from './etcd.js';
import { type OwnLoader, type Peer, type PeerFigure, Tally } from './peer.js';
import { Redlock } from './redlock.js';
import { ZooKeeper } from './zookeeper.js';

const ROUNDS = 2;
const MS_PER_S = 1_000;
const WARM_UP_MS = 1_500;
/** One alone, to compare latency, beside the common count and each system's own. */
const ALONE = 1;
const HOLDFAST = 'Holdfast';
const HOLDFAST_INFLIGHTS = [2_048, 8_192];
/** A run of this length gives the peers' own loaders their time. */
const OWN_LOADER_DURATION_S = 10;
const OWN_LOADER_S = 60;
const SHORT_LOADER_S = 5;

interface Slice {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Slices of one system by in-flight count. */
type Slices = Map<number, Slice[]>;

function add(slices: Slices, inflight: number, slice: Slice): void {
  slices.set(inflight, [...(slices.get(inflight) ?? []), slice]);
}

function counts(own: readonly number[], common: number): number[] {
  return [...new Set([ALONE, common, ...own])].sort((left, right) => left - right);
}

export interface Comparison {
  readonly window: Window;
  readonly verdict: Verdict;
  /** Every system at every in-flight count, Holdfast's own rows first. */
  readonly comparison: readonly PeerFigure[];
  /** Each peer at its best in-flight count, beside Holdfast at its own best. */
  readonly peers: readonly PeerFigure[];
  /** Sentences that say where Holdfast loses. */
  readonly losses: readonly string[];
}

class HoldfastSide {
  readonly slices: Slices = new Map();
  readonly checks: Check[] = [];
  verdict: Verdict | null = null;
  window: Window | null = null;

  async round(options: BenchOptions, common: number): Promise<void> {
    const target = await Target.start();
    const meters: Meter[] = [];
    try {
      const { host, port } = await target.leader();
      for (const inflight of counts(HOLDFAST_INFLIGHTS, common)) {
        const load = new ClosedLoop({
          host,
          port,
          connections: Math.min(inflight, options.connections),
          inflight,
          names: NAMES_DEFAULT,
          sessionTtlMs: sessionTtlMs(options.durationS),
          stem: `at-${inflight}`,
        });
        const window = await runLoad(target, load, options.durationS, 'Holdfast', WARM_UP_MS);
        meters.push(load.meter);
        const latency = load.meter.total();
        const perSecond = window.ops / window.seconds;
        add(this.slices, inflight, { perSecond, p50Ms: latency.at(50), p99Ms: latency.at(99) });
        sayTold(HOLDFAST, inflight, perSecond, latency.at(99));
        if (inflight === common) this.window = window;
      }
      const verdict = await judge(target, meters, false);
      this.checks.push(...verdict.checks);
      this.verdict = { ...verdict, checks: this.checks };
    } finally {
      await target.close();
    }
  }
}

function sayTold(name: string, inflight: number, perSecond: number, p99Ms: number): void {
  const rate = Math.round(perSecond).toString().padStart(7);
  say(`${name.padEnd(10)} ${String(inflight).padStart(5)} in flight ${rate}/s  p99 ${p99Ms} ms`);
}

class PeerSide {
  readonly slices: Slices = new Map();
  own: OwnLoader = { perSecond: null, note: 'not run' };
  errors = 0;

  constructor(
    readonly peer: Peer,
    readonly version: string,
  ) {}

  async round(options: BenchOptions, common: number, isLast: boolean): Promise<void> {
    const { peer } = this;
    try {
      await peer.start();
      for (const inflight of counts(peer.inflights, common)) {
        await this.slice(inflight, options.durationS);
      }
      if (!isLast) return;
      const isLong = options.durationS >= OWN_LOADER_DURATION_S;
      this.own = await peer.runOwnLoader(isLong ? OWN_LOADER_S : SHORT_LOADER_S);
      say(`${peer.name}: own loader ${this.own.perSecond ?? '-'}/s (${this.own.note})`);
    } finally {
      await peer.stop();
    }
  }

  private async slice(inflight: number, seconds: number): Promise<void> {
    const { peer } = this;
    const tally = new Tally();
    peer.drive(inflight, tally);
    await sleep(WARM_UP_MS);
    tally.isRecording = true;
    const startedMs = performance.now();
    await sleep(seconds * MS_PER_S);
    tally.isRecording = false;
    const elapsedS = (performance.now() - startedMs) / MS_PER_S;
    await peer.stopDriving();
    this.errors += tally.errors;
    const perSecond = tally.ops / elapsedS;
    const { latency } = tally;
    add(this.slices, inflight, { perSecond, p50Ms: latency.at(50), p99Ms: latency.at(99) });
    sayTold(peer.name, inflight, perSecond, latency.at(99));
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function rateAt(slices: Slices, inflight: number): number {
  return mean((slices.get(inflight) ?? []).map((slice) => slice.perSecond));
}

function bestOf(slices: Slices): number {
  const all = [...slices.keys()];
  all.sort((left, right) => rateAt(slices, right) - rateAt(slices, left));
  return all[0] ?? 0;
}

interface Side {
  readonly name: string;
  readonly version: string;
  readonly durability: string;
  readonly settings: string;
  readonly slices: Slices;
  readonly own: OwnLoader;
}

function rowsOf(side: Side, holdfast: Slices): PeerFigure[] {
  const best = bestOf(side.slices);
  const holdfastBest = rateAt(holdfast, bestOf(holdfast));
  return [...side.slices.entries()].map(([inflight, slices]) => {
    const rates = slices.map((slice) => slice.perSecond);
    const isBest = inflight === best;
    const beside = isBest ? holdfastBest : rateAt(holdfast, inflight);
    const isKnown = isBest || holdfast.has(inflight);
    return {
      name: side.name,
      version: side.version,
      durability: side.durability,
      settings: side.settings,
      inflight,
      ops_per_second: Math.round(mean(rates)),
      min: Math.round(Math.min(...rates)),
      max: Math.round(Math.max(...rates)),
      p50_ms: Number(mean(slices.map((slice) => slice.p50Ms)).toFixed(3)),
      p99_ms: Number(mean(slices.map((slice) => slice.p99Ms)).toFixed(3)),
      is_best: isBest,
      ratio: isKnown ? Number((beside / mean(rates)).toFixed(2)) : null,
      own_loader: isBest ? side.own.perSecond : null,
      own_loader_note: isBest ? side.own.note : '',
    };
  });
}

/** Where a peer did better: more operations or a shorter median at the same in-flight count. */
function lossesOf(rows: readonly PeerFigure[]): string[] {
  const own = rows.filter((row) => row.name === HOLDFAST);
  const losses: string[] = [];
  for (const row of rows) {
    const beside = own.find((each) => each.inflight === row.inflight);
    if (row.name === HOLDFAST || beside === undefined) continue;
    const at = `with ${row.inflight} in flight`;
    if (row.ops_per_second > beside.ops_per_second) {
      const rates = `${row.ops_per_second} against ${beside.ops_per_second} ops/s`;
      losses.push(`Holdfast loses to ${row.name} ${at}: ${rates}.`);
    } else if (row.p50_ms < beside.p50_ms) {
      const medians = `${row.p50_ms} against ${beside.p50_ms} ms`;
      losses.push(`Holdfast answers later than ${row.name} ${at}: a median of ${medians}.`);
    }
  }
  return losses;
}

/** Runs the whole comparison. */
export async function comparePeers(options: BenchOptions): Promise<Comparison> {
  const common = options.inflight ?? 1;
  const holdfast = new HoldfastSide();
  const sides: PeerSide[] = [];
  for (const peer of [new Etcd(), new ZooKeeper(), new Redlock()]) {
    const version = peer.version();
    if (version === null) say(`${peer.name}: SKIPPED, it is not installed here`);
    else sides.push(new PeerSide(peer, version));
  }
  for (let round = 1; round <= ROUNDS; round += 1) {
    say(`round ${round} of ${ROUNDS}`);
    await holdfast.round(options, common);
    for (const side of sides) {
      // Each round has members of its own: a peer object is one life of them.
      const fresh = new PeerSide(freshPeer(side.peer.name), side.version);
      await fresh.round(options, common, round === ROUNDS);
      for (const [inflight, slices] of fresh.slices) {
        for (const slice of slices) add(side.slices, inflight, slice);
      }
      side.errors += fresh.errors;
      side.own = fresh.own;
    }
  }
  const { window, verdict } = holdfast;
  if (window === null || verdict === null) throw new Error('Holdfast was not measured');
  const self: Side = {
    name: HOLDFAST,
    version: 'this commit',
    durability: `${DURABILITY}; consensus; tokens`,
    settings: 'five nodes, as npm start runs them',
    slices: holdfast.slices,
    own: { perSecond: null, note: 'is this one' },
  };
  const all: Side[] = [
    self,
    ...sides.map(({ peer, version, slices, own }) => {
      const { name, durability, settings } = peer;
      return { name, version, durability, settings, slices, own };
    }),
  ];
  const comparison = all.flatMap((side) => rowsOf(side, holdfast.slices));
  const peers = comparison.filter((row) => row.is_best && row.name !== HOLDFAST);
  const errors: Check[] = sides.map((side) => ({
    name: side.peer.name,
    isKept: side.errors === 0,
    detail: `${side.errors} operations were refused or wrong`,
  }));
  const judged = { ...verdict, checks: [...verdict.checks, ...errors] };
  return { window, verdict: judged, comparison, peers, losses: lossesOf(comparison) };
}

function freshPeer(name: string): Peer {
  const all: Peer[] = [new Etcd(), new ZooKeeper(), new Redlock()];
  const found = all.find((peer) => peer.name === name);
  if (found === undefined) throw new Error(`no peer ${name}`);
  return found;
}

/** The rows as lines for a person. */
export function peerLines(rows: readonly PeerFigure[], losses: readonly string[]): string[] {
  const lines = [
    '',
    'who        in flight    ops/s (least – most)      p50 ms    p99 ms  Holdfast is',
  ];
  for (const row of rows) {
    const rate = `${row.ops_per_second} (${row.min} – ${row.max})`.padStart(26);
    const p50 = row.p50_ms.toFixed(2).padStart(10);
    const p99 = row.p99_ms.toFixed(2).padStart(10);
    const best = row.is_best ? '  at its best' : '';
    const ratio = row.ratio === null ? '' : `  ${row.ratio} times${best}`;
    const inflight = String(row.inflight).padStart(10);
    lines.push(`${row.name.padEnd(10)}${inflight}${rate}${p50}${p99}${ratio}`);
  }
  for (const row of rows.filter((each) => each.is_best && each.name !== HOLDFAST)) {
    const own = row.own_loader === null ? '' : `, own loader ${row.own_loader}/s`;
    lines.push(`${row.name}: ${row.version}; ${row.settings}; ${row.durability}${own}`);
    if (row.own_loader_note !== '') lines.push(`  its own loader: ${row.own_loader_note}`);
  }
  return [...lines, '', ...(losses.length === 0 ? ['Holdfast loses nowhere here.'] : losses)];
}

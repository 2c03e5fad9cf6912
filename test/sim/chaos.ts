/**
 * One run of the simulator: users under a phase of faults, then a healed cluster that must serve.
 *
 * Owns: the two phases and what the healed cluster owes. The run is a function of its seed; while
 * it lasts nothing may ask for the time of day or for chance of its own. Never: judges; the
 * checkers do. Used by: the gate's smoke part, long runs (npm run sim), planted bugs.
 */
import { checkRun } from './checkers/check-run.js';
import type { Verdict } from './checkers/verdict.js';
import { Faults } from './faults.js';
import { History } from './history.js';
import { drawPlan, type Plan } from './plan.js';
import { SimCluster } from './sim-cluster.js';
import { SimOperator } from './sim-operator.js';
import { SimWorker } from './sim-worker.js';
import { type TraceNote, traceOf } from './trace.js';
import { withoutWallClock } from './wall-clock.js';
import { World } from './world.js';

const US_PER_MS = 1_000;
const SECOND_US = 1_000_000;
const SERVES_US_MAX = 5 * SECOND_US;
const ANSWERS_US_MAX = 20 * SECOND_US;
const AGREES_US_MAX = 5 * SECOND_US;

export interface ChaosResult {
  readonly seed: number;
  /** The first word of each is the checker that found it. */
  readonly problems: readonly string[];
  readonly operations: number;
  readonly answers: number;
  readonly entries: number;
  readonly events: number;
  readonly faults: number;
  readonly faultCounts: ReadonlyMap<string, number>;
  /** What each checker looked at. */
  readonly seen: ReadonlyMap<string, number>;
  /** What became of snapshots, by what a cluster counts. */
  readonly snapshots: Readonly<SimCluster['counts']>;
  /** Over every event of the run and the state at the end: equal for two runs of one seed. */
  readonly digest: string;
  /** The whole story in lines, made when it is asked for. */
  trace(): string[];
}

/** Runs one seed. The same seed on the same code gives the same result. */
export function runChaos(seed: number): ChaosResult {
  return withoutWallClock(() => new ChaosRun(seed).run());
}

class ChaosRun {
  private readonly world: World;
  private readonly plan: Plan;
  private readonly cluster: SimCluster;
  private readonly history = new History();
  private readonly faults: Faults;
  private readonly workers: (SimWorker | SimOperator)[] = [];
  private readonly notes: TraceNote[] = [];
  private readonly problems: string[] = [];

  constructor(private readonly seed: number) {
    this.world = new World(seed);
    this.plan = drawPlan(seed, this.world);
    this.cluster = new SimCluster(this.world, this.plan);
    this.cluster.onNote = (text) => this.notes.push({ atUs: this.world.nowUs, text });
    for (const node of this.cluster.nodes) node.clockRate = this.drawRate();
    this.faults = new Faults(this.world, this.cluster, this.plan);
    for (let id = 1; id <= this.plan.workers; id += 1) this.addWorker(id);
    this.addOperator(this.plan.workers + 1);
  }

  run(): ChaosResult {
    let healedUs = 0;
    try {
      healedUs = this.live();
    } catch (error) {
      // An assertion of the product, or a crash of it, is a finding like any other.
      this.problems.push(`died: ${error instanceof Error ? (error.stack ?? '') : String(error)}`);
    }
    this.cluster.close();
    return this.judge(healedUs);
  }

  /** Both phases. Returns when the cluster was healed, µs. */
  private live(): number {
    const { world, cluster, faults, workers } = this;
    for (const worker of workers) worker.start();
    faults.start();
    world.run(this.plan.chaosMs * US_PER_MS, () => this.isBroken);
    faults.stop();
    const healedUs = world.nowUs;
    if (this.isBroken) return healedUs;
    const isServing = (): boolean => cluster.serving() !== undefined;
    if (!world.run(healedUs + SERVES_US_MAX, isServing)) {
      this.problems.push('liveness: a healed cluster has no leader after 5 s');
      return healedUs;
    }
    const servedUs = world.nowUs;
    for (const worker of workers) worker.stop();
    const isQuiet = (): boolean => workers.every((worker) => worker.isIdle);
    if (!world.run(servedUs + ANSWERS_US_MAX, isQuiet)) {
      this.problems.push('liveness: a request is not answered 20 s after healing');
    }
    world.run(world.nowUs + SECOND_US / 2);
    if (!world.run(world.nowUs + AGREES_US_MAX, () => this.isAgreed())) {
      this.problems.push('liveness: nodes do not agree on an index 5 s after the last request');
    }
    return servedUs;
  }

  /** Something was found on the way: the rest would only bury it. */
  private get isBroken(): boolean {
    const { ledger, network, problems } = this.cluster;
    const found = ledger.problems.length + network.problems.length + problems.length;
    return found + this.faults.problems.length > 0;
  }

  /** Every node with a sound disk has applied the same entries. */
  private isAgreed(): boolean {
    const indices = new Set<number>();
    for (const { replica } of this.cluster.sound) {
      if (replica === null) return false;
      indices.add(replica.status().appliedIndex);
    }
    return indices.size === 1;
  }

  private judge(healedUs: number): ChaosResult {
    const { world, cluster, history, faults, plan, problems } = this;
    const { ledger, network } = cluster;
    problems.push(...ledger.problems, ...network.problems);
    problems.push(...cluster.problems, ...faults.problems);
    const areClocksSound = !plan.areClocksWild;
    const { settings } = plan;
    const { stalls } = faults;
    const run = { ledger, history, settings, stalls, healedUs, areClocksSound };
    const verdicts: Verdict[] = checkRun(run);
    for (const verdict of verdicts) problems.push(...verdict.problems);
    const { entries } = ledger;
    const last = entries.at(-1);
    return {
      seed: this.seed,
      problems,
      operations: history.operations.length,
      answers: history.operations.reduce((sum, { answers }) => sum + answers.length, 0),
      entries: entries.length,
      events: world.events,
      faults: faults.count,
      faultCounts: faults.counts,
      seen: new Map([
        ...verdicts.map(({ checker, seen }): [string, number] => [checker, seen]),
        ['snapshots', ledger.snapshots],
      ]),
      snapshots: cluster.counts,
      digest: `${world.events} events ${world.digest} ${last?.digest}`,
      trace: () => traceOf(this.notes, entries, history),
    };
  }

  private addWorker(id: number): void {
    const { world, plan, cluster, history } = this;
    const worker = new SimWorker(cluster, history, id, {
      locks: world.between(1, 6),
      ttlMs: world.between(...plan.ttlMs),
      renewedTtlMs: plan.ttlMs,
      waitMsMax: plan.waitMsMax,
      paceUs: plan.paceUs,
      usesSessions: world.prng.below(10) < plan.sessionTenths,
      clockRate: this.drawRate(),
      delayUs: plan.clientDelayUs,
      notAfter: plan.notAfter,
      principal: 1 + (id % plan.principals),
      idPrefix: `w${Math.ceil(id / plan.principals)}`,
    });
    this.workers.push(worker);
  }

  private addOperator(id: number): void {
    const { plan, cluster, history } = this;
    if (plan.hasOperator) this.workers.push(new SimOperator(cluster, history, id, plan));
  }

  private drawRate(): number {
    const [least, most] = this.plan.rates;
    return least + this.world.prng.nextDouble() * (most - least);
  }
}

/**
 * What a drill is, and what it is played on.
 *
 * Owns: the shape of both. Never: a drill; each has a file in scenarios/. Used by: table.ts,
 * run-drill.ts, canary.ts, the scenarios.
 */
import type { Client } from '../../client/index.js';
import type { Endpoint } from '../../server/options.js';
import type { Actor, ActorPlan } from './actor.js';
import type { ClusterPlan, DrillCluster } from './drill-cluster.js';
import type { Ledger } from './ledger.js';
import type { DrillName } from './names.js';
import type { Resource } from './resource.js';
import type { SmallDisk } from './small-disk.js';
import type { SteadyLoad } from './steady-load.js';
import type { Story } from './story.js';

/** What every drill finds ready. */
export interface Stage {
  readonly endpoints: readonly Endpoint[];
  readonly client: Client;
  readonly story: Story;
  readonly ledger: Ledger;
  readonly resource: Resource;
  readonly load: SteadyLoad;
  /** The lock that it is about, and the prefix of all locks that it may take. */
  readonly lock: string;
  readonly prefix: string;
  /** Names its first acquire, in the audit stream too. */
  readonly operationId: string;
  /** False under test: what the drill relies on is left out, and its checks must see that. */
  readonly isProtected: boolean;
  /** Starts a program that takes the lock; it is ended with the drill. */
  startActor(plan: Pick<ActorPlan, 'ttlMs'> & Partial<ActorPlan>): Promise<Actor>;
}

/** What is put up before a drill's nodes start. */
export interface Scenery {
  readonly cluster: ClusterPlan;
  /** Taken away when the drill is over. */
  readonly disk: SmallDisk | null;
}

export interface Drill {
  /** The word of the command line. */
  readonly name: DrillName;
  readonly title: string;
  /** What it relies on, which is left out under test. */
  readonly protection: string;
  /** What its nodes need, in the drill's `folder`. Throws CliError DRILL_NOT_PERMITTED. */
  build?(folder: string, isProtected: boolean): Scenery;
  /** Plays it, and repairs what it broke. What had to hold is in the story's checks. */
  play(stage: Stage, cluster: DrillCluster, disk: SmallDisk | null): Promise<void>;
}

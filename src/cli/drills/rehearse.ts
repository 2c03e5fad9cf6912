/**
 * One drill from its first client to its record, on a cluster that stands already.
 *
 * Owns: the order: the service is measured, the scenario is played, the service is waited for until
 * it is as before, everything is verified, and the record is made. Never: starts or ends a node.
 * Used by: run-drill.ts, with a cluster of the drill's own; canary.ts, with one that others use.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { type Client, connect, HoldfastError, type LockView } from '../../client/index.js';
import { type Endpoint, formatEndpoint } from '../../server/options.js';
import type { Json } from '../../wire/event-json.js';
import { explanationOf } from '../../wire/explain.js';
import { CommandKind } from '../../wire/request.js';
import { openPages } from '../audit/source.js';
import { CliError } from '../exit-codes.js';
import { withLeader } from '../leader-call.js';
import { Actor, type ActorPlan } from './actor.js';
import type { Backstage } from './backstage.js';
import type { Drill, Stage } from './drill.js';
import { Ledger } from './ledger.js';
import { type RecoveryRecord, recordOf, type ServiceRecord } from './record.js';
import { Resource } from './resource.js';
import { leastOf, missingOf, type Service } from './service.js';
import { SteadyLoad } from './steady-load.js';
import { Story } from './story.js';
import { TEST_WORDS, type TestMode } from './test-mode.js';
import { verify } from './verify.js';

/** Every lock of every drill is below it. */
export const RESERVED_PREFIX = 'holdfast-drill/';

export interface Rehearsal {
  readonly drill: Pick<Drill, 'title' | 'protection'> & { readonly name: string };
  /** Client address of every node. */
  readonly endpoints: readonly Endpoint[];
  /** For the guarded resource. */
  readonly folder: string;
  /** True when `folder` stays. */
  readonly isKept: boolean;
  /** True: the cluster is there for this drill alone. */
  readonly isOwn: boolean;
  readonly test: TestMode;
  readonly backstage: Backstage;
}

/** The service is measured in windows of this length; so many before the scenario. */
const WINDOW_MS = 600;
const WINDOWS_BEFORE = 3;
/** Under test a drill fails for another reason than the service. */
const WINDOWS_BEFORE_TEST = 1;
/** How long the service may take to be as before, and nodes to agree; under test, not so long. */
const PATIENCE_MS = 45_000;
const PATIENCE_TEST_MS = 4_000;
const CONNECT_MS = 30_000;
const LAST_LOOK_MS = 5_000;

/** The first revision that may be of this drill. */
async function nextRevision(endpoints: readonly Endpoint[]): Promise<number> {
  const options = { endpoints, timeoutMs: CONNECT_MS, isTimeoutGiven: true };
  const pages = openPages(options, new AbortController().signal);
  try {
    return (await pages.page({ prefix: '', from: null, limit: 1, waitMs: 0 }))?.next ?? 1;
  } finally {
    pages.close();
  }
}

async function measureBefore(load: SteadyLoad, count: number): Promise<Service> {
  const windows: Service[] = [];
  while (windows.length < count) windows.push(await load.window(WINDOW_MS));
  return leastOf(windows);
}

/** Looks at one window after the other until one is as before, or patience is at its end. */
async function measureAfter(
  load: SteadyLoad,
  before: Service,
  playedMs: number,
  patienceMs: number,
): Promise<ServiceRecord> {
  const overMs = performance.now();
  for (;;) {
    const after = await load.window(WINDOW_MS);
    const missing = missingOf(before, after);
    const backAfterMs = performance.now() - overMs;
    if (missing.length > 0 && backAfterMs < patienceMs) continue;
    const longestGapMs = load.longestGap(playedMs);
    return { before, after, missing, backAfterMs, longestGapMs };
  }
}

/** A scenario that cannot go on is a check that was not kept, with the reason. */
async function playTo(stage: Stage, play: (stage: Stage) => Promise<void>): Promise<void> {
  const what = 'the scenario is played to its end';
  try {
    await play(stage);
    stage.story.demand(what, true, `${stage.story.steps.length} steps`);
  } catch (error) {
    if (!(error instanceof CliError) && !(error instanceof HoldfastError)) throw error;
    stage.story.tell(`it cannot go on: ${error.code}`);
    stage.story.demand(what, false, `${error.code}: ${error.message}`);
  }
}

/** The lock as it is now; null when nobody can say. */
async function lastLook(
  client: Client,
  endpoints: readonly Endpoint[],
  lock: string,
): Promise<{ readonly view: LockView | null; readonly explanation: Json | null }> {
  const options = { endpoints, timeoutMs: LAST_LOOK_MS, isTimeoutGiven: true };
  try {
    const view = await client.get(lock, { deadlineMs: LAST_LOOK_MS });
    const operation = [CommandKind.Explain, lock, null, null, null];
    const reply = await withLeader(options, (call) => call.request(operation));
    return { view, explanation: explanationOf(reply, lock) };
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return { view: null, explanation: null };
  }
}

/** What of a stage is made anew for each rehearsal, and closed after it. */
class Cast {
  private readonly actors: Actor[] = [];

  constructor(
    private readonly stage: Omit<Stage, 'startActor'>,
    private readonly backstage: Backstage,
  ) {}

  async startActor(plan: Pick<ActorPlan, 'ttlMs'> & Partial<ActorPlan>): Promise<Actor> {
    const { endpoints, lock, operationId, resource, isProtected, ledger } = this.stage;
    const whole: ActorPlan = {
      endpoints: endpoints.map(formatEndpoint),
      lock,
      requestId: operationId,
      file: resource.file,
      isGuarded: isProtected,
      onlyNode: null,
      ...plan,
    };
    const actor = await Actor.start(whole, (started) => {
      this.actors.push(started);
      this.backstage.add(() => started.end());
    });
    const { token, revision } = actor;
    ledger.granted({ name: whole.lock, token, revision }, whole.requestId);
    return actor;
  }

  close(): void {
    for (const actor of this.actors) actor.end();
  }
}

/** Plays a drill. Rejects only when it could not begin. */
export async function rehearse(
  rehearsal: Rehearsal,
  play: (stage: Stage) => Promise<void>,
): Promise<RecoveryRecord> {
  const { drill, endpoints, folder, isOwn, test, backstage } = rehearsal;
  const id = randomBytes(4).toString('hex');
  const prefix = `${RESERVED_PREFIX}${drill.name}/${id}/`;
  const isProtected = test !== 'unprotected';
  const startedAt = new Date();
  const story = new Story();
  const addresses = endpoints.map(formatEndpoint);
  await using client = await connect({ endpoints: addresses, deadlineMs: CONNECT_MS });
  const resource = await Resource.open(path.join(folder, 'resource.sqlite'), isProtected);
  const load = await SteadyLoad.start(endpoints, `${RESERVED_PREFIX}load/${id}/`);
  const [lock, operationId, ledger] = [`${prefix}lock`, `drill/${drill.name}/${id}`, new Ledger()];
  const bare = { endpoints, client, story, ledger, resource, load, lock, prefix, operationId };
  const cast = new Cast({ ...bare, isProtected }, backstage);
  const stage: Stage = { ...bare, isProtected, startActor: (plan) => cast.startActor(plan) };
  const patienceMs = test === '' ? PATIENCE_MS : PATIENCE_TEST_MS;
  try {
    const from = isOwn ? 1 : await nextRevision(endpoints);
    const before = await measureBefore(load, test === '' ? WINDOWS_BEFORE : WINDOWS_BEFORE_TEST);
    story.tell(`${endpoints.length} nodes serve, and the load beside the drill is measured`);
    const playedMs = performance.now();
    await playTo(stage, play);
    cast.close();
    const service = await measureAfter(load, before, playedMs, patienceMs);
    await load.close();
    const evidence = { endpoints, client, ledger, resource, lock, prefix, from, isOwn, patienceMs };
    const findings = await verify({ ...evidence, hidesEvent: test === 'gap' });
    return recordOf({
      drill: drill.name,
      title: drill.title,
      protection: drill.protection,
      test: TEST_WORDS[test],
      startedAt,
      story,
      operationId,
      lock,
      findings,
      ...(await lastLook(client, endpoints, lock)),
      service,
      repeated: load.repeated,
      folder: rehearsal.isKept ? folder : '',
    });
  } finally {
    cast.close();
    await load.close();
    resource.close();
  }
}

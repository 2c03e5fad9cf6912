/**
 * The case of record: A holds a lock with token 41 and is stopped past its TTL; B is granted 42 and
 * writes; then A's write comes. It must be refused, counted, and leave no trace.
 *
 * Owns: two forms of it: A itself is stopped before it writes (SIGSTOP), or its write was sent and
 * is held in the network. Tokens are what the cluster grants. Used by: guards.test.ts, main.ts.
 */
import { type Client, connect } from '../../src/client/index.js';
import { fenceOf } from '../../src/guards/fence.js';
import { Holder } from './holder.js';
import type { HolderMessage } from './holder-process.js';
import { HoldingRelay } from './holding-relay.js';
import type { GuardRow } from './report.js';
import { type Door, PATIENCE, type Place, type Resource } from './resource.js';
import { Desk } from './resources/desk.js';
import { openDoor } from './resources/open.js';

export interface StoryPlan {
  readonly endpoints: readonly string[];
  /** Of A. B has the default, since on a busy machine it must not lose its own. */
  readonly ttlMs: number;
  /** How long A stays stopped at least. */
  readonly pauseMs: number;
  /** Ends A's process. */
  readonly signal?: AbortSignal;
}

/** What happened. */
export interface StoryRecord {
  readonly tokenA: number;
  readonly tokenB: number;
  /** What A was told of its write. */
  readonly said: HolderMessage;
  /** The value at the end. */
  readonly value: string;
  /** Refusals that the resource counted; null where it cannot. */
  readonly refused: number | null;
  readonly mark: number;
}

const SEED = 'seed';
const VALUE_OF_B = 'by B';

/** B, in this process. */
class Rival {
  constructor(
    private readonly client: Client,
    readonly door: Door,
    private readonly lock: string,
  ) {}

  /** Is granted the lock and writes, once. Gives the token. */
  async write(value: string): Promise<number> {
    return this.client.withLock(this.lock, { waitMs: 120_000, ...PATIENCE }, async (lease) => {
      await this.door.write(fenceOf(lease), value);
      return lease.token;
    });
  }
}

async function withRival<T>(
  { place }: Resource,
  { endpoints }: StoryPlan,
  name: string,
  tell: (rival: Rival) => Promise<T>,
): Promise<T> {
  const client = await connect({ endpoints, ...PATIENCE });
  const door = await openDoor(place, name);
  try {
    const rival = new Rival(client, door, name);
    await rival.write(SEED);
    return await tell(rival);
  } finally {
    await door.close();
    await client.close();
  }
}

async function recordOf(
  { door }: Rival,
  lock: string,
  tokenA: number,
  tokenB: number,
  said: HolderMessage,
): Promise<StoryRecord> {
  const { token: mark, refused } = await door.guard.mark(lock);
  return { tokenA, tokenB, said, value: await door.read(), refused, mark };
}

/** A is stopped before it writes. */
export function tellOfPause(resource: Resource, plan: StoryPlan): Promise<StoryRecord> {
  const name = `story/${resource.place.kind}/pause`;
  return withRival(resource, plan, name, async (rival) => {
    const { endpoints, ttlMs, pauseMs, signal } = plan;
    const { place } = resource;
    const asked = { endpoints, ttlMs, lock: name, place, cell: name };
    const holder = await Holder.start(asked, signal);
    try {
      await holder.stop();
      const stoppedMs = performance.now();
      const tokenB = await rival.write(VALUE_OF_B);
      const restMs = pauseMs - (performance.now() - stoppedMs);
      if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
      holder.write('by A');
      holder.cont();
      return await recordOf(rival, name, holder.token, tokenB, await holder.next());
    } finally {
      holder.end();
    }
  });
}

/** A's write is held on its way to the resource, and let go after B's. */
export function tellOfDelay(resource: Resource, plan: StoryPlan): Promise<StoryRecord> {
  const name = `story/${resource.place.kind}/delay`;
  return withRival(resource, plan, name, async (rival) => {
    const desk = resource.place.port === 0 ? await Desk.start(rival.door) : null;
    const relay = await HoldingRelay.start(desk?.port ?? resource.place.port);
    const place: Place = { ...resource.place, port: relay.port };
    const { endpoints, ttlMs, signal } = plan;
    const asked = { endpoints, ttlMs, lock: name, place, cell: name };
    const holder = await Holder.start(asked, signal);
    try {
      relay.holdFrom(resource.decidingBytes);
      holder.write('by A');
      await relay.holds();
      await holder.stop(); // so that its lease runs out
      const tokenB = await rival.write(VALUE_OF_B);
      relay.letGo();
      holder.cont();
      return await recordOf(rival, name, holder.token, tokenB, await holder.next());
    } finally {
      holder.end();
      relay.close();
      desk?.close();
    }
  });
}

/** What is wrong with a record, one line each; empty when A was refused as it should be. */
export function faultsOf(record: StoryRecord): string[] {
  const { tokenA, tokenB, said, value, refused, mark } = record;
  const faults: string[] = [];
  if (tokenB <= tokenA) faults.push(`B's token ${tokenB} is not above A's ${tokenA}`);
  if (said.type !== 'refused') faults.push(`A was told ${JSON.stringify(said)}`);
  else if (said.seen !== tokenB || said.offered !== tokenA) {
    faults.push(`the refusal says ${said.offered} after ${said.seen}`);
  }
  if (value !== VALUE_OF_B) faults.push(`the value is ${value}`);
  if (refused === 0) faults.push('the resource counted no refusal');
  if (mark !== tokenB) faults.push(`the mark is ${mark}, B's token is ${tokenB}`);
  return faults;
}

/** Both forms at once, each with a line of its own, and what they come to. */
export async function playStories(
  resource: Resource,
  plan: StoryPlan,
  say: (line: string) => void,
): Promise<GuardRow> {
  const { server, place } = resource;
  const { kind } = place;
  const forms = ['stopped', 'held in the network'];
  const records = await Promise.all([tellOfPause(resource, plan), tellOfDelay(resource, plan)]);
  const faults: string[] = [];
  for (const [at, record] of records.entries()) {
    const { tokenA, tokenB, said, refused } = record;
    const counted = refused === null ? 'it does not count' : `it counts ${refused}`;
    const words = `A had token ${tokenA}, B wrote with ${tokenB}, A was ${said.type}; ${counted}`;
    say(`${kind}, ${forms[at]}: ${words}`);
    faults.push(...faultsOf(record).map((fault) => `${forms[at]}: ${fault}`));
  }
  const refused = records.filter(({ said }) => said.type === 'refused').length;
  const lost = records.filter(({ value }) => value !== VALUE_OF_B).length;
  // The seed and B's, in each form.
  const writes = 2 * records.length;
  return { kind, server, pauses: records.length, writes, refused, unknown: 0, lost, faults };
}

import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { createLogger } from '../../../src/observe/logger.js';
import {
  Founding,
  type FoundingPeers,
  FoundingRefused,
  type FoundingStore,
  type PeerIdentity,
} from '../../../src/server/founding.js';
import type { MemberAddress } from '../../../src/server/options.js';
import type { FoundingRecord } from '../../../src/wire/founding.js';

/** A node with a disk, whose founding process can be started, killed and started again. */
class World implements FoundingStore {
  record: FoundingRecord | null = null;
  diskId: Uint8Array = randomBytes(16);
  founding: Founding | null = null;
  readonly said: string[] = [];
  isReachable = true;
  stores = 0;
  /** The process dies at the next store, before the record is durable. */
  diesAtStore = false;
  /** Its process is gone: it asks nobody, and its next pause is its end. */
  isKilled = false;

  constructor(
    readonly nodeId: number,
    private readonly net: Net,
  ) {}

  async store(record: FoundingRecord): Promise<void> {
    if (this.diesAtStore) this.isKilled = true;
    if (this.isKilled) throw new Error('killed');
    this.stores += 1;
    this.record = record;
  }

  /** Starts the process; it gives up after `rounds` rounds without a record. */
  start(bootstrap: boolean, rounds = 3): Promise<FoundingRecord> {
    this.isKilled = false;
    let left = rounds;
    const sink = { write: (line: string) => this.said.push(line) };
    this.founding = new Founding(this, this.peers(), {
      members: this.net.members,
      bootstrap,
      settings: { leaseTtlMsLeast: 250 },
      drawClusterId: () => randomBytes(16),
      pause: async () => {
        await new Promise((resolve) => setImmediate(resolve));
        left -= 1;
        if (this.isKilled) throw new Error('killed');
        if (left <= 0) throw new Error('gave up');
      },
      logger: createLogger('info', { node: this.nodeId }, sink),
    });
    return this.founding.run();
  }

  private peers(): FoundingPeers {
    return {
      ask: async (member) => this.net.reach(member.nodeId).identity(),
      offer: async (member, record) => {
        const target = this.net.reach(member.nodeId);
        this.net.offers += 1;
        if (this.net.offers > this.net.offersMax) this.isKilled = true;
        if (this.isKilled) throw new Error('killed');
        await target.founding?.accept(record);
      },
    };
  }

  identity(): PeerIdentity {
    return { nodeId: this.nodeId, diskId: this.diskId, record: this.record };
  }
}

class Net {
  readonly members: MemberAddress[];
  readonly worlds: World[];
  offers = 0;
  /** Offers that get through before the bootstrapper is killed. */
  offersMax = Number.POSITIVE_INFINITY;

  constructor(count: number) {
    this.members = Array.from({ length: count }, (_, at) => ({
      nodeId: at + 1,
      peer: { host: 'h', port: 1 + at },
      client: { host: 'h', port: 101 + at },
    }));
    this.worlds = this.members.map((member) => new World(member.nodeId, this));
  }

  world(nodeId: number): World {
    const world = this.worlds[nodeId - 1];
    if (world === undefined) throw new Error(`no node ${nodeId}`);
    return world;
  }

  reach(nodeId: number): World {
    const world = this.world(nodeId);
    if (!world.isReachable) throw new Error('unreachable');
    return world;
  }
}

const ROUNDS = 50;

async function allGiveUp(test: Test, runs: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(runs)) {
    test.match(result, { status: 'rejected', reason: { message: 'gave up' } });
  }
}

t.test('the bootstrapper founds: every node has the same record with all disks', async (t) => {
  const net = new Net(5);
  const runs = net.worlds.map((world) => world.start(world.nodeId === 1, ROUNDS));
  const records = await Promise.all(runs);
  for (const record of records) t.same(record, records[0]);
  t.same(
    records[0]?.members.map((member) => member.diskId),
    net.worlds.map((world) => world.diskId),
  );
  t.equal(records[0]?.settings.leaseTtlMsLeast, 250);
  t.equal(records[0]?.settings.leaseTtlMsDefault, 30_000);
  t.same(
    net.worlds.map((world) => world.stores),
    [1, 1, 1, 1, 1],
  );
});

t.test('nobody is founded while a member is missing, and the wait is said once', async (t) => {
  const net = new Net(5);
  net.world(4).isReachable = false;
  await allGiveUp(
    t,
    [1, 2, 3, 5].map((nodeId) => net.world(nodeId).start(nodeId === 1, 5)),
  );
  t.ok(net.worlds.every((world) => world.record === null));
  t.equal(net.world(1).said.filter((line) => line.includes('not reached yet: 4')).length, 1);
  t.equal(net.world(2).said.filter((line) => line.includes('--bootstrap')).length, 1);
});

t.test('without --bootstrap nobody founds', async (t) => {
  const net = new Net(3);
  await allGiveUp(
    t,
    net.worlds.map((world) => world.start(false)),
  );
  t.ok(net.worlds.every((world) => world.record === null));
});

for (const offersMax of [0, 1, 2, 3, 4]) {
  t.test(`killed after ${offersMax} of 4 stores, the re-run ends in one record`, async (t) => {
    const net = new Net(5);
    net.offersMax = offersMax;
    net.world(1).diesAtStore = offersMax === 4;
    const first = net.worlds.map((world) => world.start(world.nodeId === 1, 4));
    await Promise.allSettled(first);
    const stored = net.worlds.filter((world) => world.record !== null);
    t.ok(net.world(1).record === null, 'the bootstrapper stores last');
    const before = stored[0]?.record?.clusterId;

    net.offersMax = Number.POSITIVE_INFINITY;
    net.world(1).diesAtStore = false;
    const records = await Promise.all(
      net.worlds.map((world) => world.start(world.nodeId === 1, ROUNDS)),
    );
    for (const record of records) t.same(record, records[0]);
    if (before !== undefined) t.same(records[0]?.clusterId, before, 'what stood was adopted');
    t.ok(net.worlds.every((world) => world.stores === 1));
  });
}

t.test('after the bootstrapper died the others finish by themselves', async (t) => {
  const net = new Net(5);
  net.offersMax = 1;
  const [first, ...others] = await Promise.allSettled(
    net.worlds.map((world) => world.start(world.nodeId === 1, ROUNDS)),
  );
  t.equal(first?.status, 'rejected');
  t.equal(net.world(1).record, null);
  for (const other of others) t.equal(other.status, 'fulfilled');
  for (const world of net.worlds.slice(1)) t.same(world.record, net.world(2).record);
});

t.test('a founded node needs nobody', async (t) => {
  const net = new Net(3);
  await Promise.all(net.worlds.map((world) => world.start(world.nodeId === 1, ROUNDS)));
  for (const world of net.worlds) world.isReachable = false;
  const again = await net.world(2).start(false);
  t.same(again, net.world(1).record);
  t.equal(net.world(2).stores, 1);
});

t.test('a wiped node is refused, with the two disk ids and the way back', async (t) => {
  const net = new Net(3);
  await Promise.all(net.worlds.map((world) => world.start(world.nodeId === 1, ROUNDS)));
  const known = Buffer.from(net.world(2).diskId).toString('hex');
  net.world(2).record = null;
  net.world(2).diskId = randomBytes(16);
  for (const bootstrap of [false, true]) {
    const error = await net
      .world(2)
      .start(bootstrap)
      .catch((reason: unknown) => reason);
    t.ok(error instanceof FoundingRefused);
    t.match(String(error), known);
    t.match(String(error), /cannot replace a member/);
  }
  t.equal(net.world(2).record, null);
});

t.test('a folder that was founded as another member is refused at the start', async (t) => {
  const net = new Net(3);
  await Promise.all(net.worlds.map((world) => world.start(world.nodeId === 1, ROUNDS)));
  const stranger = net.world(3);
  stranger.diskId = randomBytes(16);
  await t.rejects(stranger.start(false), FoundingRefused);
});

t.test('two members with one disk id are a copied folder', async (t) => {
  const net = new Net(3);
  net.world(3).diskId = net.world(1).diskId;
  const error = await net
    .world(1)
    .start(true)
    .catch((reason: unknown) => reason);
  t.ok(error instanceof FoundingRefused);
  t.match(String(error), /copied/);
});

t.test('a node that answers under another id is a wrong --peers', async (t) => {
  const net = new Net(3);
  net.world(2).identity = () => ({ nodeId: 3, diskId: randomBytes(16), record: null });
  await t.rejects(net.world(1).start(true), /says it is node 3, --peers says 2/);
});

t.test('an offer of another cluster is refused and changes nothing', async (t) => {
  const net = new Net(3);
  const [record] = await Promise.all(
    net.worlds.map((world) => world.start(world.nodeId === 1, ROUNDS)),
  );
  if (record === undefined) throw new Error('not founded');
  const other = { ...record, clusterId: randomBytes(16) };
  const { founding } = net.world(2);
  if (founding === null) throw new Error('not started');
  await t.rejects(founding.accept(other), /only one node may bootstrap/);
  await t.resolves(founding.accept(record), 'the same one again is no change');
  t.equal(net.world(2).stores, 1);
});

t.test('members of two clusters are told apart', async (t) => {
  const net = new Net(3);
  const [record] = await Promise.all(
    net.worlds.map((world) => world.start(world.nodeId === 1, ROUNDS)),
  );
  if (record === undefined) throw new Error('not founded');
  net.world(1).record = null;
  net.world(2).record = { ...record, clusterId: randomBytes(16) };
  await t.rejects(net.world(1).start(true), /founded twice/);
});

t.test('two bootstrappers never make two records that both have a majority', async (t) => {
  for (let round = 0; round < 50; round += 1) {
    const net = new Net(5);
    await Promise.allSettled(net.worlds.map((world) => world.start(world.nodeId % 4 === 1, 20)));
    const counts = new Map<string, number>();
    for (const { record } of net.worlds) {
      if (record === null) continue;
      const id = Buffer.from(record.clusterId).toString('hex');
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    t.ok([...counts.values()].filter((count) => count >= 3).length <= 1);
  }
});

import t from 'tap';
import type { Client } from '../../../src/client/client.js';
import type { Lease } from '../../../src/client/lease.js';
import { FakeClock, settle } from './fake-clock.js';
import { FakeCluster, type Interference } from './fake-cluster.js';
import { advanced, connectedTo, watchRejections } from './ground.js';

/**
 * Three clients work on a few locks while everything goes wrong by a seed: lost requests and
 * replies, delays, resets, silent nodes, changes of leader, slow commits, stalls and suspends.
 * At each moment what a client believes must be true at the cluster. Then all is healed: every
 * promise has settled, nothing is left behind, and the locks can be had again.
 */
const unhandled = watchRejections();

class Run {
  readonly clock = new FakeClock();
  readonly cluster = new FakeCluster(this.clock, 3);
  readonly clients: Client[] = [];
  readonly leases = new Set<Lease>();
  believed = 0;
  underWay = 0;
  private state: number;

  constructor(seed: number) {
    this.state = seed * 2_654_435_761 + 1;
    this.clock.seedChance(seed);
  }

  /** A whole number below `limit`. */
  draw(limit: number): number {
    this.state = (Math.imul(this.state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.state / 2 ** 32) * limit);
  }

  interference(percent: number): Interference | undefined {
    if (this.draw(100) >= percent) return undefined;
    switch (this.draw(4)) {
      case 0:
        return 'lose-request';
      case 1:
        return 'lose-reply';
      case 2:
        return 'reset-after';
      default:
        return { delayMs: this.draw(2_000) };
    }
  }

  /** One thing that a program may do. */
  act(client: Client): void {
    const name = `lock/${this.draw(3)}`;
    const session = this.draw(2) === 0 ? {} : { session: null };
    const controller = new AbortController();
    const options = {
      ...session,
      ttlMs: 1_000 + this.draw(4_000),
      waitMs: this.draw(5_000),
      deadlineMs: 1_000 + this.draw(4_000),
      signal: controller.signal,
    };
    if (this.draw(4) === 0) this.clock.later(this.draw(3_000), () => controller.abort());
    const holdMs = this.draw(8_000);
    this.underWay += 1;
    const done = (): void => {
      this.underWay -= 1;
    };
    client.acquire(name, options).then((lease) => this.keep(lease, holdMs, done), done);
  }

  private keep(lease: Lease, holdMs: number, done: () => void): void {
    this.leases.add(lease);
    this.clock.later(holdMs, () => {
      this.leases.delete(lease);
      lease.release().then(done, done);
    });
  }

  /** What a client believes in must be live at the cluster, and believed in by one client only. */
  check(): void {
    this.cluster.expire();
    const names = new Set<string>();
    for (const lease of this.leases) {
      if (lease.state !== 'held' && lease.state !== 'jeopardy') continue;
      this.believed += 1;
      const held = this.cluster.holderOf(lease.name);
      const what = `${lease.name} token ${lease.token}, ${lease.state}`;
      if (held?.token !== lease.token) {
        throw new Error(`${what}: the cluster has ${held?.token ?? 'nobody'}`);
      }
      if (names.has(lease.name)) throw new Error(`${what}: two believe that they hold it`);
      names.add(lease.name);
    }
  }

  /** Something outside goes wrong, or is healed. */
  disturb(): void {
    const { cluster, clock } = this;
    const nodeId = 1 + this.draw(3);
    switch (this.draw(9)) {
      case 0:
        cluster.elect(nodeId, this.draw(2) === 0);
        break;
      case 1:
        cluster.leaderId = 0;
        break;
      case 2:
        cluster.network.blackHole(cluster.address(nodeId));
        break;
      case 3:
        clock.stall(this.draw(3_000));
        break;
      case 4:
        clock.suspend(this.draw(6_000));
        break;
      case 5:
        cluster.commitMs = this.draw(600);
        break;
      case 6:
        cluster.isServing = this.draw(3) > 0;
        break;
      default:
        this.heal();
    }
  }

  heal(): void {
    const { cluster } = this;
    cluster.network.down.clear();
    for (const address of [...cluster.network.blackHoles]) {
      cluster.network.blackHoles.delete(address);
      cluster.network.reset(address);
    }
    cluster.isServing = true;
    cluster.commitMs = 0;
    if (cluster.leaderId === 0) cluster.leaderId = 1 + this.draw(3);
  }

  async play(moments: number): Promise<void> {
    for (let client = 0; client < 3; client += 1) {
      this.clients.push(await connectedTo(this.clock, this.cluster));
    }
    this.cluster.interfere = () => this.interference(8);
    for (let moment = 0; moment < moments; moment += 1) {
      const client = this.clients[this.draw(3)];
      if (client !== undefined && this.underWay < 30) this.act(client);
      if (this.draw(12) === 0) this.disturb();
      await this.clock.advance(this.draw(120));
      this.check();
    }
  }

  async rest(): Promise<void> {
    this.cluster.interfere = () => undefined;
    this.heal();
    for (let second = 0; second < 40; second += 1) {
      await this.clock.advance(1_000);
      this.check();
    }
  }
}

const SEEDS = 12;
const MOMENTS = 400;

for (let seed = 1; seed <= SEEDS; seed += 1) {
  t.test(
    `seed ${seed}: no client believes what is not so, and nothing is left behind`,
    async (t) => {
      const run = new Run(seed);
      await run.play(MOMENTS);
      await run.rest();
      t.ok(run.believed > 50, `${run.believed} beliefs were checked`);
      t.equal(run.underWay, 0, 'every promise has settled');
      t.same(
        run.cluster.live.map(({ name, token }) => `${name} ${token}`),
        [],
        'no lease is left that nobody believes in',
      );
      t.equal(run.cluster.waits.length, 0, 'nor a place in a queue');
      for (const client of run.clients) {
        const lease = await advanced(run.clock, client.acquire('lock/0', { ttlMs: 2_000 }));
        t.equal(lease.state, 'held', 'each client works again');
        await advanced(run.clock, lease.release());
        await advanced(run.clock, client.close());
      }
      await settle();
      t.equal(run.clock.timers, 0);
    },
  );
}

t.test('no rejection went unhandled', (t) => {
  t.same(unhandled, []);
  t.end();
});

import t from 'tap';
import { SimClient } from './sim-client.js';
import { SimCluster } from './sim-cluster.js';
import { World } from './world.js';

const SECOND_US = 1_000_000;

for (const whose of ['leader', 'follower'] as const) {
  t.test(`a ${whose} whose disk hangs for 15 s is given no more than its queue holds`, (t) => {
    const world = new World(21);
    const cluster = new SimCluster(world);
    world.run(5 * SECOND_US, () => cluster.serving() !== undefined);
    const leader = cluster.serving();
    if (leader === undefined) throw new Error('nobody serves');
    const victim =
      whose === 'leader' ? leader : (cluster.nodes.find((node) => node !== leader) ?? leader);
    const client = new SimClient(cluster, 1);
    client.connect(leader);
    victim.disk.isHeld = true;
    let sent = 0;
    const load = (): void => {
      sent += 1;
      client.send([36, `load-${sent}`, null, null, null, `lock-${sent}`, 60_000]);
      if (world.nowUs < 20 * SECOND_US) world.after(2_000, load);
    };
    load();
    world.run(16 * SECOND_US);
    victim.disk.isHeld = false;
    world.run(30 * SECOND_US);
    t.same(cluster.network.problems, [], 'every append is one that a follower takes');
    const digests = new Set(cluster.nodes.map((node) => node.replica?.status().digest));
    t.equal(digests.size, 1, 'all nodes agree once the disk answers');
    const answered = [...client.replies.values()].filter((replies) => replies[0]?.[1] === 0);
    t.ok(answered.length > 500, `${answered.length} of ${sent} were granted`);
    t.end();
  });
}

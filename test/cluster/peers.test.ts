/** The other lock services of the comparison, where they are installed: driven, checked, ended. */
import t from 'tap';
import { Etcd } from '../../loadtest/peers/etcd.js';
import { type Peer, Tally } from '../../loadtest/peers/peer.js';
import { Redlock } from '../../loadtest/peers/redlock.js';
import { ZooKeeper } from '../../loadtest/peers/zookeeper.js';
import { waitFor } from './wait-for.js';

const OPERATIONS = 60;

for (const peer of [new Etcd(), new ZooKeeper(), new Redlock()] satisfies Peer[]) {
  const version = peer.version();
  const skip = version === null ? `SKIPPED: ${peer.name} is not installed here` : false;
  t.test(
    `${peer.name}: acquires and releases are answered, and all are good`,
    { skip },
    async (t) => {
      t.teardown(() => peer.stop());
      await peer.start();
      for (const inflight of [1, 7]) {
        const tally = new Tally();
        tally.isRecording = true;
        peer.drive(inflight, tally);
        await waitFor(`${OPERATIONS} operations`, () => tally.ops >= OPERATIONS, 60_000);
        await peer.stopDriving();
        t.equal(tally.errors, 0, `${tally.ops} operations with ${inflight} in flight`);
      }
    },
  );
}

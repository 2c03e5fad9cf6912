/**
 * Thesis §4.2.1: a learner gets the log and decides nothing.
 */
import t from 'tap';
import { Role } from '../../src/core/raft/effects.js';
import { MessageKind } from '../../src/core/raft/message.js';
import { ELECTION_TICKS_MAX, ELECTION_TICKS_MIN } from '../../src/limits.js';
import { Cluster } from './cluster.js';
import { raftWith, take } from './single.js';

t.test('§4.2.1: a learner gets the log and the commit index', (t) => {
  const cluster = new Cluster({ voters: 3, learners: 1 });
  cluster.elect(1);
  cluster.propose(1, 'a');
  cluster.run(10);
  t.equal(cluster.logText(4), '1:noop 1:a');
  t.equal(cluster.raft(4).commitIndex, 2);
  t.end();
});

t.test('§4.2.1: its acknowledgement does not count', (t) => {
  const cluster = new Cluster({ voters: 3, learners: 2 });
  cluster.elect(1);
  for (const id of [2, 3]) cluster.isolate(id);
  cluster.propose(1, 'a');
  cluster.run(10);
  t.equal(cluster.logText(4), '1:noop 1:a');
  t.equal(cluster.logText(5), '1:noop 1:a');
  t.equal(cluster.raft(1).commitIndex, 1);
  t.end();
});

t.test('§4.2.1: it never campaigns, and nobody asks for its vote', (t) => {
  const learner = raftWith({ id: 4, learners: [4] });
  for (let i = 0; i < 10 * ELECTION_TICKS_MAX; i += 1) learner.tick();
  t.equal(learner.role, Role.Follower);
  t.strictSame(take(learner).now, []);
  const cluster = new Cluster({ voters: 3, learners: 1 });
  cluster.campaign(1);
  t.notOk(cluster.inFlight.some(({ to }) => to === 4));
  cluster.crash(2);
  cluster.crash(3);
  cluster.run(3 * ELECTION_TICKS_MAX);
  t.equal(cluster.leaderId(), 0);
  t.end();
});

t.test('§4.2.1: a learner asks for reads like a follower', (t) => {
  const cluster = new Cluster({ voters: 3, learners: 1 });
  cluster.elect(1);
  cluster.run(10);
  const context = cluster.read(4);
  cluster.stabilize();
  t.strictSame(cluster.node(4).readStates, [{ context, index: 1 }]);
  t.end();
});

t.test('§4.1: a member put in force as voter counts from then on', (t) => {
  const cluster = new Cluster({ voters: 3, learners: 1 });
  cluster.elect(1);
  cluster.propose(1, 'a');
  cluster.run(10);
  t.equal(cluster.change(1, [1, 2, 3, 4]), 3);
  cluster.run(10);
  for (const id of [2, 3]) cluster.isolate(id);
  const index = cluster.propose(1, 'b');
  cluster.run(5);
  t.ok(cluster.raft(1).commitIndex < index, 'two of four');
  cluster.heal();
  cluster.run(10);
  t.equal(cluster.raft(1).commitIndex, index);
  t.end();
});

t.test('§4.1: a member that left is neither sent to nor counted', (t) => {
  const cluster = new Cluster({ voters: 2 });
  cluster.elect(1);
  cluster.isolate(2);
  const index = cluster.propose(1, 'b');
  cluster.stabilize();
  t.ok(cluster.raft(1).commitIndex < index);
  t.equal(cluster.change(1, [1]), index + 1);
  cluster.stabilize();
  t.equal(cluster.raft(1).commitIndex, index + 1, 'the majority of one');
  cluster.tick(1, ELECTION_TICKS_MIN * 3);
  t.equal(cluster.raft(1).role, Role.Leader);
  t.notOk(cluster.inFlight.some(({ from, kind }) => from === 1 && kind === MessageKind.Heartbeat));
  t.end();
});

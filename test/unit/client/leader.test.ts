import t from 'tap';
import { IN_FLIGHT_MAX, LIVENESS_SILENCE_MS } from '../../../src/client/bounds.js';
import { connectWith } from '../../../src/client/connect.js';
import { CommandKind } from '../../../src/core/locks/command.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { FakeClock, settle } from './fake-clock.js';
import { FakeCluster, openWires, refusal } from './fake-cluster.js';
import { advanced, connected, connectedTo, rejected, watchRejections } from './ground.js';

const unhandled = watchRejections();

t.test('the leader is found wherever the search starts', async (t) => {
  for (const leaderId of [1, 2, 3, 4, 5]) {
    const clock = new FakeClock();
    const cluster = new FakeCluster(clock, 5);
    cluster.leaderId = leaderId;
    const client = await connectedTo(clock, cluster);
    const lease = await advanced(clock, client.acquire('a'));
    t.equal(lease.state, 'held');
    const wires = openWires(cluster).map((wire) => wire.address);
    t.same(wires, [cluster.address(leaderId)], 'and only its connection stays');
    await advanced(clock, client.close());
  }
});

t.test('one known node is enough: the others are learnt from it', async (t) => {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock, 5);
  cluster.leaderId = 4;
  const ground = { clock, dial: cluster.network.dial };
  const connecting = connectWith({ endpoints: [cluster.address(2)] }, ground);
  const client = await advanced(clock, connecting);
  cluster.elect(5, true);
  cluster.network.down.add(cluster.address(2));
  await advanced(clock, client.acquire('a'));
  t.equal(cluster.live.length, 1);
  await advanced(clock, client.close());
});

t.test(
  'nodes that refuse, hang or do not lead do not keep the leader from being found',
  async (t) => {
    const clock = new FakeClock();
    const cluster = new FakeCluster(clock, 5);
    cluster.leaderId = 5;
    cluster.network.down.add(cluster.address(1));
    cluster.network.blackHole(cluster.address(2));
    cluster.network.blackHole(cluster.address(3));
    const startMs = clock.nowMs();
    const client = await connectedTo(clock, cluster);
    t.ok(clock.nowMs() - startMs <= 400, 'a hung node costs a stagger, not its time-out');
    await advanced(clock, client.close());
  },
);

t.test('connect fails with the reason when nobody leads', async (t) => {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  cluster.leaderId = 0;
  const ground = { clock, dial: cluster.network.dial };
  const connecting = connectWith({ endpoints: cluster.endpoints, deadlineMs: 700 }, ground);
  const error = await rejected(advanced(clock, connecting), 'NO_QUORUM');
  t.equal(error.outcome, 'none');
  t.match(error.message, /does not lead/);
  t.equal(clock.timers, 0);
  t.same(openWires(cluster), []);
});

t.test('connect refuses addresses that are none', async (t) => {
  const clock = new FakeClock();
  const ground = { clock, dial: new FakeCluster(clock).network.dial };
  const wrong = [[], ['localhost'], ['a:0'], ['a:65536'], ['a b:1'], ['::1:7401'], ['http://a:1']];
  for (const endpoints of wrong) {
    const error = await rejected(connectWith({ endpoints }, ground), 'BAD_REQUEST');
    t.equal(error.details.field, 'endpoints');
  }
});

t.test('a node of another cluster is not followed', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.clusterId = new Uint8Array(16).fill(9);
  cluster.network.reset(cluster.address(1));
  await settle();
  const error = await rejected(advanced(clock, client.get('a')), 'BAD_REQUEST');
  t.match(error.message, /is of cluster 0909/);
  await advanced(clock, client.close());
});

t.test('a client that every node refuses hears why at once', async (t) => {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock);
  cluster.interfere = ({ command }) =>
    command === CommandKind.Hello ? { reply: refusal(ErrorCode.Unauthenticated) } : undefined;
  const startMs = clock.nowMs();
  const ground = { clock, dial: cluster.network.dial };
  const connecting = connectWith({ endpoints: cluster.endpoints }, ground);
  await rejected(advanced(clock, connecting), 'UNAUTHENTICATED');
  t.ok(clock.nowMs() - startMs < 1_000);
});

t.test('all requests of one turn are one frame and one write', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.acquire('warm'));
  const [wire] = openWires(cluster);
  if (wire === undefined) throw new Error('no connection');
  const { frames, writes } = wire;
  const acquires = Array.from({ length: 500 }, (_, index) => client.acquire(`lock/${index}`));
  await advanced(clock, Promise.all(acquires));
  t.equal(wire.frames - frames, 1);
  t.equal(wire.writes - writes, 1);
  t.equal(cluster.live.length, 501);
  await advanced(clock, client.close());
});

t.test('replies in any order find their callers', async (t) => {
  const { clock, cluster, client } = await connected();
  let delayMs = 300;
  cluster.interfere = ({ command }) => {
    if (command !== CommandKind.Get) return undefined;
    delayMs -= 10;
    return { delayMs };
  };
  const names = Array.from({ length: 20 }, (_, index) => `name/${index}`);
  const views = await advanced(clock, Promise.all(names.map((name) => client.get(name))));
  t.same(
    views.map((view) => view.name),
    names,
  );
  await advanced(clock, client.close());
});

t.test('requests past the in-flight bound wait in the client and are all answered', async (t) => {
  const { clock, cluster, client } = await connected();
  let most = 0;
  let unanswered = 0;
  cluster.interfere = ({ command }) => {
    if (command !== CommandKind.Get) return undefined;
    unanswered += 1;
    most = Math.max(most, unanswered);
    setImmediate(() => {
      unanswered -= 1;
    });
    return { delayMs: 5 };
  };
  const gets = Array.from({ length: IN_FLIGHT_MAX + 500 }, (_, index) => client.get(`n/${index}`));
  const views = await advanced(clock, Promise.all(gets));
  t.equal(views.length, IN_FLIGHT_MAX + 500);
  t.ok(most <= IN_FLIGHT_MAX, `${most} at once`);
  await advanced(clock, client.close());
});

t.test('NOT_LEADER is followed to the leader it names, under the same request id', async (t) => {
  const { clock, cluster, client } = await connected(5);
  await advanced(clock, client.acquire('warm'));
  cluster.elect(4, false);
  const startMs = clock.nowMs();
  const lease = await advanced(clock, client.acquire('a'));
  t.equal(lease.state, 'held');
  t.ok(clock.nowMs() - startMs <= 10, 'at once, without a back-off');
  const sent = cluster.seen(CommandKind.Acquire).filter(({ elements }) => elements[5] === 'a');
  t.equal(sent.length, 2);
  t.equal(sent[0]?.elements[1], sent[1]?.elements[1]);
  t.equal(sent[1]?.wire.address, cluster.address(4));
  t.equal(client.counters.retries, 0, 'a change of leader is not charged to the retry budget');
  await advanced(clock, client.close());
});

t.test('nodes that point at each other are not chased in a circle', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.interfere = ({ command, wire }) => {
    if (command < CommandKind.SessionOpen) return undefined;
    const other = wire.address === cluster.address(1) ? 2 : 1;
    return { reply: refusal(ErrorCode.NotLeader, [other, cluster.address(other)]) };
  };
  const dialled = cluster.network.dials.length;
  await rejected(advanced(clock, client.acquire('a', { session: null })), 'DEADLINE_PASSED');
  t.ok(cluster.network.dials.length - dialled < 100, `${cluster.network.dials.length} dials`);
  await advanced(clock, client.close());
});

t.test(
  'requests on a lost connection are sent again by the same id, with one effect',
  async (t) => {
    const { clock, cluster, client } = await connected();
    await advanced(clock, client.acquire('warm'));
    let isLost = false;
    cluster.interfere = ({ command }) => {
      if (command !== CommandKind.Acquire || isLost) return undefined;
      isLost = true;
      return 'reset-after';
    };
    const [one, other] = await advanced(
      clock,
      Promise.all([client.acquire('a'), client.acquire('b', { session: null })]),
    );
    t.equal(one.state, 'held');
    t.equal(other.state, 'held');
    t.equal(cluster.live.length, 3, 'no request had two effects');
    const ids = new Set(cluster.seen(CommandKind.Acquire).map(({ elements }) => elements[1]));
    t.ok(client.counters.resends >= 2);
    t.ok(ids.size >= 2);
    await advanced(clock, client.close());
  },
);

t.test('a thousand requests survive the death of the leader, with one effect each', async (t) => {
  const { clock, cluster, client } = await connected(5);
  cluster.commitMs = 20;
  await advanced(clock, client.acquire('warm'));
  const acquires = Array.from({ length: 1_000 }, (_, index) => client.acquire(`lock/${index}`));
  await clock.advance(10);
  cluster.elect(0, false);
  cluster.network.down.add(cluster.address(1));
  cluster.network.reset(cluster.address(1));
  await clock.advance(700);
  cluster.leaderId = 3;
  const leases = await advanced(clock, Promise.all(acquires));
  t.equal(leases.filter((lease) => lease.state === 'held').length, 1_000);
  t.equal(cluster.live.length, 1_001);
  t.equal(client.counters.retriesRefused, 0);
  await advanced(clock, client.close());
});

t.test('a leader without a majority is asked whether it serves before work is sent', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.isServing = false;
  const acquiring = client.acquire('a', { session: null });
  await clock.advance(3_000);
  const sent = cluster.seen(CommandKind.Acquire).length;
  t.ok(sent <= 2, `${sent} attempts while it did not serve`);
  cluster.isServing = true;
  const lease = await advanced(clock, acquiring);
  t.equal(lease.state, 'held');
  await advanced(clock, client.close());
});

t.test(
  'without a majority every call ends by its deadline, NO_QUORUM, without effect',
  async (t) => {
    const { clock, cluster, client } = await connected();
    cluster.isServing = false;
    const startMs = clock.nowMs();
    const acquiring = client.acquire('a', { session: null, deadlineMs: 2_000 });
    const error = await rejected(advanced(clock, acquiring), 'NO_QUORUM');
    t.equal(error.outcome, 'none');
    t.equal(error.retryable, true);
    t.ok(clock.nowMs() - startMs <= 2_010);
    await advanced(clock, client.close());
  },
);

t.test('retries after a refusal stay within a tenth of the requests', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.interfere = ({ command }) =>
    command === CommandKind.Get ? { reply: refusal(ErrorCode.Overloaded, [], 1) } : undefined;
  const gets = Array.from({ length: 2_000 }, (_, index) => client.get(`n/${index}`));
  const results = await advanced(clock, Promise.allSettled(gets));
  t.equal(results.filter(({ status }) => status === 'rejected').length, 2_000);
  const { retries } = client.counters;
  t.ok(retries <= 2_000 / 10 + 40, `${retries} retries for 2,000 requests`);
  t.ok(client.counters.retriesRefused > 1_000);
  await advanced(clock, client.close());
});

t.test('an overloaded node is asked again, not before its retry time', async (t) => {
  const { clock, cluster, client } = await connected();
  let refused = 0;
  const times: number[] = [];
  cluster.interfere = ({ command }) => {
    if (command !== CommandKind.Get) return undefined;
    times.push(clock.nowMs());
    refused += 1;
    return refused <= 3 ? { reply: refusal(ErrorCode.Overloaded, [], 50) } : undefined;
  };
  await advanced(clock, client.get('a'));
  t.equal(times.length, 4);
  for (let at = 1; at < times.length; at += 1) t.ok((times[at] ?? 0) - (times[at - 1] ?? 0) >= 50);
  await advanced(clock, client.close());
});

t.test('a retry that would come after the deadline is not made', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.interfere = ({ command }) =>
    command === CommandKind.Get ? { reply: refusal(ErrorCode.Overloaded, [], 5_000) } : undefined;
  const startMs = clock.nowMs();
  const error = await rejected(
    advanced(clock, client.get('a', { deadlineMs: 4_000 })),
    'OVERLOADED',
  );
  t.equal(error.retryAfterMs, 5_000);
  t.ok(clock.nowMs() - startMs < 100);
  await advanced(clock, client.close());
});

t.test('a silent connection is pinged, given up, and its requests go elsewhere', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.get('warm'));
  cluster.network.blackHole(cluster.address(1));
  const startMs = clock.nowMs();
  const getting = client.get('a');
  await settle();
  cluster.leaderId = 2;
  const view = await advanced(clock, getting);
  t.equal(view.name, 'a');
  t.ok(clock.nowMs() - startMs <= LIVENESS_SILENCE_MS + 2_500);
  t.equal(client.counters.connectionsSilent, 1);
  await advanced(clock, client.close());
});

t.test('an idle connection is not disturbed', async (t) => {
  const { clock, cluster, client } = await connected();
  const before = cluster.requests.length;
  await clock.advance(60_000);
  t.equal(cluster.requests.length, before);
  t.equal(client.counters.connectionsLost, 0);
  await advanced(clock, client.close());
});

t.test('a node that shuts down is left for the next leader', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.interfere = ({ command, wire }) => {
    if (wire.address !== cluster.address(1) || command === CommandKind.Hello) return undefined;
    cluster.leaderId = 2;
    return { reply: refusal(ErrorCode.ShuttingDown) };
  };
  const view = await advanced(clock, client.get('a'));
  t.equal(view.name, 'a');
  await advanced(clock, client.close());
});

t.test('reads are answered by a follower while nobody leads', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.elect(0, false);
  cluster.network.down.add(cluster.address(1));
  cluster.network.reset(cluster.address(1));
  await clock.advance(1_000);
  const seeking = rejected(client.acquire('x', { deadlineMs: 1_500 }), 'NO_QUORUM');
  await clock.advance(500);
  const view = await advanced(clock, client.get('a', { deadlineMs: 900 }));
  t.equal(view.name, 'a');
  await advanced(clock, seeking);
  await advanced(clock, client.close());
});

t.test(
  'every command fails by its deadline when replies are lost, unknown if it was logged',
  async (t) => {
    const { clock, cluster, client } = await connected();
    const lease = await advanced(clock, client.acquire('held'));
    cluster.interfere = () => 'lose-reply';
    const options = { deadlineMs: 300 };
    const startMs = clock.nowMs();
    const calls: [string, Promise<unknown>][] = [
      ['UNKNOWN_OUTCOME', client.acquire('a', options)],
      ['UNKNOWN_OUTCOME', client.acquire('b', { ...options, session: null })],
      ['UNKNOWN_OUTCOME', client.openSession(options)],
      ['UNKNOWN_OUTCOME', lease.renew(options)],
      ['DEADLINE_PASSED', client.get('a', options)],
      ['DEADLINE_PASSED', client.lookup('id', options)],
      ['DEADLINE_PASSED', client.check('a', 7, options)],
      ['DEADLINE_PASSED', client.status(options)],
      ['DEADLINE_PASSED', client.members(options)],
      ['DEADLINE_PASSED', client.ping(options)],
      ['UNKNOWN_OUTCOME', lease.release(300)],
    ];
    const errors = await advanced(
      clock,
      Promise.all(calls.map(([code, call]) => rejected(call, code))),
    );
    t.ok(clock.nowMs() - startMs <= 310);
    for (const error of errors) {
      t.equal(error.outcome, error.code === 'UNKNOWN_OUTCOME' ? 'unknown' : 'none');
    }
    cluster.interfere = () => undefined;
    await advanced(clock, client.close());
  },
);

t.test('a reply that is broken closes the connection and harms nobody else', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.interfere = ({ command, wire }) => {
    if (command !== CommandKind.Get) return undefined;
    cluster.interfere = () => undefined;
    wire.send(new Uint8Array([0, 0, 0, 2, 0x91, 0x09]));
    return 'lose-request';
  };
  const view = await advanced(clock, client.get('a'));
  t.equal(view.name, 'a');
  t.equal(client.counters.badFrames, 1);
  await advanced(clock, client.close());
});

t.test('a reply with fields of another type fails its call alone', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.interfere = ({ command }) =>
    command === CommandKind.Get ? { reply: cluster.ok(['no', 'fields']) } : undefined;
  const error = await rejected(advanced(clock, client.get('a')), 'BAD_REQUEST');
  t.equal(error.details.field, 'reply');
  await advanced(clock, client.ping());
  await advanced(clock, client.close());
});

t.test('a late reply to a call that was given up is counted and dropped', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.interfere = ({ command }) => (command === CommandKind.Get ? { delayMs: 500 } : undefined);
  await rejected(advanced(clock, client.get('a', { deadlineMs: 100 })), 'DEADLINE_PASSED');
  await clock.advance(1_000);
  t.equal(client.counters.lateReplies, 1);
  await advanced(clock, client.close());
});

t.test('no rejection went unhandled', (t) => {
  t.same(unhandled, []);
  t.end();
});

/**
 * Explain, table by table: a situation is prepared on a simulated cluster, and a node that does
 * not lead must name its cause. The holder's side (a lease, a request) is asked as the holder.
 */
import t from 'tap';
import type { Json } from '../../../src/wire/event-json.js';
import { EXPLAIN_CAUSES, type ExplainCause, explanationOf } from '../../../src/wire/explain.js';
import type { Reply } from '../../../src/wire/response.js';
import { SimClient } from '../../sim/sim-client.js';
import { SimCluster, type SimNode } from '../../sim/sim-cluster.js';
import { World } from '../../sim/world.js';

const US_PER_MS = 1_000;
const SECOND_US = 1_000_000;
const LOCK = 'jobs/a';
const [OPEN, CLOSE, ACQUIRE, RELEASE, CANCEL] = [32, 34, 36, 38, 39];
const [FORCE, DISABLE, ENABLE, EXPIRE] = [42, 43, 44, 45];
const EXPLAIN = 16;
const STRANGER = new Uint8Array(16).fill(0xee);

class Ground {
  readonly world = new World(61);
  readonly cluster = new SimCluster(this.world, {
    settings: { leaseTtlMsLeast: 50, sessionTtlMsLeast: 50, endedLeasesMax: 1_000 },
  });
  readonly actor = new SimClient(this.cluster, 1);
  readonly reader = new SimClient(this.cluster, 2);
  private requests = 0;

  constructor() {
    this.world.run(10 * SECOND_US, () => this.cluster.serving() !== undefined);
    const leader = this.cluster.serving() as SimNode;
    this.actor.connect(leader);
    this.reader.connect(this.cluster.nodes.find((node) => node !== leader) as SimNode);
    this.wait(100);
  }

  wait(ms: number): void {
    this.world.run(this.world.nowUs + ms * US_PER_MS);
  }

  ask(operation: readonly unknown[], ms = 150): readonly unknown[] {
    const correlation = this.actor.send(operation as never);
    this.wait(ms);
    return this.actor.replyTo(correlation) ?? [];
  }

  /** Returns the lease id. */
  acquire(
    id: string,
    ttlMs = 60_000,
    waitMs = 0,
    name = LOCK,
    session: unknown = null,
  ): Uint8Array {
    const request = [ACQUIRE, id, session, null, null, name, ttlMs, waitMs];
    return this.ask(request)[4] as Uint8Array;
  }

  release(lease: Uint8Array): void {
    this.ask([RELEASE, null, null, null, null, lease]);
  }

  /** An operator's command: `fields` between the head and who asks. */
  order(command: number, ...fields: unknown[]): readonly unknown[] {
    this.requests += 1;
    const said = ['ops@bastion', 'ticket 812'];
    return this.ask([command, `order-${this.requests}`, null, null, null, ...fields, ...said]);
  }

  /** Returns the session id. */
  open(ttlMs = 60_000): Uint8Array {
    this.requests += 1;
    return this.ask([OPEN, `open-${this.requests}`, null, null, null, ttlMs])[4] as Uint8Array;
  }

  explain(fields: readonly unknown[] = [], name = LOCK): Json {
    const correlation = this.reader.send([EXPLAIN, name, ...fields] as never);
    this.wait(100);
    const [, code, time, , ...rest] = this.reader.replyTo(correlation) ?? [];
    if (code !== 0) throw new Error(`explain was answered ${code}`);
    return explanationOf({ fields: rest, clusterTimeMs: Number(time) } as unknown as Reply, name);
  }
}

/** What the situation is, what is asked beside the lock, and the cause that must be named. */
interface Situation {
  readonly cause: ExplainCause;
  /** Prepares it; gives the fields session, request, lease. */
  readonly prepare: (ground: Ground) => readonly unknown[];
  /** Found in what is said, or in what would free it. */
  readonly says?: RegExp;
}

const SITUATIONS: readonly (readonly [string, Situation])[] = [
  ['a name that was never used', { cause: 'never_used', prepare: () => [], says: /is free/ }],
  [
    'held by somebody',
    {
      cause: 'held',
      prepare: (g) => {
        g.acquire('r');
        return [];
      },
      says: /ends in \d+\.\d s unless it is renewed/,
    },
  ],
  [
    'held by somebody, with two who wait',
    {
      cause: 'held',
      prepare: (g) => {
        g.acquire('r');
        g.acquire('w1', 60_000, 30_000);
        g.acquire('w2', 60_000, 30_000);
        return [];
      },
      says: /2 in line, the first at place \d+/,
    },
  ],
  [
    'held in a session',
    {
      cause: 'held_in_session',
      prepare: (g) => {
        const session = g.open();
        g.acquire(1 as never, 60_000, 0, LOCK, session);
        return [];
      },
      says: /end of the session/,
    },
  ],
  [
    'released by its holder',
    {
      cause: 'free_released',
      prepare: (g) => {
        g.release(g.acquire('r'));
        return [];
      },
      says: /Last event: ended \(released\)/,
    },
  ],
  [
    'its lease ran out',
    {
      cause: 'free_expired',
      prepare: (g) => {
        g.acquire('r', 100);
        g.wait(1_000);
        return [];
      },
    },
  ],
  [
    'the session of its holder ran out',
    {
      cause: 'free_session_expired',
      prepare: (g) => {
        const session = g.open(400);
        g.acquire(1 as never, 60_000, 0, LOCK, session);
        g.wait(1_500);
        return [];
      },
    },
  ],
  [
    'the session of its holder was closed',
    {
      cause: 'free_session_closed',
      prepare: (g) => {
        const session = g.open();
        g.acquire(1 as never, 60_000, 0, LOCK, session);
        g.ask([CLOSE, null, session]);
        return [];
      },
    },
  ],
  [
    'its release was forced',
    {
      cause: 'free_forced',
      prepare: (g) => {
        g.acquire('r');
        g.order(FORCE, LOCK, null, 1);
        return [];
      },
      says: /by force with revision 2, by ops@bastion \(principal 1, force_release\): ticket 812/,
    },
  ],
  [
    'its release was forced, and the next in line has it',
    {
      cause: 'held',
      prepare: (g) => {
        g.acquire('r');
        g.acquire('w1', 60_000, 30_000);
        g.order(FORCE, LOCK, null, null);
        return [];
      },
      says: /held for .* with token 4[\s\S]*by force with revision 3, by ops@bastion/i,
    },
  ],
  [
    'its release was forced, and it was released by the next one since',
    {
      cause: 'free_released',
      prepare: (g) => {
        g.acquire('r');
        g.order(FORCE, LOCK, null, null);
        g.release(g.acquire('r2'));
        return [];
      },
      says: /^(?!.*by force)/,
    },
  ],
  [
    'a lease of mine that an operator ended, held by somebody else now',
    {
      cause: 'lost_forced',
      prepare: (g) => {
        const lease = g.acquire('r');
        g.order(FORCE, LOCK, lease, null);
        g.release(g.acquire('r2'));
        g.acquire('r3');
        return [null, null, lease];
      },
      says: /your lease ended with revision 2[\s\S]*by ops@bastion .*: ticket 812/i,
    },
  ],
  [
    'the session of its holder was ended by an operator',
    {
      cause: 'free_forced',
      prepare: (g) => {
        const session = g.open();
        g.acquire(1 as never, 60_000, 0, LOCK, session);
        g.order(EXPIRE, session);
        return [];
      },
      says: /by force with revision 2, by ops@bastion \(principal 1, expire_session\): ticket 812/,
    },
  ],
  [
    'my place went with my session when an operator ended it',
    {
      cause: 'wait_abandoned',
      prepare: (g) => {
        g.acquire('r');
        const session = g.open();
        g.acquire(1 as never, 60_000, 30_000, LOCK, session);
        g.order(EXPIRE, session);
        return [session, 1];
      },
      says: /answered SESSION_EXPIRED/,
    },
  ],
  [
    'disabled by its name',
    {
      cause: 'disabled',
      prepare: (g) => {
        g.order(DISABLE, LOCK, null);
        return [];
      },
      says: /This lock was disabled with revision 1, .* by ops@bastion \(principal 1\): ticket 812/,
    },
  ],
  [
    'disabled by a prefix, and freed by force',
    {
      cause: 'disabled',
      prepare: (g) => {
        g.acquire('r');
        g.order(DISABLE, null, 'jobs/');
        g.order(FORCE, LOCK, null, 1);
        return [];
      },
      says: /lock under "jobs\/" was disabled[\s\S]*by force[\s\S]*enable --prefix "jobs\/"/,
    },
  ],
  [
    'disabled whole, and held: the holder stays',
    {
      cause: 'held',
      prepare: (g) => {
        g.acquire('r');
        g.order(DISABLE, null, '');
        return [];
      },
      says: /Every lock was disabled[\s\S]*no acquire is taken until every lock is enabled/,
    },
  ],
  [
    'my request came while it was disabled',
    {
      cause: 'refused_disabled',
      prepare: (g) => {
        g.order(DISABLE, null, 'jobs/');
        g.acquire('mine');
        return [null, 'mine'];
      },
      says: /answered DISABLED[\s\S]*"jobs\/" was disabled with revision 1, .* by ops@bastion/,
    },
  ],
  [
    'my request came while it was disabled, which it is no longer',
    {
      cause: 'refused_disabled',
      prepare: (g) => {
        g.order(DISABLE, LOCK, null);
        g.acquire('mine');
        g.order(ENABLE, LOCK, null);
        return [null, 'mine'];
      },
      says: /of revision 1 is not there any more: holdfast audit --from 1 --count 1\..*granted at/,
    },
  ],
  [
    'my own lease, live',
    { cause: 'yours', prepare: (g) => [null, null, g.acquire('r')], says: /your release/ },
  ],
  [
    'my own lease of another lock',
    {
      cause: 'yours_elsewhere',
      prepare: (g) => [null, null, g.acquire('r', 60_000, 0, 'jobs/b')],
      says: /lease of jobs\/b/,
    },
  ],
  [
    'a lease that I released, held by somebody else now',
    {
      cause: 'lost_released',
      prepare: (g) => {
        const lease = g.acquire('r');
        g.release(lease);
        g.acquire('next');
        return [null, null, lease];
      },
      says: /ended with revision 2/,
    },
  ],
  [
    'a lease of mine that ran out',
    {
      cause: 'lost_expired',
      prepare: (g) => {
        const lease = g.acquire('r', 100);
        g.wait(1_000);
        return [null, null, lease];
      },
    },
  ],
  [
    'a lease that my session took with it when it ran out',
    {
      cause: 'lost_session_expired',
      prepare: (g) => {
        const lease = g.acquire(1 as never, 60_000, 0, LOCK, g.open(400));
        g.wait(1_500);
        return [null, null, lease];
      },
    },
  ],
  [
    'a lease that my session took with it when I closed it',
    {
      cause: 'lost_session_closed',
      prepare: (g) => {
        const session = g.open();
        const lease = g.acquire(1 as never, 60_000, 0, LOCK, session);
        g.ask([CLOSE, null, session]);
        return [null, null, lease];
      },
    },
  ],
  [
    'a lease id that was never issued',
    {
      cause: 'lease_unknown',
      prepare: (g) => {
        g.acquire('r');
        return [null, null, STRANGER];
      },
    },
  ],
  [
    'my request stands in line behind another',
    {
      cause: 'queued',
      prepare: (g) => {
        g.acquire('r');
        g.acquire('w1', 60_000, 30_000);
        g.acquire('mine', 60_000, 30_000);
        return [null, 'mine'];
      },
      says: /1 before you/,
    },
  ],
  [
    'my request was granted, and I hold it',
    {
      cause: 'yours',
      prepare: (g) => {
        g.acquire('mine');
        return [null, 'mine'];
      },
    },
  ],
  [
    'my request was granted, and its lease ran out',
    {
      cause: 'lost_expired',
      prepare: (g) => {
        g.acquire('mine', 100);
        g.wait(1_000);
        return [null, 'mine'];
      },
    },
  ],
  [
    'my request did not wait',
    {
      cause: 'refused_busy',
      prepare: (g) => {
        g.acquire('r');
        g.acquire('mine');
        return [null, 'mine'];
      },
      says: /answered LOCK_BUSY/,
    },
  ],
  [
    'my request waited as long as it may',
    {
      cause: 'timed_out',
      prepare: (g) => {
        g.acquire('r');
        g.acquire('mine', 60_000, 300);
        g.wait(1_000);
        return [null, 'mine'];
      },
    },
  ],
  [
    'my request was cancelled',
    {
      cause: 'cancelled',
      prepare: (g) => {
        g.acquire('r');
        g.acquire('mine', 60_000, 30_000);
        g.ask([CANCEL, 'c', null, null, null, 'mine']);
        return [null, 'mine'];
      },
    },
  ],
  [
    'my place lapsed with its connection',
    {
      cause: 'wait_abandoned',
      prepare: (g) => {
        g.acquire('r', 600_000);
        const quitter = new SimClient(g.cluster, 3);
        quitter.connect(g.cluster.serving() as SimNode);
        quitter.send([ACQUIRE, 'mine', null, null, null, LOCK, 60_000, 600_000]);
        g.wait(200);
        quitter.disconnect();
        g.wait(16_000);
        return [null, 'mine'];
      },
    },
  ],
  [
    'my request asked for what is not given',
    {
      cause: 'refused',
      prepare: (g) => {
        g.acquire('mine', 1);
        return [null, 'mine'];
      },
      says: /answered BAD_REQUEST/,
    },
  ],
  ['a request that nobody made', { cause: 'request_unknown', prepare: () => [null, 'never'] }],
  [
    'a request whose result I acknowledged',
    {
      cause: 'request_forgotten',
      prepare: (g) => {
        const session = g.open();
        g.acquire(1 as never, 60_000, 0, LOCK, session);
        g.ask([ACQUIRE, 2, session, [1], null, 'jobs/c', 60_000, 0]);
        return [session, 1];
      },
    },
  ],
  [
    'a request of a session that never was',
    { cause: 'request_session_gone', prepare: () => [STRANGER, 1] },
  ],
  [
    'a request that opened a session',
    {
      cause: 'not_an_acquire',
      prepare: (g) => {
        g.open();
        return [null, 'open-1'];
      },
    },
  ],
];

for (const [title, { cause, prepare, says }] of SITUATIONS) {
  t.test(`${title}: ${cause}`, async (t) => {
    const ground = new Ground();
    const explanation = ground.explain(prepare(ground));
    t.equal(explanation['cause'], cause, JSON.stringify(explanation, null, 1));
    const text = [...(explanation['says'] as string[]), explanation['frees']].join(' ');
    if (says !== undefined) t.match(text, says);
    t.notMatch(text, /undefined|NaN|null|\[object/);
    t.ok(text.length > 40 && /^[A-Z]/.test(text));
    t.notOk(JSON.stringify(explanation).includes('lease_id'), 'no lease id is shown');
    ground.cluster.close();
  });
}

t.test('the situations name most causes, and the rest cannot be brought about yet', async (t) => {
  const named = new Set(SITUATIONS.map(([, { cause }]) => cause));
  t.ok(SITUATIONS.length >= 20);
  const rest = Object.keys(EXPLAIN_CAUSES).filter((cause) => !named.has(cause as ExplainCause));
  // Take-overs come with a later release, a restore with a new cluster; overdue and handing_over
  // last for less than an entry; free: the events of the lock have left memory.
  t.same(rest.sort(), [
    'free',
    'free_taken_over',
    'grace',
    'handing_over',
    'lost_restored',
    'lost_taken_over',
    'overdue',
    'yours_overdue',
  ]);
});

/** Causes that need a moment which a test does not hit: from a reply as a node would give it. */
t.test('what lasts for less than an entry is named too', async (t) => {
  const row = (holder: unknown, waiters: number, queue: unknown[] = []) => {
    return [LOCK, 7, holder, waiters, 'required', queue];
  };
  const of = (fields: readonly unknown[]) => {
    const reply = { fields: [...fields, 9, 9], clusterTimeMs: 5_000 } as unknown as Reply;
    return explanationOf(reply, LOCK)['cause'];
  };
  const granted = [7, 1, LOCK, 7, 0, 0, 1, 1_000];
  t.equal(of([row(null, 0), [granted], null, null]), 'overdue');
  t.equal(of([row(null, 1, [[8, 1, 9_000, 1, null]]), [], null, null]), 'handing_over');
  const rest = [9, 9, null, [], 7_000];
  const grace = { fields: [null, [], null, null, ...rest], clusterTimeMs: 5_000 };
  t.match(explanationOf(grace as unknown as Reply, LOCK), {
    cause: 'grace',
    frees: /^cluster time 7000: /,
  });
  t.equal(of([row(null, 0), [], null, null]), 'free');
  t.equal(of([null, [[8, 2, LOCK, 7, 0, 5, 1, 2_000]], null, null]), 'free_forced');
  t.equal(of([null, [[8, 2, LOCK, 7, 0, 6, 1, 2_000]], null, null]), 'free_taken_over');
  t.equal(of([null, [], null, ['ended', null, 0, 0, 5, 8]]), 'lost_forced');
  t.equal(of([null, [], null, ['ended', null, 0, 0, 6, 8]]), 'lost_taken_over');
  t.equal(of([null, [], null, ['overdue', LOCK, 7, 4_000, 0, 0]]), 'yours_overdue');
  const forced = { fields: [null, [], null, ['ended', null, 0, 0, 5, 8], 9, 9], clusterTimeMs: 1 };
  const says = explanationOf(forced as unknown as Reply, LOCK)['says'] as string[];
  t.match(says.join(' '), /revision 8; who asked, and why: holdfast audit --from 8 --count 1/);
});

import fc from 'fast-check';
import t from 'tap';
import { type Acknowledgement, Sequences } from '../../../src/client/sequences.js';
import { ACKNOWLEDGED_SINGLES_MAX } from '../../../src/limits.js';

t.test('the mark rises over settled sequences only, in any order of settling', (t) => {
  const sequences = new Sequences();
  for (let count = 0; count < 5; count += 1) sequences.take();
  t.same(sequences.acknowledge(), { mark: 0, singles: [] });
  sequences.settle(3);
  sequences.settle(2);
  t.same(sequences.acknowledge(), { mark: 0, singles: [3, 2] });
  sequences.settle(1);
  t.same(sequences.acknowledge(), { mark: 3, singles: [] });
  sequences.settle(5);
  t.same(sequences.acknowledge(), { mark: 3, singles: [5] });
  sequences.settle(4);
  t.same(sequences.acknowledge(), { mark: 5, singles: [] });
  sequences.settle(4);
  t.equal(sequences.mark, 5, 'settling twice changes nothing');
  t.end();
});

t.test('a single is told again when the request that carried it was lost', (t) => {
  const sequences = new Sequences();
  sequences.take();
  sequences.take();
  sequences.settle(2);
  const first = sequences.acknowledge();
  t.same(first.singles, [2]);
  t.same(sequences.acknowledge().singles, [], 'not twice while one is under way');
  sequences.untold(first);
  const second = sequences.acknowledge();
  t.same(second.singles, [2]);
  sequences.told(second);
  t.same(sequences.acknowledge().singles, []);
  t.end();
});

t.test('a request never lists more singles than the wire takes, and all come in the end', (t) => {
  const sequences = new Sequences();
  for (let count = 0; count < 201; count += 1) sequences.take();
  for (let sequence = 2; sequence <= 201; sequence += 1) sequences.settle(sequence);
  const seen = new Set<number>();
  for (let request = 0; request < 4; request += 1) {
    const { singles } = sequences.acknowledge();
    t.ok(singles.length <= ACKNOWLEDGED_SINGLES_MAX);
    for (const single of singles) seen.add(single);
  }
  t.equal(seen.size, 200);
  t.end();
});

t.test('a wait in the queue does not use the window up', (t) => {
  const sequences = new Sequences(4);
  const wait = sequences.take();
  sequences.queued(wait);
  for (let round = 0; round < 100; round += 1) {
    t.ok(sequences.hasRoom, `round ${round}`);
    const sequence = sequences.take();
    sequences.told(sequences.acknowledge());
    sequences.settle(sequence);
  }
  t.equal(sequences.mark, 0, 'the mark stays below the pending wait');
  sequences.told(sequences.acknowledge());
  sequences.settle(wait);
  t.equal(sequences.mark, 101);
  t.end();
});

t.test('unanswered sequences fill the window', (t) => {
  const sequences = new Sequences(3);
  t.same([sequences.take(), sequences.take(), sequences.take()], [1, 2, 3]);
  t.notOk(sequences.hasRoom);
  sequences.settle(2);
  t.notOk(sequences.hasRoom, 'the floor of the cluster is still 0');
  sequences.settle(1);
  t.ok(sequences.hasRoom);
  t.end();
});

/** The table of one session as docs/SEMANTICS.md has it, for sequences alone. */
class Table {
  floor = 0;
  readonly entries = new Map<number, 'pending' | 'final' | 'acknowledged'>();

  constructor(readonly window: number) {}

  /** What the cluster would answer to a request, or what is wrong with it. */
  arrive(sequence: number, acknowledged: Acknowledgement): string {
    for (const [known, state] of this.entries) {
      const isNamed = known <= acknowledged.mark || acknowledged.singles.includes(known);
      if (isNamed && state === 'pending') return 'BAD_REQUEST acknowledged';
    }
    if (acknowledged.singles.some((single) => single > this.floor + this.window)) {
      return 'BAD_REQUEST acknowledged';
    }
    for (const known of [...this.entries.keys()]) {
      if (known <= acknowledged.mark) this.entries.delete(known);
    }
    this.floor = Math.max(this.floor, acknowledged.mark);
    for (const single of acknowledged.singles) {
      if (single > this.floor) this.entries.set(single, 'acknowledged');
      else this.entries.delete(single);
    }
    this.raise();
    const state = this.entries.get(sequence);
    if (state === 'acknowledged') return 'REQUEST_FORGOTTEN';
    if (state !== undefined) return state;
    if (sequence <= this.floor) return 'REQUEST_FORGOTTEN';
    if (sequence > this.floor + this.window) return 'LIMIT sequence';
    const finals = [...this.entries.values()].filter((entry) => entry === 'final').length;
    return finals >= this.window ? 'LIMIT sequence' : 'new';
  }

  enter(sequence: number, state: 'pending' | 'final'): void {
    this.entries.set(sequence, state);
    this.raise();
  }

  private raise(): void {
    while (this.entries.has(this.floor + 1)) {
      this.floor += 1;
      if (this.entries.get(this.floor) === 'acknowledged') this.entries.delete(this.floor);
    }
  }
}

interface Flight {
  readonly sequence: number;
  acknowledgement: Acknowledgement;
}

/** One session's client side and the cluster's table, driven step by step. */
class Bench {
  readonly sequences: Sequences;
  readonly table: Table;
  readonly flights: Flight[] = [];
  readonly queued: number[] = [];
  refusals = 0;

  constructor(window: number) {
    this.sequences = new Sequences(window);
    this.table = new Table(window);
  }

  start(): void {
    if (!this.sequences.hasRoom) return;
    const sequence = this.sequences.take();
    this.flights.push({ sequence, acknowledgement: this.sequences.acknowledge() });
  }

  /** The request is lost on its way and is sent again. */
  lose(flight: Flight): void {
    this.sequences.untold(flight.acknowledgement);
    flight.acknowledgement = this.sequences.acknowledge();
  }

  /** The request arrives; its answer is lost or arrives too. */
  arrive(flight: Flight, isQueued: boolean, isAnswerLost: boolean): void {
    const verdict = this.table.arrive(flight.sequence, flight.acknowledgement);
    if (verdict === 'LIMIT sequence') {
      this.refusals += 1;
      this.sequences.told(flight.acknowledgement);
      flight.acknowledgement = this.sequences.acknowledge();
      return;
    }
    if (!['new', 'final', 'pending'].includes(verdict)) {
      throw new Error(`${verdict} for ${flight.sequence} at floor ${this.table.floor}`);
    }
    if (verdict === 'new') this.table.enter(flight.sequence, isQueued ? 'pending' : 'final');
    if (isAnswerLost) {
      this.lose(flight);
      return;
    }
    this.flights.splice(this.flights.indexOf(flight), 1);
    this.sequences.told(flight.acknowledgement);
    if (this.table.entries.get(flight.sequence) === 'pending') {
      this.sequences.queued(flight.sequence);
      this.queued.push(flight.sequence);
    } else {
      this.sequences.settle(flight.sequence);
    }
  }

  grant(pick: number): void {
    const [granted] = this.queued.splice(pick % Math.max(1, this.queued.length), 1);
    if (granted === undefined) return;
    this.table.enter(granted, 'final');
    this.sequences.settle(granted);
  }

  do(action: string, pick: number): void {
    const flight = this.flights[pick % Math.max(1, this.flights.length)];
    if (action === 'start') this.start();
    else if (action === 'grant') this.grant(pick);
    else if (flight === undefined) return;
    else if (action === 'lose') this.lose(flight);
    else this.arrive(flight, action === 'queue', action === 'lose answer');
  }
}

function steps(...actions: string[]) {
  const step = fc.record({ action: fc.constantFrom(...actions), pick: fc.nat(1_000) });
  return fc.array(step, { minLength: 50, maxLength: 400 });
}

const windows = fc.integer({ min: 2, max: 12 });

t.test('without queues, no history of losses makes the cluster refuse a sequence', (t) => {
  const actions = steps('start', 'start', 'answer', 'answer', 'lose', 'lose answer');
  fc.assert(
    fc.property(windows, actions, (window, history) => {
      const bench = new Bench(window);
      for (const { action, pick } of history) bench.do(action, pick);
      return bench.refusals === 0 && bench.table.entries.size <= 2 * window;
    }),
    { numRuns: 300 },
  );
  t.end();
});

t.test('with queues, a burst of grants may fill the window, and it always drains', (t) => {
  const actions = steps('start', 'start', 'answer', 'queue', 'grant', 'lose', 'lose answer');
  fc.assert(
    fc.property(windows, actions, (window, history) => {
      const bench = new Bench(window);
      for (const { action, pick } of history) bench.do(action, pick);
      for (let round = 0; round < 1_000; round += 1) {
        for (const flight of [...bench.flights]) bench.arrive(flight, false, false);
        if (bench.flights.length === 0 && bench.queued.length === 0) break;
        bench.grant(0);
      }
      const last = bench.sequences.hasRoom ? bench.sequences.take() : -1;
      return bench.flights.length === 0 && bench.sequences.mark === last - 1;
    }),
    { numRuns: 300 },
  );
  t.end();
});

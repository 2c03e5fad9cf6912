/** Delivery of audit events: at least once, in order, dead letters, checkpoints that survive. */

import fs from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import { readCheckpoint, writeCheckpoint } from '../../../src/cli/audit/checkpoint.js';
import { addLetter, retryLetters } from '../../../src/cli/audit/dead-letters.js';
import { Delivery } from '../../../src/cli/audit/delivery.js';
import { metricsText, writeMetrics } from '../../../src/cli/audit/metrics-file.js';
import { type Delivered, FileSink, HttpSink, type Sink } from '../../../src/cli/audit/sinks.js';
import type { Json } from '../../../src/wire/event-json.js';

function event(revision: number): Json {
  return { id: `c-${revision}`, revision, name: `lock-${revision}` };
}

function events(from: number, to: number): Json[] {
  return Array.from({ length: to - from + 1 }, (_, at) => event(from + at));
}

function revisionsIn(file: string): number[] {
  const lines = fs.readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => Number((JSON.parse(line) as Json)['revision']));
}

/** A sink that does what `judge` says and remembers what it took. */
class ScriptedSink implements Sink {
  readonly taken: number[] = [];
  offers = 0;

  constructor(private readonly judge: (revisions: number[], offer: number) => Delivered) {}

  deliver(batch: readonly Json[]): Promise<Delivered> {
    this.offers += 1;
    const revisions = batch.map((each) => Number(each['revision']));
    const result = this.judge(revisions, this.offers);
    if (result === 'taken') this.taken.push(...revisions);
    return Promise.resolve(result);
  }
}

function deliveryTo(t: Test, sink: Sink, attemptsMax = 3) {
  const deadLetters = path.join(t.testdir({}), 'dead');
  const pauses: number[] = [];
  const notes: string[] = [];
  /** Whether the sink was away, and how many letters were dead, at each change. */
  const changes: (readonly [boolean, number])[] = [];
  const stop = new AbortController();
  const delivery: Delivery = new Delivery({
    sink,
    deadLetters,
    attemptsMax,
    signal: stop.signal,
    pause: (ms) => {
      pauses.push(ms);
      if (pauses.length > 50) stop.abort();
      return Promise.resolve();
    },
    note: (text) => notes.push(text),
    onChange: () => changes.push([delivery.isSinkAway, delivery.dead]),
  });
  return { delivery, deadLetters, pauses, notes, changes, stop };
}

t.test(
  'events that a sink refuses are found, tried again, and put aside; the others arrive',
  async (t) => {
    const bad = new Set([3, 7]);
    const sink = new ScriptedSink((revisions) =>
      revisions.some((revision) => bad.has(revision)) ? { refused: '422 no' } : 'taken',
    );
    const { delivery, deadLetters, pauses } = deliveryTo(t, sink, 4);
    t.equal(await delivery.deliver(events(1, 10)), true);
    t.same(sink.taken, [1, 2, 4, 5, 6, 8, 9, 10], 'in order, each once');
    const letters = fs.readFileSync(deadLetters, 'utf8').split('\n').filter(Boolean);
    t.same(
      letters.map((line) => JSON.parse(line)),
      [3, 7].map((revision) => ({ reason: '422 no', event: event(revision) })),
    );
    t.same([delivery.delivered, delivery.dead], [8, 2]);
    t.same(pauses, [100, 200, 400, 100, 200, 400], 'four attempts each');
    bad.clear();
    const left = await retryLetters(deadLetters, sink, new AbortController().signal);
    t.same(left, { delivered: 2, left: 0 });
    t.same(sink.taken.slice(-2), [3, 7]);
    t.same(fs.readdirSync(path.dirname(deadLetters)), [], 'no letter is left');
  },
);

/** A file of dead letters in a folder of its own. */
function lettersOf(t: Test, ...revisions: number[]): string {
  const file = path.join(t.testdir({}), 'dead');
  for (const revision of revisions) addLetter(file, { reason: 'x', event: event(revision) });
  return file;
}

function lettersIn(file: string): [string, number][] {
  const lines = fs.readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => {
    const { reason, event } = JSON.parse(line) as { reason: string; event: Json };
    return [reason, Number(event['revision'])];
  });
}

t.test('a dead letter that is refused again stays', async (t) => {
  const file = lettersOf(t, 5, 6, 7);
  const sink = new ScriptedSink(([revision]) => (revision === 6 ? { refused: '400' } : 'taken'));
  const result = await retryLetters(file, sink, new AbortController().signal);
  t.same(result, { delivered: 2, left: 1 });
  t.same(lettersIn(file), [['400', 6]]);
});

t.test('a letter that is put aside while others are retried is kept', async (t) => {
  const file = lettersOf(t, 5);
  const sink = new ScriptedSink(() => {
    addLetter(file, { reason: 'meanwhile', event: event(9) });
    return 'taken';
  });
  t.same(await retryLetters(file, sink, new AbortController().signal), { delivered: 1, left: 0 });
  t.same(lettersIn(file), [['meanwhile', 9]]);
});

t.test('a writer whose file is taken away under its hands writes again', (t) => {
  const file = lettersOf(t, 5);
  const { fsyncSync } = fs;
  t.teardown(() => {
    fs.fsyncSync = fsyncSync;
  });
  // A retry takes the file after it was opened, and has read it before the line is there.
  fs.fsyncSync = (handle) => {
    fs.fsyncSync = fsyncSync;
    fsyncSync(handle);
    fs.renameSync(file, `${file}.retry`);
  };
  addLetter(file, { reason: 'late', event: event(6) });
  t.same(lettersIn(file), [['late', 6]]);
  t.end();
});

t.test('letters of a retry that died are offered by the next one', async (t) => {
  const file = lettersOf(t, 5, 6);
  fs.renameSync(file, `${file}.retry`);
  addLetter(file, { reason: 'x', event: event(7) });
  fs.appendFileSync(file, '{"reason":"torn');
  const sink = new ScriptedSink(() => 'taken');
  t.same(await retryLetters(file, sink, new AbortController().signal), { delivered: 3, left: 0 });
  t.same(sink.taken, [7, 5, 6]);
  t.same(fs.readdirSync(path.dirname(file)), []);
});

t.test('a retry that is told to stop leaves its letters as they were', async (t) => {
  const file = lettersOf(t, 5, 6);
  const sink = new ScriptedSink(() => 'taken');
  t.same(await retryLetters(file, sink, AbortSignal.abort()), { delivered: 0, left: 2 });
  t.same(
    [sink.taken, lettersIn(file)],
    [
      [],
      [
        ['x', 5],
        ['x', 6],
      ],
    ],
  );
});

t.test('a file of something else is refused and stays', async (t) => {
  const file = path.join(t.testdir({}), 'dead');
  const sink = new ScriptedSink(() => 'taken');
  for (const text of ['hello\n', 'null\n', '{"reason":"x"}\n']) {
    fs.writeFileSync(file, text);
    const retried = retryLetters(file, sink, new AbortController().signal);
    await t.rejects(retried, { code: 'USAGE', message: /line 1 is no dead letter/ });
    t.equal(fs.readFileSync(file, 'utf8'), text);
  }
});

t.test('a letter reaches a file that has later events already', async (t) => {
  const dead = lettersOf(t, 3);
  const file = `${dead}.jsonl`;
  await new FileSink(file).deliver(events(4, 6));
  const retried = await retryLetters(dead, new FileSink(file, true), new AbortController().signal);
  t.same(retried, { delivered: 1, left: 0 });
  t.same(revisionsIn(file), [4, 5, 6, 3]);
  await new FileSink(file).deliver(events(5, 7));
  t.same(revisionsIn(file), [4, 5, 6, 3, 7], 'the consumer goes on where it was');
});

t.test(
  'a sink that cannot be reached is waited for, with growing pauses, never skipped',
  async (t) => {
    const sink = new ScriptedSink((_, offer) => (offer < 12 ? { unreachable: 'away' } : 'taken'));
    const { delivery, pauses, notes, deadLetters } = deliveryTo(t, sink);
    t.equal(await delivery.deliver(events(1, 3)), true);
    t.same(sink.taken, [1, 2, 3]);
    t.equal(pauses.length, 11);
    t.ok(pauses.every((ms, at) => ms <= 10_000 && ms >= (pauses[at - 1] ?? 0)));
    t.equal(notes.length, 1, 'said once');
    t.notOk(fs.existsSync(deadLetters));
    const never = deliveryTo(t, new ScriptedSink(() => ({ unreachable: 'away' })));
    t.equal(await never.delivery.deliver(events(1, 3)), false, 'told to stop: not delivered');
    t.equal(never.delivery.delivered, 0);
  },
);

t.test('a sink that is away and letters that are dead are told at once', async (t) => {
  const away = deliveryTo(
    t,
    new ScriptedSink((_, offer) => (offer < 3 ? { unreachable: 'away' } : 'taken')),
  );
  await away.delivery.deliver(events(1, 1));
  t.same(away.changes, [
    [true, 0],
    [true, 0],
  ]);
  t.equal(away.delivery.isSinkAway, false, 'it came back');
  const refusing = deliveryTo(t, new ScriptedSink(() => ({ refused: '400' })), 1);
  await refusing.delivery.deliver(events(1, 2));
  t.same(refusing.changes, [
    [false, 1],
    [false, 2],
  ]);
  const file = path.join(t.testdir({}), 'audit.prom');
  const figures = { delivered: 3, dead: 2, lag: 7, isSinkAway: true };
  writeMetrics(file, figures);
  t.equal(fs.readFileSync(file, 'utf8'), metricsText(figures));
  t.match(metricsText(figures), /^holdfast_audit_dead_letters_total 2$/m);
  t.match(metricsText(figures), /^holdfast_audit_sink_away 1$/m);
});

t.test('a file has each event once, whatever crashed when', async (t) => {
  const file = path.join(t.testdir({}), 'audit.jsonl');
  await new FileSink(file).deliver(events(1, 5));
  // The consumer died after the file and before the checkpoint; then in the middle of a line.
  fs.appendFileSync(file, '{"id":"c-6","revi');
  const sink = new FileSink(file);
  await sink.deliver(events(3, 8));
  t.same(revisionsIn(file), [1, 2, 3, 4, 5, 6, 7, 8]);
  await sink.deliver(events(7, 9));
  t.same(revisionsIn(file), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  fs.writeFileSync(file, '{"torn');
  await new FileSink(file).deliver(events(1, 1));
  t.same(revisionsIn(file), [1]);
});

t.test('a full disk is waited for, and leaves no torn line behind', async (t) => {
  const file = path.join(t.testdir({}), 'audit.jsonl');
  const sink = new FileSink(file);
  await sink.deliver(events(1, 2));
  const { fsyncSync } = fs;
  t.teardown(() => {
    fs.fsyncSync = fsyncSync;
  });
  fs.fsyncSync = (handle) => {
    fs.fsyncSync = fsyncSync;
    fs.ftruncateSync(handle, fs.fstatSync(handle).size - 7);
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  };
  t.same(await sink.deliver(events(3, 3)), { unreachable: `no space is left for ${file}` });
  t.same(revisionsIn(file), [1, 2]);
  t.equal(await sink.deliver(events(3, 3)), 'taken');
  t.same(revisionsIn(file), [1, 2, 3]);
});

t.test('over HTTP: what is taken, what is refused, what is later, what is away', async (t) => {
  const seen: { headers: Record<string, unknown>; body: string }[] = [];
  let status = 200;
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => {
      body += part.toString();
    });
    request.on('end', () => {
      seen.push({ headers: request.headers, body });
      response.writeHead(status).end('because');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const sink = new HttpSink(`http://127.0.0.1:${port}/in`);
  const { signal } = new AbortController();
  t.equal(await sink.deliver(events(1, 2), signal), 'taken');
  t.same(JSON.parse(seen[0]?.body ?? ''), { events: events(1, 2) });
  t.equal(seen[0]?.headers['content-type'], 'application/json');
  await sink.deliver(events(3, 3), signal);
  t.equal(seen[1]?.headers['idempotency-key'], 'c-3');
  status = 400;
  t.same(await sink.deliver(events(4, 4), signal), { refused: '400 because' });
  status = 503;
  t.same(await sink.deliver(events(4, 4), signal), { unreachable: '503 because' });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const away = await sink.deliver(events(4, 4), signal);
  t.ok(typeof away === 'object' && 'unreachable' in away, JSON.stringify(away));
});

t.test('a checkpoint is old or new, never half, and nothing else is taken for one', async (t) => {
  const file = path.join(t.testdir({}), 'checkpoint');
  t.equal(readCheckpoint(file), null);
  const place = { clusterId: 'ab', next: 42, prefix: 'jobs/' };
  writeCheckpoint(file, place);
  t.same(readCheckpoint(file), place);
  fs.writeFileSync(`${file}.draft`, '{"clus');
  t.same(readCheckpoint(file), place, 'a draft that a crash left counts for nothing');
  for (const text of ['', '{', '{}', '{"cluster_id":"a","next_revision":"1","prefix":""}']) {
    fs.writeFileSync(file, text);
    t.throws(() => readCheckpoint(file), { code: 'USAGE' }, text);
  }
});

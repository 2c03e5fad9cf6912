import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { CommandKind } from '../../../src/core/locks/command.js';
import { Outcome, OutcomeCode } from '../../../src/core/locks/outcome.js';
import { COMMAND_ROWS } from '../../../src/wire/commands.js';
import { ERROR_ROWS, ErrorCode } from '../../../src/wire/errors.js';
import { beginFrame, endFrame } from '../../../src/wire/frame.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import {
  encodeFields,
  encodeLookup,
  encodeNotLeader,
  encodeOutcome,
  encodeRefusal,
} from '../../../src/wire/reply.js';
import { ReplyReader } from '../../../src/wire/reply-reader.js';
import { decodeReplies } from '../../../src/wire/response.js';
import { bitFlips, bytesOf, holds, ids, integers, metadata, unpackOracle } from './oracle.js';

function wordsOf(id: Uint8Array): [number, number, number, number] {
  const view = new DataView(id.buffer, id.byteOffset);
  return [view.getUint32(0), view.getUint32(4), view.getUint32(8), view.getUint32(12)];
}

const LOGGED = COMMAND_ROWS.filter((row) => row.isLogged).map((row) => row.number);
const CODES = Object.values(OutcomeCode);

interface Case {
  readonly outcome: Outcome;
  readonly id: Uint8Array;
  readonly secret: Uint8Array;
}

const cases: fc.Arbitrary<Case> = fc
  .tuple(
    fc.record({
      code: fc.oneof(fc.constant(OutcomeCode.Ok), fc.constantFrom(...CODES)),
      kind: fc.constantFrom(...LOGGED),
      replay: fc.boolean(),
      entryTime: integers,
      token: integers,
      revision: integers,
      deadline: integers,
      ttlMs: integers,
      ahead: fc.nat(),
      cause: fc.constantFrom(0, 1, 6, 11, 12, 16),
      holderSince: integers,
      holderPrincipal: fc.nat({ max: 2 ** 32 - 1 }),
    }),
    ids,
    ids,
    metadata,
  )
  .map(([numbers, id, secret, note]) => {
    const outcome = Object.assign(new Outcome(), numbers);
    [outcome.id0, outcome.id1, outcome.id2, outcome.id3] = wordsOf(id);
    [outcome.secret0, outcome.secret1, outcome.secret2, outcome.secret3] = wordsOf(secret);
    outcome.blob = typeof note === 'string' ? new TextEncoder().encode(note) : (note as Uint8Array);
    if (numbers.code === OutcomeCode.BadRequest || numbers.code === OutcomeCode.Limit) {
      outcome.blob = new TextEncoder().encode('ttl_ms');
    }
    return { outcome, id, secret };
  });

/** The fields that PROTOCOL.md promises for a reply. */
function wantedFields({ outcome, id, secret }: Case): PackValue[] {
  const { code, kind, token, revision, deadline, ttlMs, cause } = outcome;
  const grant = [id, token, revision, deadline, ttlMs];
  if (code === OutcomeCode.Queued) return [revision, outcome.ahead];
  const { holderSince, holderPrincipal, blob } = outcome;
  const holder = [token, holderSince, deadline, holderPrincipal, new Uint8Array(blob)];
  const isForced = kind === CommandKind.ForceRelease;
  if (code === OutcomeCode.LockBusy) return [null, null, ...holder];
  if (code === OutcomeCode.Conflict) return isForced ? [null, null, ...holder] : [null, null];
  if (code === OutcomeCode.Disabled) return [null, null, revision];
  if (code === OutcomeCode.StaleLease) return [null, null, cause, revision];
  if (code === OutcomeCode.BadRequest || code === OutcomeCode.Limit) return [null, null, 'ttl_ms'];
  if (code !== OutcomeCode.Ok) return [null, null];
  switch (kind) {
    case CommandKind.Acquire:
      return grant;
    case CommandKind.SessionOpen:
    case CommandKind.SessionTakeOver:
      return [id, secret, deadline, ttlMs];
    case CommandKind.SessionRenew:
      return [deadline, ttlMs];
    case CommandKind.Renew:
      return [deadline, ttlMs, token];
    case CommandKind.Release:
      return [revision];
    case CommandKind.Cancel:
      return cause === 0 && token !== 0 ? [cause, ...grant] : [cause];
    case CommandKind.ForceRelease:
      return [revision, ...holder];
    case CommandKind.Disable:
    case CommandKind.Enable:
    case CommandKind.ExpireSession:
    case CommandKind.ReportRefusal:
      return [revision];
    default:
      return [];
  }
}

t.test('msgpackr reads every outcome as the protocol has it', async (t) => {
  const out = new OutBuffer();
  holds(
    t,
    fc.property(cases, fc.integer({ min: 1, max: 2 ** 32 - 1 }), (example, correlation) => {
      out.clear();
      encodeOutcome(out, correlation, example.outcome);
      const { code, entryTime, replay } = example.outcome;
      const wanted = [correlation, code, entryTime, replay, ...wantedFields(example)];
      assert.deepEqual(unpackOracle(out.bytes.slice(0, out.length)), wanted);
    }),
    { numRuns: 1_000 },
  );
});

t.test('an Ok has as many fields as the table of commands says', async (t) => {
  for (const row of COMMAND_ROWS) {
    if (!row.isLogged) continue;
    const out = new OutBuffer();
    const outcome = new Outcome();
    outcome.kind = row.number;
    outcome.token = 5;
    encodeOutcome(out, 1, outcome);
    const reply = unpackOracle(out.bytes.slice(0, out.length)) as unknown[];
    t.equal(reply.length - 4, row.replyFields.length, row.name);
  }
});

t.test('a CONFLICT shows a holder only to who would have removed it', async (t) => {
  const fieldsOf = (kind: number): number => {
    const out = new OutBuffer();
    const outcome = Object.assign(new Outcome(), { kind, code: OutcomeCode.Conflict, token: 5 });
    encodeOutcome(out, 1, outcome);
    // The head has four; message and retry_after_ms come with every refusal.
    return (unpackOracle(out.bytes.slice(0, out.length)) as unknown[]).length - 4;
  };
  for (const { number, name } of COMMAND_ROWS.filter((row) => row.isLogged)) {
    t.equal(fieldsOf(number), number === CommandKind.ForceRelease ? 7 : 2, name);
  }
});

t.test('an outcome is appended behind what is there, however full the buffer is', async (t) => {
  const out = new OutBuffer();
  const outcome = new Outcome();
  outcome.code = OutcomeCode.LockBusy;
  outcome.blob = new Uint8Array(1_024).fill(9);
  const position = beginFrame(out);
  for (let correlation = 1; correlation <= 500; correlation += 1) {
    encodeOutcome(out, correlation, outcome);
  }
  endFrame(out, position, 500);
  const replies = decodeReplies(out.bytes, 4, out.length) ?? [];
  t.equal(replies.length, 500);
  t.ok(replies.every((reply, index) => reply.correlation === index + 1));
  const [token, since, deadline, principal, blob] = replies[499]?.fields ?? [];
  t.same([token, since, deadline, principal], [0, 0, 0, 0]);
  t.same(new Uint8Array(blob as Uint8Array), outcome.blob);
});

function bytesBy(encode: (out: OutBuffer) => void): unknown {
  const out = new OutBuffer();
  encode(out);
  return unpackOracle(out.bytes.slice(0, out.length));
}

t.test('refusals say what, why, when to come back, and in detail', async (t) => {
  t.same(
    bytesBy((out) => encodeRefusal(out, 7, 43)),
    [7, 43, null, false, null, null],
  );
  t.same(
    bytesBy((out) => encodeRefusal(out, 7, 43, 'slow dowñ', 250)),
    [7, 43, null, false, 'slow dowñ', 250],
  );
  t.same(
    bytesBy((out) => encodeRefusal(out, 0, 23, 'x'.repeat(300), -1, ['name'])),
    [0, 23, null, false, 'x'.repeat(300), null, 'name'],
  );
  t.same(
    bytesBy((out) => encodeNotLeader(out, 9, 3, '10.0.0.3:7403')),
    [9, 41, null, false, null, null, 3, '10.0.0.3:7403'],
  );
  t.same(
    bytesBy((out) => encodeNotLeader(out, 9, 0, '')),
    [9, 41, null, false, null, null, 0, ''],
  );
});

t.test('fields of any kind are written, the cluster time as nil when there is none', async (t) => {
  t.same(
    bytesBy((out) => encodeFields(out, 1, 0, -1, [])),
    [1, 0, null, false],
  );
  const map = { role: 'leader', term: 2 ** 40, members: [[1, 'a:1', 'voter']] };
  t.same(
    bytesBy((out) => encodeFields(out, 1, 0, 2 ** 33, [map])),
    [1, 0, 2 ** 33, false, map],
  );
});

t.test('a lookup repeats the stored reply without its correlation', async (t) => {
  const outcome = new Outcome();
  outcome.kind = CommandKind.Release;
  outcome.revision = 77;
  outcome.entryTime = 1_000;
  outcome.replay = true;
  t.same(
    bytesBy((out) => encodeLookup(out, 4, 2_000, 'done', outcome)),
    [4, 0, 2_000, false, 'done', [0, 1_000, true, 77]],
  );
  t.same(
    bytesBy((out) => encodeLookup(out, 4, 2_000, 'unknown', null)),
    [4, 0, 2_000, false, 'unknown', null],
  );
});

/** A frame of the replies that `encode` appends. */
function frameOf(count: number, encode: (out: OutBuffer) => void): Uint8Array {
  const out = new OutBuffer();
  const position = beginFrame(out);
  encode(out);
  endFrame(out, position, count);
  return out.take().slice(4);
}

t.test('both readers of replies agree with msgpackr', async (t) => {
  const reader = new ReplyReader();
  holds(
    t,
    fc.property(fc.array(cases, { maxLength: 6 }), (examples) => {
      const body = frameOf(examples.length + 1, (out) => {
        for (const [index, { outcome }] of examples.entries()) encodeOutcome(out, index, outcome);
        encodeRefusal(out, 4_000_000_000, 43, 'words', 99, ['x']);
      });
      const items = (unpackOracle(body) as unknown[]).slice(2) as unknown[][];
      const replies = decodeReplies(body, 0, body.length) ?? [];
      assert.equal(replies.length, items.length);
      assert.ok(reader.open(body, 0, body.length));
      for (const [index, item] of items.entries()) {
        const reply = replies[index]!;
        const isError = reply.code >= 10;
        assert.deepEqual(
          [reply.correlation, reply.code, reply.clusterTimeMs, reply.isReplay],
          [item[0], item[1], item[2] ?? -1, item[3]],
        );
        assert.deepEqual(
          reply.fields.map((field) =>
            field instanceof Uint8Array ? new Uint8Array(field) : field,
          ),
          item.slice(isError ? 6 : 4),
        );
        assert.equal(reply.message, isError ? (item[4] ?? '') : '');
        assert.equal(reply.retryAfterMs, isError ? (item[5] ?? -1) : -1);
        assert.ok(reader.next());
        const { correlation, code, clusterTimeMs, isReplay, fieldCount } = reader;
        assert.deepEqual(
          [correlation, code, clusterTimeMs, isReplay, fieldCount],
          [item[0], item[1], item[2] ?? -1, item[3], item.length - 4],
        );
      }
      assert.equal(reader.next(), false);
      assert.equal(reader.broken, false);
    }),
    { numRuns: 200 },
  );
});

t.test('cut and damaged frames of replies are refused without a throw', async (t) => {
  const reader = new ReplyReader();
  const walk = (bytes: Uint8Array, end: number): boolean => {
    reader.open(bytes, 0, end);
    let steps = 0;
    while (reader.next()) steps += 1;
    assert.ok(steps <= bytes.length);
    return !reader.broken;
  };
  holds(
    t,
    fc.property(fc.array(cases, { minLength: 1, maxLength: 3 }), (examples) => {
      const body = frameOf(examples.length, (out) => {
        for (const { outcome } of examples) encodeOutcome(out, 1, outcome);
      });
      assert.ok(walk(body, body.length));
      for (let end = 0; end < body.length; end += 1) {
        assert.equal(walk(body, end), false);
        assert.equal(decodeReplies(body, 0, end), null);
      }
      for (const flipped of bitFlips(body.subarray(0, 80))) {
        walk(flipped, flipped.length);
        decodeReplies(flipped, 0, flipped.length);
      }
    }),
    { numRuns: 30 },
  );
  const wrong = ['93 01 00 93 01 00 c0', '93 01 00 94 01 00 c0 00', '93 01 00 94 a0 00 c0 c2'];
  wrong.push('93 01 00 94 01 ff c0 c2', '93 01 00 94 01 00 ff c2', '93 01 00 c0');
  for (const hex of wrong) {
    const body = bytesOf(hex);
    t.notOk(walk(body, body.length), hex);
    t.equal(decodeReplies(body, 0, body.length), null, hex);
  }
  const refusal = bytesOf('93 01 00 96 01 2b c0 c2 05 c0');
  t.equal(decodeReplies(refusal, 0, refusal.length), null, 'a message is a string');
});

t.test('every outcome that is an error has a row, and no number stands twice', async (t) => {
  const numbers = ERROR_ROWS.map((row) => row.number);
  t.same(
    [...numbers].sort((left, right) => left - right),
    numbers,
    'ascending',
  );
  t.equal(new Set(numbers).size, numbers.length);
  const codes: readonly number[] = Object.values(ErrorCode).filter((code) => code >= 10);
  t.same(new Set<number>(numbers), new Set(codes));
});

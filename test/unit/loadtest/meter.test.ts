/** What makes a figure invalid, and what is counted apart. */
import t from 'tap';
import { Meter, OVERLOAD_CODES } from '../../../loadtest/meter.js';
import { CommandKind } from '../../../src/core/locks/command.js';
import { OutcomeCode } from '../../../src/core/locks/outcome.js';
import { ErrorCode } from '../../../src/wire/errors.js';

t.test('only good answers while recording are operations', async (t) => {
  const meter = new Meter();
  meter.onAnswer(CommandKind.Acquire, OutcomeCode.Ok, 5);
  meter.isRecording = true;
  meter.onAnswer(CommandKind.Acquire, OutcomeCode.Ok, 1);
  meter.onAnswer(CommandKind.Release, OutcomeCode.Ok, 3);
  t.equal(meter.operations, 2);
  t.equal(meter.total().count, 2);
  t.ok(Math.abs(meter.total().maxMs - 3) < 0.01, 'the 5 ms before are not in it');
  t.equal(meter.answered[CommandKind.Acquire], 2, 'answers count from the beginning');
  t.equal(meter.errors, 0);
});

t.test('a refusal is an error unless the load expects it', async (t) => {
  const strict = new Meter();
  const open = new Meter(OVERLOAD_CODES);
  for (const meter of [strict, open]) {
    meter.isRecording = true;
    meter.onAnswer(CommandKind.Acquire, ErrorCode.Overloaded, 1);
    meter.onAnswer(CommandKind.Acquire, OutcomeCode.LockBusy, 1);
  }
  t.equal(strict.errors, 2);
  t.equal(open.errors, 1, 'LOCK_BUSY is no overload');
  t.equal(open.refusals, 1);
  t.same(open.answersByCode(), { Overloaded: 1, LockBusy: 1 });
  t.equal(open.unlogged[CommandKind.Acquire], 1, 'OVERLOADED is not in the log, LOCK_BUSY is');
});

t.test('an unknown outcome may be in the log or not', async (t) => {
  const meter = new Meter();
  meter.onAnswer(CommandKind.Acquire, ErrorCode.UnknownOutcome, 1);
  t.equal(meter.doubtful[CommandKind.Acquire], 1);
  t.equal(meter.unlogged[CommandKind.Acquire], 0);
  t.equal(meter.errors, 1);
});

t.test('a wrong or a missing reply is an error, and the first is told', async (t) => {
  const meter = new Meter();
  meter.onWrong('a grant of 4 fields');
  meter.onWrong('something else');
  meter.missing = 3;
  t.equal(meter.errors, 5);
  t.equal(meter.firstWrong, 'a grant of 4 fields');
});

t.test('every second has its own row', async (t) => {
  const meter = new Meter();
  meter.isRecording = true;
  meter.onAnswer(CommandKind.Renew, OutcomeCode.Ok, 10);
  meter.endSecond();
  meter.onAnswer(CommandKind.Renew, OutcomeCode.Ok, 20);
  meter.onAnswer(CommandKind.Renew, OutcomeCode.Ok, 20);
  const row = meter.endSecond();
  t.equal(row.ops, 2);
  t.ok(row.p50Ms > 19.9 && row.p50Ms < 20.1, `p50 ${row.p50Ms}`);
  t.same(
    meter.seconds.map((each) => [each.second, each.ops]),
    [
      [1, 1],
      [2, 2],
    ],
  );
});

t.test('served is what was answered well within a second, of everything asked', async (t) => {
  const meter = new Meter(OVERLOAD_CODES);
  meter.isRecording = true;
  for (let i = 0; i < 7; i += 1) meter.onAnswer(CommandKind.Acquire, OutcomeCode.Ok, 1_000);
  meter.onAnswer(CommandKind.Acquire, OutcomeCode.Ok, 1_001);
  meter.onAnswer(CommandKind.Acquire, ErrorCode.Overloaded, 1);
  meter.onAnswer(CommandKind.Acquire, OutcomeCode.LockBusy, 1);
  t.equal(meter.served, 0.7);
});

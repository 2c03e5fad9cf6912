import t from 'tap';
import { createLogger, isLogLevel, LOG_LEVELS } from '../../../src/observe/logger.js';

function collect(): { lines: string[]; write(line: string): void } {
  const lines: string[] = [];
  return { lines, write: (line) => lines.push(line) };
}

t.test('a line is one JSON object with level, ISO time, standing fields and message', async (t) => {
  const sink = collect();
  createLogger('info', { node: 3 }, sink).warn({ peer: 2 }, 'away');
  t.equal(sink.lines.length, 1);
  t.match(sink.lines[0], /\}\n$/);
  const line = JSON.parse(sink.lines[0] ?? '');
  t.match(line, { level: 'warn', node: 3, peer: 2, message: 'away' });
  t.equal(new Date(line.time).toISOString(), line.time);
});

t.test('what is below the level is not written, and says so beforehand', async (t) => {
  const sink = collect();
  const logger = createLogger('warn', {}, sink);
  logger.debug({}, 'no');
  logger.info({}, 'no');
  t.equal(sink.lines.length, 0);
  t.notOk(logger.isEnabled('info'));
  t.ok(logger.isEnabled('error'));
  logger.error({}, 'yes');
  logger.fatal({}, 'yes');
  t.equal(sink.lines.length, 2);
});

t.test('silent writes nothing at all', async (t) => {
  const sink = collect();
  const logger = createLogger('silent', {}, sink);
  logger.fatal({}, 'no');
  t.equal(sink.lines.length, 0);
  t.notOk(logger.isEnabled('fatal'));
  t.notOk(logger.isEnabled('silent'));
});

t.test('secrets, lease ids and metadata are never printed, nor one level deeper', async (t) => {
  const sink = collect();
  const logger = createLogger('info', {}, sink);
  const fields = { secret: 's3cret', leaseId: 's3cret', metadata: 's3cret' };
  logger.info({ ...fields, session: fields, revision: 7 }, 'granted');
  t.notMatch(sink.lines[0], /s3cret/);
  t.match(JSON.parse(sink.lines[0] ?? ''), { secret: '[redacted]', revision: 7 });
});

t.test('a child carries its fields beside those of its parent', async (t) => {
  const sink = collect();
  createLogger('info', { node: 1 }, sink).child({ shard: 0 }).info({}, 'hello');
  t.match(JSON.parse(sink.lines[0] ?? ''), { node: 1, shard: 0, message: 'hello' });
});

t.test('levels are told from other words', async (t) => {
  for (const level of LOG_LEVELS) t.ok(isLogLevel(level));
  for (const word of ['', 'INFO', 'trace', 'toString']) t.notOk(isLogLevel(word));
});

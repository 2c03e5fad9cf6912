/** `holdfast admin`: command lines that are refused before anything is asked; events in words. */

import t from 'tap';
import { auditLine } from '../../../src/cli/audit/line.js';
import { COMMANDS } from '../../../src/cli/commands/table.js';
import { eventWords } from '../../../src/cli/event-words.js';
import { ExitCode } from '../../../src/cli/exit-codes.js';
import { Program } from '../../../src/cli/program.js';

async function shown(words: readonly string[]) {
  let [out, err] = ['', ''];
  const program = new Program(COMMANDS, {
    standardOutput: { write: (text) => (out += text) },
    standardError: { write: (text) => (err += text) },
    version: '1.2.3',
  });
  return { status: await program.run(words), out, err };
}

t.test('what is missing is said, and nobody is asked', async (t) => {
  const why = ['--reason', 'it hangs'];
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['force-release', 'a', ...why], /--token: say which lease is meant: --token N, --lease ID/],
    [['force-release', 'a', '--any', '--token', '4', ...why], /say which lease is meant/],
    [['force-release', 'a', '--lease', '12', ...why], /--lease: give 32 hexadecimal digits/],
    [['force-release', 'a', '--token', '0', ...why], /--token: give a whole number 1 to/],
    [['force-release', 'a', '--token', '4'], /--reason: say why: it stands in the audit stream/],
    [['force-release', '--any', ...why], /missing required argument 'NAME'/],
    [['disable', ...why], /NAME: give a lock, or --prefix, and not both/],
    [['enable', 'a', '--prefix', 'a', ...why], /NAME: give a lock, or --prefix, and not both/],
    [['disable', 'a'], /--reason: say why/],
    [['expire-session', 'abc', ...why], /SESSION: give 32 hexadecimal digits/],
    [['expire-session', 'ab'.repeat(16)], /--reason: say why/],
  ];
  for (const [words, message] of cases) {
    const { status, out, err } = await shown(['admin', ...words]);
    t.equal(status, ExitCode.Usage, words.join(' '));
    t.match(err, message);
    t.equal(out, '');
  }
  const help = await shown(['admin', 'force-release', '--help']);
  t.match(help.out, /barrier token[\s\S]*holdfast admin force-release jobs\/nightly --token 41/);
  t.match((await shown(['admin', '--help'])).out, /what operators do[\s\S]*expire-session/);
});

t.test('every kind of event has words, in a watch and in the audit stream', async (t) => {
  const event = { revision: 7, name: 'jobs/a', token: 0, place: 0, cause: null };
  const wordsOf = (type: string, more: object = {}): string =>
    eventWords({ ...event, type, ...more });
  t.equal(wordsOf('granted', { token: 7 }), '7  jobs/a  granted with token 7');
  t.equal(wordsOf('ended', { token: 5, cause: 'forced' }), '7  jobs/a  token 5 ended: forced');
  t.equal(wordsOf('queued', { place: 7 }), '7  jobs/a  queued at 7');
  t.equal(
    wordsOf('left', { place: 3, cause: 'CANCELLED' }),
    '7  jobs/a  left its place 3: CANCELLED',
  );
  t.equal(wordsOf('disabled'), '7  jobs/a  disabled: no new acquires');
  t.equal(wordsOf('disabled', { name: 'jobs/', place: 1 }), '7  jobs/*  disabled: no new acquires');
  t.equal(wordsOf('enabled', { name: '', place: 1 }), '7  *  enabled again');
  const refused = "an operator's command was refused: CONFLICT";
  t.equal(wordsOf('refused', { cause: 'CONFLICT' }), `7  jobs/a  ${refused}`);
  t.equal(
    wordsOf('fenced', { token: 4, place: 5, cause: 'STALE_TOKEN' }),
    '7  jobs/a  a guard refused token 4, it had seen 5',
  );
  t.equal(wordsOf('expelled', { name: '' }), '7  -  a session was ended by an operator');
  const row = { ...event, type: 'ended', fencing_token: 5, cause: 'forced', actor: 1 };
  const said = { command: 'force_release', request_id: 'r', sequence: null };
  t.equal(
    auditLine({ ...row, ...said, asked_by: 'ops@bastion', reason: 'it hangs' }),
    '7  jobs/a  token 5 ended: forced, by force_release r of principal 1 (ops@bastion: it hangs)',
  );
  const report = { command: 'report_refusal', request_id: null, sequence: null, refusals: 3 };
  t.match(auditLine({ ...row, ...report, asked_by: 'redis', reason: null }), /\(redis, 3 times\)$/);
  const byTime = { ...row, cause: 'expired', command: null, asked_by: null, reason: null };
  t.equal(auditLine(byTime), '7  jobs/a  token 5 ended: expired, by time');
});

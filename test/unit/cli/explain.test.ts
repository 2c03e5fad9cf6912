import t from 'tap';
import { explainField, isHopeless, withAdvice } from '../../../src/cli/explain.js';
import { ErrorCode, HoldfastError } from '../../../src/client/errors.js';

function silence(...reasons: readonly string[]): HoldfastError {
  const silent = reasons.map((reason, at) => ({ address: `n${at}:7401`, reason }));
  return new HoldfastError(ErrorCode.NoQuorum, { message: 'nobody', details: { silent } });
}

t.test(
  'what every node refuses at once is hopeless, what one is silent about is not',
  async (t) => {
    t.ok(isHopeless(silence('refused', 'host name not found')));
    t.notOk(isHopeless(silence('refused', 'no answer')));
    t.notOk(isHopeless(new HoldfastError(ErrorCode.NoQuorum)), 'a node has answered');
    t.notOk(isHopeless(new Error('refused')));
  },
);

t.test('a cluster that is down, and an address that is wrong, are told what to do', async (t) => {
  const down = withAdvice(silence('refused', 'refused'));
  t.match(down, {
    code: 'NO_QUORUM',
    message: /Is the cluster running\? Start one with npm start/,
  });
  t.match(withAdvice(silence('host name not found')), { message: /Check --endpoints$/ });
  const other = new HoldfastError(ErrorCode.Conflict);
  t.equal(withAdvice(other), other);
});

t.test('a value out of range is told with option, value and range', async (t) => {
  const refused = new HoldfastError(ErrorCode.BadRequest, { details: { field: 'ttl_ms' } });
  const range = ['leaseTtlMsLeast', 'leaseTtlMsGreatest'] as const;
  t.match(explainField(refused, { ttl_ms: { option: '--ttl', text: '500ms', range } }), {
    code: 'BAD_REQUEST',
    message: /^--ttl: 500ms is out of range: 1s to 24h, .* leaseTtlMsLeast, leaseTtlMsGreatest$/,
    details: { field: 'ttl_ms' },
  });
  const wait = { option: '--wait', text: '100d', range: [null, 'waitMsGreatest'] as const };
  const late = new HoldfastError(ErrorCode.BadRequest, { details: { field: 'wait_ms' } });
  t.match(explainField(late, { wait_ms: wait }), { message: /^--wait: 100d .*: 0s to 1h, / });
  t.equal(explainField(refused, { wait_ms: wait }), refused, 'another field');
});

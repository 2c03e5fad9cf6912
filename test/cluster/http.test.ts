import http from 'node:http';
import t from 'tap';
import { ROUTES } from '../../src/wire/http-routes.js';
import { Cluster } from './harness.js';
import { HttpClient, SseClient } from './http-client.js';
import { waitFor } from './wait-for.js';

const cluster = await Cluster.start({ test: t, settings: { leaseTtlMsLeast: 100 } });
const client = new HttpClient();
t.teardown(() => client.close());
const leader = cluster.httpUrl(await cluster.leader());
const follower = cluster.httpUrl(
  cluster.nodeIds.find((nodeId) => cluster.httpUrl(nodeId) !== leader) ?? 0,
);
const document = await client.learn(follower);
let keys = 0;

function key(): Record<string, string> {
  keys += 1;
  return { 'idempotency-key': `test-${keys}` };
}

t.test('a lock is acquired, seen, renewed and released through leader and follower', async (t) => {
  for (const base of [leader, follower]) {
    const name = `jobs/${base === leader ? 'leader' : 'follower'} ü`;
    const path = `${base}/v1/locks/${encodeURIComponent(name)}`;
    const granted = await client.post(`${path}/acquire`, { ttl_ms: 60_000, metadata: 'ü' }, key());
    t.equal(granted.status, 200, granted.text);
    const { lease_id, fencing_token, expires_at, expires_in_ms, cluster_time } = granted.json;
    t.equal(granted.json.name, name);
    t.equal(expires_at - cluster_time, expires_in_ms);
    t.equal(expires_in_ms, 60_000);
    t.equal(
      granted.headers['holdfast-leader'],
      leader === base ? granted.headers['holdfast-node'] : String(await cluster.leader()),
    );
    const seen = await client.get(path);
    t.equal(seen.json.holder.fencing_token, fencing_token);
    t.equal(seen.json.holder.metadata, 'ü');
    t.notMatch(seen.text, lease_id, 'who may read may not therefore release');
    const stale = await client.get(`${path}?stale=true`);
    t.type(stale.json.age_ms, 'number');
    const check = await client.get(`${path}/check?token=${fencing_token}`);
    t.equal(check.json.verdict, 'current');
    const renewed = await client.post(`${base}/v1/leases/${lease_id}/renew`, { ttl_ms: 70_000 });
    t.equal(renewed.json.ttl_ms, 70_000);
    t.equal(renewed.json.fencing_token, fencing_token);
    const released = await client.delete(`${base}/v1/leases/${lease_id}`);
    t.same([released.status, released.json.released], [200, true]);
    const again = await client.delete(`${base}/v1/leases/${lease_id}`);
    t.same([again.status, again.json.replay], [200, true], 'released again');
    const late = await client.post(`${base}/v1/leases/${lease_id}/renew`, {});
    t.equal(late.status, 410);
    t.match(late.json.error, { code: 'STALE_LEASE', cause: 'released', retryable: false });
    const free = await client.get(`${base}/v1/locks/${encodeURIComponent(`${name}/none`)}`);
    t.same([free.json.holder, free.json.last_revision], [null, null]);
  }
});

t.test('I6: one key has one effect on any node, and names the operation alone', async (t) => {
  const named = { 'idempotency-key': 'nightly-7' };
  const first = await client.post(`${follower}/v1/locks/once/acquire`, { ttl_ms: 60_000 }, named);
  const second = await client.post(`${leader}/v1/locks/once/acquire`, { ttl_ms: 60_000 }, named);
  t.equal(second.json.lease_id, first.json.lease_id);
  t.same([first.json.replay, second.json.replay], [false, true]);
  const other = await client.post(`${leader}/v1/locks/twice/acquire`, { ttl_ms: 60_000 }, named);
  t.match([other.status, other.json.error.code], [409, 'REQUEST_MISMATCH']);
  const body = { ttl_ms: 60_000, request_id: 'attempt-2' };
  const beside = await client.post(`${leader}/v1/locks/once/acquire`, body, named);
  t.equal(beside.json.request_id, 'nightly-7', 'the key wins over request_id');
  const alone = await client.post(`${leader}/v1/locks/alone/acquire`, { request_id: 'alone-1' });
  t.equal(alone.json.request_id, 'alone-1');
  const nameless = await client.post(`${leader}/v1/locks/x/acquire`, {});
  t.match([nameless.status, nameless.json.error.field], [400, 'request_id']);
  const known = await client.get(`${follower}/v1/requests/nightly-7`);
  t.match(known.json, { state: 'done', code: 'OK', lease_id: first.json.lease_id });
  const unknown = await client.get(`${follower}/v1/requests/never`);
  t.equal(unknown.json.state, 'unknown');
});

t.test(
  'a busy lock names its holder, a wait ends in 408, in a cancel, or in the lease',
  async (t) => {
    const body = { ttl_ms: 60_000, metadata: 'host-7' };
    const held = await client.post(`${leader}/v1/locks/busy/acquire`, body, key());
    const path = `${follower}/v1/locks/busy/acquire`;
    const busy = await client.post(path, { ttl_ms: 60_000 }, key());
    t.equal(busy.status, 409);
    const { code, holder, retryable, outcome } = busy.json.error;
    t.same([code, retryable, outcome], ['LOCK_BUSY', true, 'none']);
    t.match(holder, { fencing_token: held.json.fencing_token, metadata: 'host-7' });
    const timed = await client.post(path, { ttl_ms: 60_000, wait_ms: 150 }, key());
    t.match([timed.status, timed.json.error.code], [408, 'WAIT_TIMEOUT']);
    const patient = { 'idempotency-key': 'patient' };
    const waits = client.post(path, { ttl_ms: 60_000, wait_ms: 60_000 }, patient);
    const queued = async (name: string): Promise<boolean | null> => {
      const found = await client.get(`${leader}/v1/requests/${name}`);
      return found.json.state === 'queued' || null;
    };
    await waitFor('the wait to stand in line', () => queued('patient'));
    const leaving = { 'idempotency-key': 'leaving' };
    const left = client.post(path, { ttl_ms: 60_000, wait_ms: 60_000 }, leaving);
    await waitFor('the second wait', () => queued('leaving'));
    const cancel = await client.delete(`${leader}/v1/requests/leaving`);
    t.match(cancel.json, { cancelled: true, code: 'CANCELLED' });
    t.match([(await left).status, (await left).json.error.code], [409, 'CANCELLED']);
    await client.delete(`${leader}/v1/leases/${held.json.lease_id}`);
    const lease = await waits;
    t.equal(lease.status, 200);
    t.ok(lease.json.fencing_token > held.json.fencing_token);
    const late = await client.delete(`${leader}/v1/requests/patient`);
    t.match(late.json, { cancelled: false, code: 'OK', lease_id: lease.json.lease_id });
  },
);

t.test('I7: a hang-up leaves its place to lapse, the same key takes it up anywhere', async (t) => {
  const held = await client.post(`${leader}/v1/locks/gone/acquire`, { ttl_ms: 600_000 }, key());
  const waitAt = (base: string, name: string, signal: AbortSignal) => {
    const body = { ttl_ms: 60_000, wait_ms: 600_000 };
    const headers = { 'idempotency-key': name };
    return client.ask('POST', `${base}/v1/locks/gone/acquire`, { body, headers, signal });
  };
  const quits = new AbortController();
  const gone = ['gone-l', 'gone-f'].map((name, at) =>
    waitAt(at === 0 ? leader : follower, name, quits.signal).catch(() => undefined),
  );
  const moves = new AbortController();
  const moved = waitAt(follower, 'moves', moves.signal).catch(() => undefined);
  const waiters = async (): Promise<number> =>
    (await client.get(`${leader}/v1/locks/gone`)).json.waiters;
  await waitFor('three waiters', async () => ((await waiters()) === 3 ? true : null));
  quits.abort();
  moves.abort();
  await Promise.all([...gone, moved]);
  const again = waitAt(leader, 'moves', new AbortController().signal);
  await waitFor('two places to lapse', async () => ((await waiters()) === 1 ? true : null), 40_000);
  t.equal((await client.get(`${leader}/v1/requests/gone-f`)).json.code, 'SESSION_EXPIRED');
  await client.delete(`${leader}/v1/leases/${held.json.lease_id}`);
  t.equal((await again).status, 200, 'who asked again by the same key is granted');
});

t.test('sessions: the secret comes in a header, one renewal keeps the leases', async (t) => {
  const opened = await client.post(`${follower}/v1/sessions`, { ttl_ms: 60_000 }, key());
  t.equal(opened.status, 200);
  const { session_id, secret } = opened.json;
  const proof = { 'holdfast-session-secret': secret };
  const body = { ttl_ms: 30_000, session_id };
  for (const base of [leader, follower, leader]) {
    const name = `s/${keys}`;
    const lease = await client.post(`${base}/v1/locks/${encodeURIComponent(name)}/acquire`, body, {
      ...key(),
      ...proof,
    });
    t.equal(lease.status, 200, lease.text);
    const seen = await client.get(`${base}/v1/locks/${encodeURIComponent(name)}`);
    t.equal(seen.json.holder.in_session, true);
  }
  const bare = await client.post(`${leader}/v1/locks/s/acquire`, body, key());
  t.match([bare.status, bare.json.error.code], [401, 'UNAUTHENTICATED']);
  const wrong = { 'holdfast-session-secret': '0'.repeat(32) };
  for (const base of [leader, follower]) {
    const thief = await client.post(`${base}/v1/locks/s/acquire`, body, { ...key(), ...wrong });
    t.match([thief.status, thief.json.error.code], [410, 'SESSION_EXPIRED']);
  }
  const renewed = await client.post(`${leader}/v1/sessions/${session_id}/renew`, {}, proof);
  t.equal(renewed.status, 200, renewed.text);
  t.equal(renewed.json.session_id, session_id);
  const closed = await client.delete(`${follower}/v1/sessions/${session_id}`, proof);
  t.match(closed.json, { closed: true });
  const rows = await client.get(`${leader}/v1/locks?prefix=s%2F`);
  t.same(rows.json.locks, [], 'its leases ended with it');
});

t.test('lists come in pages, in the order of the bytes', async (t) => {
  for (const name of ['p/b', 'p/a', 'p/c', 'q']) {
    const path = `${leader}/v1/locks/${encodeURIComponent(name)}/acquire`;
    await client.post(path, { ttl_ms: 60_000 }, key());
  }
  const first = await client.get(`${follower}/v1/locks?prefix=p%2F&limit=2`);
  t.same(
    first.json.locks.map((row: { name: string }) => row.name),
    ['p/a', 'p/b'],
  );
  const cursor = encodeURIComponent(first.json.next_cursor);
  const second = await client.get(`${follower}/v1/locks?prefix=p%2F&limit=2&cursor=${cursor}`);
  t.same(
    second.json.locks.map((row: { name: string }) => row.name),
    ['p/c'],
  );
  t.equal(second.json.next_cursor, null);
});

t.test('the audit stream says what caused each event, the same on every node', async (t) => {
  const name = encodeURIComponent('audited/one');
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const headers = { traceparent: `00-${trace}-b7ad6b7169203331-01`, 'idempotency-key': 'audited' };
  const held = await client.post(`${follower}/v1/locks/${name}/acquire`, {}, headers);
  await client.delete(`${follower}/v1/leases/${held.json.lease_id}`);
  const from = held.json.revision;
  const path = `/v1/audit?prefix=audited%2F&revision=${from}&wait_ms=5000`;
  const told = await Promise.all([leader, follower].map((base) => client.get(base + path)));
  const events = told[0]?.json.events;
  t.match(events[0], {
    id: `${told[0]?.json.cluster_id}-${from}`,
    type: 'granted',
    revision: from,
    name: 'audited/one',
    fencing_token: held.json.fencing_token,
    actor: 1,
    command: 'acquire',
    request_id: 'audited',
    trace_id: trace,
  });
  const both = told.every((page) => page.json.events.length === 2);
  if (both) t.same(told[1]?.json.events, events, 'the same rows');
  const ended = await client.get(
    `${follower}/v1/audit?prefix=audited%2F&revision=${from + 1}&wait_ms=5000`,
  );
  t.match(ended.json.events.at(-1), { type: 'ended', cause: 'released', command: 'release' });
  const none = await client.get(`${leader}/v1/audit?prefix=audited%2F&wait_ms=50`);
  t.same(none.json.events, []);
});

t.test('I6: an operator’s command has one effect, on any node, and says who holds', async (t) => {
  const path = (base: string) => `${base}/v1/admin/locks/${encodeURIComponent('ops/a')}`;
  const said = { actor: 'ops@bastion', reason: 'it hangs' };
  const body = { ttl_ms: 60_000, metadata: 'host-7' };
  const acquire = `${leader}/v1/locks/${encodeURIComponent('ops/a')}/acquire`;
  const held = await client.post(acquire, body, key());
  const token = held.json.fencing_token;
  const waiting = client.post(acquire, { ...body, wait_ms: 60_000 }, key());
  await waitFor('a waiter', async () => {
    const { json } = await client.get(`${leader}/v1/locks/${encodeURIComponent('ops/a')}`);
    return json.waiters === 1 || null;
  });
  const wrong = { ...said, fencing_token: token + 1_000 };
  const other = await client.post(`${path(follower)}/force-release`, wrong, key());
  t.match([other.status, other.json.error.code], [409, 'CONFLICT']);
  t.match(other.json.error.holder, { fencing_token: token, metadata: 'host-7' });
  const named = { 'idempotency-key': 'ops-force' };
  const right = { ...said, fencing_token: token };
  const first = await client.post(`${path(follower)}/force-release`, right, named);
  t.equal(first.status, 200, first.text);
  const { barrier_token: barrier } = first.json;
  t.match(first.json, { fencing_token: token, metadata: 'host-7', replay: false });
  const again = await client.post(`${path(leader)}/force-release`, right, named);
  t.match(again.json, { barrier_token: barrier, replay: true });
  t.equal((await waiting).json.fencing_token, barrier + 1, 'the next in line is above it');
  const known = await client.get(`${follower}/v1/requests/ops-force`);
  t.match(known.json, { state: 'done', code: 'OK', barrier_token: barrier });
  const lost = await client.post(`${leader}/v1/leases/${held.json.lease_id}/renew`, {});
  t.match(lost.json.error, { code: 'STALE_LEASE', cause: 'forced', ended_revision: barrier });
  const any = await client.post(`${path(follower)}/force-release`, { ...said, any: true }, key());
  t.equal(any.json.fencing_token, barrier + 1);
  const nobody = await client.post(`${path(leader)}/force-release`, { ...said, any: true }, key());
  t.match([nobody.status, nobody.json.error.holder], [409, null]);

  const rule = { ...said, prefix: 'ops/' };
  const disabled = await client.post(`${follower}/v1/admin/disable`, rule, key());
  const { revision } = disabled.json;
  const refused = await client.post(acquire, body, key());
  t.match([refused.status, refused.json.error.code], [409, 'DISABLED']);
  t.equal(refused.json.error.revision, revision);
  const enabled = await client.post(`${leader}/v1/admin/enable`, rule, key());
  t.ok(enabled.json.revision > revision);
  t.equal((await client.post(acquire, body, key())).status, 200);
  const { json: opened } = await client.post(`${leader}/v1/sessions`, { ttl_ms: 60_000 }, key());
  const expire = `${follower}/v1/admin/sessions/${opened.session_id}/expire`;
  t.ok((await client.post(expire, said, key())).json.revision > 0);
  const gone = await client.post(expire, said, key());
  t.match([gone.status, gone.json.error.code], [410, 'SESSION_EXPIRED']);
  const report = {
    name: 'ops/a',
    fencing_token: token,
    mark: barrier,
    refusals: 2,
    guard: 'redis',
  };
  t.ok((await client.post(`${follower}/v1/admin/refusals`, report, key())).json.revision > 0);

  const audit = await client.get(`${leader}/v1/audit?prefix=ops%2F&revision=${token}&limit=512`);
  const events = audit.json.events as Record<string, unknown>[];
  const spoken = events.filter(({ command }) => /force|able|refusal/.test(String(command)));
  t.same(
    spoken.map(({ type, cause }) => [type, cause]),
    [
      ['refused', 'CONFLICT'],
      ['ended', 'forced'],
      ['granted', null],
      ['ended', 'forced'],
      ['refused', 'CONFLICT'],
      ['disabled', null],
      ['enabled', null],
      ['fenced', 'STALE_TOKEN'],
    ],
  );
  t.match(spoken[0], { asked_by: 'ops@bastion', reason: 'it hangs', fencing_token: 0 });
  t.match(spoken.at(-1), { asked_by: 'redis', refusals: 2, fencing_token: token, place: barrier });
});

t.test('explain says why a lock is mine or not, on any node', async (t) => {
  const why = encodeURIComponent('why/not');
  const mine = await client.post(`${leader}/v1/locks/${why}/acquire`, {}, key());
  const refused = { 'idempotency-key': 'why-refused' };
  await client.post(`${follower}/v1/locks/${why}/acquire`, {}, refused);
  const path = `${follower}/v1/locks/${why}/explain`;
  const held = await client.get(path);
  t.match(held.json, { cause: 'held', holder: { fencing_token: mine.json.fencing_token } });
  t.equal((await client.get(`${path}?lease_id=${mine.json.lease_id}`)).json.cause, 'yours');
  t.equal((await client.get(`${path}?request_id=why-refused`)).json.cause, 'refused_busy');
  const byRequest = await client.get(`${follower}/v1/requests/why-refused/explain`);
  t.match(byRequest.json, { name: 'why/not', cause: 'refused_busy' });
  const byLease = await client.get(`${follower}/v1/leases/${mine.json.lease_id}/explain`);
  t.match(byLease.json, { name: 'why/not', cause: 'yours' });
  await client.delete(`${leader}/v1/leases/${mine.json.lease_id}`);
  t.match((await client.get(path)).json, { cause: 'free_released', fencing: 'required' });
});

t.test('elections: campaign, proclaim, resign, and who observes hears of no leader', async (t) => {
  const path = `${follower}/v1/elections/primary`;
  const events = new SseClient(`${path}/observe?snapshot=true`);
  t.teardown(() => events.close());
  await waitFor('the start', () => (events.events.length > 0 ? true : null));
  const first = await client.post(`${path}/campaign`, { value: 'a:1', ttl_ms: 60_000 }, key());
  t.equal(first.status, 200, first.text);
  t.match((await client.get(path)).json, { leader: { value: 'a:1' }, candidates: 0 });
  const body = { lease_id: first.json.lease_id, value: 'a:2' };
  t.equal((await client.post(`${path}/proclaim`, body)).status, 200);
  t.equal((await client.get(path)).json.leader.value, 'a:2');
  const resigned = await client.post(`${path}/resign`, { lease_id: first.json.lease_id });
  t.equal(resigned.json.released, true);
  t.equal((await client.get(path)).json.leader, null);
  await client.post(`${path}/campaign`, { value: 'b:1', ttl_ms: 60_000 }, key());
  await waitFor('four events', () => (events.events.length >= 4 ? true : null));
  const told = events.events.map(({ event, data }) => [event, data.leader?.fencing_token ?? 0]);
  t.same(told[0], ['no_leader', 0]);
  t.same(told[1], ['leader', first.json.fencing_token]);
  t.same(told[2], ['no_leader', 0]);
  t.equal(events.events[3]?.data.leader.value, 'b:1');
});

/** What an operator's command lacks. */
function adminCases(): [number, string, string, string, string, object][] {
  const json = { 'content-type': 'application/json' };
  const said = '"actor":"me","reason":"why"';
  const [force, refusals] = ['/v1/admin/locks/x/force-release', '/v1/admin/refusals'];
  const report = '"name":"x","fencing_token":1,"mark":2';
  const cases: [string, string, string][] = [
    ['fencing_token', force, `{${said}}`],
    ['fencing_token', force, `{${said},"any":false}`],
    ['any', force, `{${said},"any":true,"fencing_token":4}`],
    ['lease_id', force, `{${said},"lease_id":"4"}`],
    ['actor', force, '{"any":true,"reason":"why"}'],
    ['reason', force, '{"any":true,"actor":"me"}'],
    ['actor', force, `{"any":true,"reason":"why","actor":"${'a'.repeat(129)}"}`],
    ['reason', force, `{"any":true,"reason":"","actor":"me"}`],
    ['name', '/v1/admin/disable', `{${said}}`],
    ['prefix', '/v1/admin/enable', `{${said},"name":"a","prefix":"a"}`],
    ['session_id', '/v1/admin/sessions/12/expire', `{${said}}`],
    ['refusals', refusals, `{${report}}`],
    ['refusals', refusals, `{${report},"refusals":0}`],
    ['guard', refusals, `{${report},"refusals":1,"guard":"${'g'.repeat(65)}"}`],
  ];
  return [
    ...cases.map(([field, path, raw]): [number, string, string, string, string, object] => {
      return [400, field, 'POST', path, raw, { ...key(), ...json }];
    }),
    [400, 'request_id', 'POST', force, `{${said},"any":true}`, json],
    [403, '', 'POST', force, `{${said},"any":true}`, { ...json, origin: 'http://evil.example' }],
  ];
}

t.test(
  'what is wrong with a request is named, with the status that the web has for it',
  async (t) => {
    const text = { 'content-type': 'text/plain' };
    const json = { 'content-type': 'application/json' };
    const cases: [number, string, string, string, string, object][] = [
      [404, '', 'GET', '/v1/nothing', '', {}],
      [405, '', 'GET', '/v1/locks/x/acquire', '', {}],
      [405, '', 'POST', '/v1/leases/00', '{}', json],
      [400, 'content-type', 'POST', '/v1/locks/x/acquire', '{}', { ...key(), ...text }],
      [400, 'body', 'POST', '/v1/locks/x/acquire', '{', { ...key(), ...json }],
      [400, 'body', 'POST', '/v1/locks/x/acquire', '[]', { ...key(), ...json }],
      [400, 'color', 'POST', '/v1/locks/x/acquire', '{"color":1}', { ...key(), ...json }],
      [400, 'ttl_ms', 'POST', '/v1/locks/x/acquire', '{"ttl_ms":"1"}', { ...key(), ...json }],
      [400, 'ttl_ms', 'POST', '/v1/locks/x/acquire', '{"ttl_ms":1.5}', { ...key(), ...json }],
      [400, 'ttl_ms', 'POST', '/v1/locks/x/acquire', '{"ttl_ms":1}', { ...key(), ...json }],
      [400, 'name', 'POST', `/v1/locks/${'n'.repeat(513)}/acquire`, '{}', { ...key(), ...json }],
      [400, 'name', 'GET', '/v1/locks/%ff', '', {}],
      [400, 'name', 'GET', '/v1/locks/a%00', '', {}],
      [400, 'stale', 'GET', '/v1/locks/x?stale=1', '', {}],
      [400, 'limit', 'GET', '/v1/locks?limit=251', '', {}],
      [400, 'token', 'GET', '/v1/locks/x/check', '', {}],
      [400, 'lease_id', 'DELETE', '/v1/leases/00', '', {}],
      [400, 'accept', 'GET', '/v1/watch', '', {}],
      [400, 'holdfast-deadline-ms', 'GET', '/v1/locks/x', '', { 'holdfast-deadline-ms': '0' }],
      [
        413,
        '',
        'POST',
        '/v1/locks/x/acquire',
        `{"metadata":"${'m'.repeat(70_000)}"}`,
        { ...key(), ...json },
      ],
      [
        400,
        'metadata',
        'POST',
        '/v1/locks/x/acquire',
        `{"metadata":"${'m'.repeat(1_025)}"}`,
        { ...key(), ...json },
      ],
      [403, '', 'GET', '/v1/locks/x', '', { host: 'evil.example' }],
      [403, '', 'GET', '/v1/locks/x', '', { origin: 'http://evil.example' }],
      [403, '', 'POST', '/v1/locks/x/acquire', '{}', { ...key(), ...json, origin: 'null' }],
      [400, 'node_id', 'POST', '/v1/cluster/transfer', '{"node_id":99}', json],
      [410, '', 'DELETE', `/v1/leases/${'0'.repeat(32)}`, '', {}],
      ...adminCases(),
    ];
    for (const [status, field, method, path, raw, headers] of cases) {
      const question = { raw, headers: headers as Record<string, string> };
      const answer = await client.ask(method, `${follower}${path}`, question);
      t.equal(answer.status, status, `${method} ${path.slice(0, 60)} ${answer.text.slice(0, 200)}`);
      if (field !== '') t.equal(answer.json.error.field, field, answer.text);
    }
    const own = { headers: { origin: follower } };
    t.equal((await client.get(`${follower}/v1/locks/x`, own)).status, 200, 'its own pages may');
  },
);

t.test('livez, readyz, status, metrics say what is', async (t) => {
  for (const nodeId of cluster.nodeIds) {
    const base = cluster.httpUrl(nodeId);
    t.equal((await client.get(`${base}/livez`)).status, 200);
    const ready = await client.get(`${base}/readyz`);
    t.equal(ready.status, 200, ready.text);
    const status = await client.get(`${base}/v1/cluster/status`);
    t.equal(status.json.node, nodeId);
    t.equal(status.json.leader.node_id, await cluster.leader());
    const metrics = await client.get(`${base}/metrics`);
    t.match(metrics.text, /^holdfast_revision \d+$/m);
    t.match(metrics.text, /holdfast_http_request_duration_seconds_count|holdfast_http_calls/);
  }
});

t.test('requests are pipelined on one connection', async (t) => {
  const { hostname, port } = new URL(follower);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const all = Array.from({ length: 50 }, (_, at) => {
    return new Promise<number>((resolve, reject) => {
      const options = { hostname, port, path: `/v1/locks/l-${at}`, agent };
      http
        .get(options, (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        })
        .on('error', reject);
    });
  });
  t.same(new Set(await Promise.all(all)), new Set([200]));
});

t.test('a node says what it knows of its disk, and checks it when it is asked', async (t) => {
  const path = `${follower}/v1/cluster/scrub`;
  const before = await client.get(path);
  t.match(before.json, { enabled: true, faults: [], failure: null, asked_pass: null });
  const asked = await client.post(path, {});
  t.equal(asked.status, 200, asked.text);
  const wanted = asked.json.asked_pass;
  t.ok(wanted > before.json.passes, `pass ${wanted}`);
  const after = await waitFor('the pass to end', async () => {
    const { json } = await client.get(path);
    return json.passes >= wanted ? json : null;
  });
  t.match(after, { passes_failed: 0, faults: [] });
  t.ok(after.segments > 0, `${after.segments} segments`);
  const headers = { 'content-type': 'text/plain' };
  const refused = await fetch(path, { method: 'POST', body: '{}', headers });
  t.equal(refused.status, 400, 'a page of another site cannot begin one');
});

t.test('transfer through a follower; the document says nothing that was not driven', async (t) => {
  const before = await cluster.leader();
  const target = cluster.nodeIds.find((nodeId) => nodeId !== before) ?? 0;
  const asked = await client.post(`${follower}/v1/cluster/transfer`, { node_id: target });
  t.equal(asked.status, 200, asked.text);
  t.not(await cluster.leaderOtherThan(before), before);
  await client.get(`${leader}/openapi.json`);
  t.equal(Object.keys(document.paths).length, new Set(ROUTES.map((route) => route.path)).size);
  for (const route of ROUTES) {
    if (route.kind === 'stream') continue;
    t.ok(client.seen.has(`${route.id} 200`), `${route.id} was driven and validated`);
  }
});

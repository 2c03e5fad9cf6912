/**
 * The one table of HTTP routes: method, path, what each takes and gives.
 *
 * Owns: the public face of the HTTP interface. The door routes by it, /openapi.json and
 * docs/HTTP.md are generated from it, and a test drives each row. Never: a handler.
 * Used by: io/http, openapi.ts, docs, tests.
 */

/** How a parameter is written: in JSON by its type, in a query or path as text. */
export type ParameterType = 'text' | 'count' | 'flag' | 'id';

export interface Parameter {
  readonly name: string;
  readonly type: ParameterType;
  readonly isNeeded: boolean;
  readonly meaning: string;
}

/** What happens to a request: */
export type RouteKind =
  /** goes to the leader, through the log or not; */
  | 'leader'
  /** is answered by this node, linearizably unless stale; */
  | 'read'
  /** is a stream of events: server-sent events, or a WebSocket by Upgrade; */
  | 'stream'
  /** is said by this node of itself. */
  | 'own';

export interface Route {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With at most one parameter in braces, a whole segment. */
  readonly path: string;
  readonly kind: RouteKind;
  readonly meaning: string;
  /** True when Idempotency-Key or request_id has to name the operation. */
  readonly isNamed: boolean;
  /** How the session's secret comes in: not at all, beside session_id, or for the path's id. */
  readonly session: 'none' | 'optional' | 'path';
  readonly query: readonly Parameter[];
  readonly body: readonly Parameter[];
  /** Component of the answer with status 200; '' for one that is not JSON. */
  readonly answer: string;
  /** Media type of an answer that is not JSON. */
  readonly media?: string;
}

function optional(name: string, type: ParameterType, meaning: string): Parameter {
  return { name, type, isNeeded: false, meaning };
}

function needed(name: string, type: ParameterType, meaning: string): Parameter {
  return { name, type, isNeeded: true, meaning };
}

const TTL = optional('ttl_ms', 'count', 'lifetime in ms; absent: the default of the cluster');
const KEEP_TTL = optional('ttl_ms', 'count', 'new lifetime in ms; absent: as before');
const METADATA = optional('metadata', 'text', 'shown to whoever asks who holds; up to 1,024 bytes');
const WAIT = optional('wait_ms', 'count', 'how long to stand in line; absent: 0, a try');
const REQUEST = optional('request_id', 'text', 'names the operation when no Idempotency-Key does');
const SESSION = optional('session_id', 'id', 'the session; its secret in Holdfast-Session-Secret');
const NOT_AFTER = optional('not_after', 'count', 'cluster time from which a first arrival is void');
const STALE = optional('stale', 'flag', 'true: from what this node has applied, with age_ms');
const REVISION = optional('revision', 'count', 'first revision wanted; absent: the next one');
const VALUE = needed('value', 'text', 'what observers see; up to 1,024 bytes');
const LEASE = needed('lease_id', 'id', 'of the campaign');

const ACTOR = needed('actor', 'text', 'who asks, as they name themselves; up to 128 bytes');
const REASON = needed('reason', 'text', 'why; up to 1,024 bytes');

const PLAIN = { isNamed: false, session: 'none', query: [], body: [] } as const;

const LOCKS: readonly Route[] = [
  {
    ...PLAIN,
    id: 'acquire',
    method: 'POST',
    path: '/v1/locks/{name}/acquire',
    kind: 'leader',
    meaning: 'Acquires a lock. With wait_ms it is a long poll: 200, or 408 WAIT_TIMEOUT.',
    isNamed: true,
    session: 'optional',
    body: [
      TTL,
      WAIT,
      SESSION,
      optional('expected_revision', 'count', 'refuse if the lock changed after it; only a try'),
      METADATA,
      NOT_AFTER,
      REQUEST,
    ],
    answer: 'Grant',
  },
  {
    ...PLAIN,
    id: 'get',
    method: 'GET',
    path: '/v1/locks/{name}',
    kind: 'read',
    meaning: 'Who holds a lock and who waits for it. With revision: as …/watch.',
    query: [
      STALE,
      optional('at_least_revision', 'count', 'wait until the answer includes it'),
      REVISION,
    ],
    answer: 'Lock',
  },
  {
    ...PLAIN,
    id: 'list',
    method: 'GET',
    path: '/v1/locks',
    kind: 'read',
    meaning: 'Locks that are held or waited for, in byte order of their names, page by page.',
    query: [
      optional('prefix', 'text', 'first bytes of the names'),
      optional('cursor', 'text', 'next_cursor of the page before'),
      optional('limit', 'count', 'rows wanted, 1 to 250; absent: 100'),
      STALE,
    ],
    answer: 'LockPage',
  },
  {
    ...PLAIN,
    id: 'check',
    method: 'GET',
    path: '/v1/locks/{name}/check',
    kind: 'read',
    meaning: 'Whether a token is the current one. A guard at the resource is safer.',
    query: [needed('token', 'count', 'the fencing token in question')],
    answer: 'Check',
  },
  {
    ...PLAIN,
    id: 'explain',
    method: 'GET',
    path: '/v1/locks/{name}/explain',
    kind: 'read',
    meaning: 'Why a lock is held or free, and what became of a request or a lease, in words.',
    query: [
      optional('lease_id', 'id', 'a lease of yours; absent: that of the request'),
      optional('request_id', 'text', 'a request of yours'),
    ],
    answer: 'Explanation',
  },
  {
    ...PLAIN,
    id: 'watch-lock',
    method: 'GET',
    path: '/v1/locks/{name}/watch',
    kind: 'stream',
    meaning: 'Every event of a lock, once and in order.',
    query: [REVISION, optional('snapshot', 'flag', 'true: first how the lock is')],
    answer: '',
    media: 'text/event-stream',
  },
  {
    ...PLAIN,
    id: 'watch-prefix',
    method: 'GET',
    path: '/v1/watch',
    kind: 'stream',
    meaning: 'Every event of all locks under a prefix, once and in order.',
    query: [
      optional('prefix', 'text', 'first bytes of the names; absent: every lock'),
      REVISION,
      optional('snapshot', 'flag', 'true: first how the locks are'),
    ],
    answer: '',
    media: 'text/event-stream',
  },
];

const LEASES: readonly Route[] = [
  {
    ...PLAIN,
    id: 'renew',
    method: 'POST',
    path: '/v1/leases/{lease_id}/renew',
    kind: 'leader',
    meaning: 'Keeps one lease.',
    body: [KEEP_TTL, METADATA],
    answer: 'Renewal',
  },
  {
    ...PLAIN,
    id: 'release',
    method: 'DELETE',
    path: '/v1/leases/{lease_id}',
    kind: 'leader',
    meaning: 'Ends a lease. What its own release ended answers released again.',
    answer: 'Release',
  },
];

const SESSIONS: readonly Route[] = [
  {
    ...PLAIN,
    id: 'session-open',
    method: 'POST',
    path: '/v1/sessions',
    kind: 'leader',
    meaning: 'Opens a session: leases in it live and end with it, one renewal keeps them all.',
    isNamed: true,
    body: [TTL, METADATA, REQUEST],
    answer: 'Session',
  },
  {
    ...PLAIN,
    id: 'session-renew',
    method: 'POST',
    path: '/v1/sessions/{session_id}/renew',
    kind: 'leader',
    meaning: 'Keeps a session and all its leases.',
    session: 'path',
    body: [TTL],
    answer: 'SessionTerm',
  },
  {
    ...PLAIN,
    id: 'session-close',
    method: 'DELETE',
    path: '/v1/sessions/{session_id}',
    kind: 'leader',
    meaning: 'Ends a session: cancels its waits, releases its leases.',
    session: 'path',
    answer: 'SessionEnd',
  },
];

const REQUESTS: readonly Route[] = [
  {
    ...PLAIN,
    id: 'lookup',
    method: 'GET',
    path: '/v1/requests/{request_id}',
    kind: 'read',
    meaning: 'What became of a request.',
    answer: 'Lookup',
  },
  {
    ...PLAIN,
    id: 'explain-request',
    method: 'GET',
    path: '/v1/requests/{request_id}/explain',
    kind: 'read',
    meaning: 'What became of a request and of its lock, which need not be named.',
    answer: 'Explanation',
  },
  {
    ...PLAIN,
    id: 'explain-lease',
    method: 'GET',
    path: '/v1/leases/{lease_id}/explain',
    kind: 'read',
    meaning: 'What became of a lease and of its lock, which need not be named.',
    answer: 'Explanation',
  },
  {
    ...PLAIN,
    id: 'cancel',
    method: 'DELETE',
    path: '/v1/requests/{request_id}',
    kind: 'leader',
    meaning: 'Cancels a wait, or tells what the request had become.',
    answer: 'Cancellation',
  },
];

const AUDIT: readonly Route[] = [
  {
    ...PLAIN,
    id: 'audit',
    method: 'GET',
    path: '/v1/audit',
    kind: 'read',
    meaning: 'Committed events with what caused them, page by page, also old ones.',
    query: [
      optional('prefix', 'text', 'first bytes of the names; absent: every lock'),
      REVISION,
      optional('limit', 'count', 'events wanted, 1 to 512; absent: 256'),
      optional('wait_ms', 'count', 'how long to wait for an event, at most 30,000; absent: 0'),
    ],
    answer: 'AuditPage',
  },
];

const ELECTIONS: readonly Route[] = [
  {
    ...PLAIN,
    id: 'campaign',
    method: 'POST',
    path: '/v1/elections/{name}/campaign',
    kind: 'leader',
    meaning: 'Stands for election: an acquire of the lock of this name with a value.',
    isNamed: true,
    session: 'optional',
    body: [VALUE, TTL, WAIT, SESSION, NOT_AFTER, REQUEST],
    answer: 'Grant',
  },
  {
    ...PLAIN,
    id: 'proclaim',
    method: 'POST',
    path: '/v1/elections/{name}/proclaim',
    kind: 'leader',
    meaning: 'Changes the value of who leads, and renews its lease.',
    body: [LEASE, VALUE, KEEP_TTL],
    answer: 'Renewal',
  },
  {
    ...PLAIN,
    id: 'resign',
    method: 'POST',
    path: '/v1/elections/{name}/resign',
    kind: 'leader',
    meaning: 'Steps down: the next candidate leads.',
    body: [LEASE],
    answer: 'Release',
  },
  {
    ...PLAIN,
    id: 'election',
    method: 'GET',
    path: '/v1/elections/{name}',
    kind: 'read',
    meaning: 'Who leads, or that nobody does.',
    query: [STALE],
    answer: 'Election',
  },
  {
    ...PLAIN,
    id: 'observe',
    method: 'GET',
    path: '/v1/elections/{name}/observe',
    kind: 'stream',
    meaning: 'Every change of who leads, the times without a leader included.',
    query: [REVISION, optional('snapshot', 'flag', 'true: first who leads')],
    answer: '',
    media: 'text/event-stream',
  },
];

const RULED = [
  optional('name', 'text', 'the lock; or'),
  optional('prefix', 'text', 'first bytes of the names; empty: every lock'),
  ACTOR,
  REASON,
  REQUEST,
];

const ADMIN: readonly Route[] = [
  {
    ...PLAIN,
    id: 'force-release',
    method: 'POST',
    path: '/v1/admin/locks/{name}/force-release',
    kind: 'leader',
    meaning:
      'Ends the lease that holds a lock, whoever owns it. Another holder, or none: 409 CONFLICT.',
    isNamed: true,
    body: [
      optional('fencing_token', 'count', 'the lease that is meant, by its token; or'),
      optional('lease_id', 'id', 'by its id; or'),
      optional('any', 'flag', 'true: whoever holds now'),
      ACTOR,
      REASON,
      REQUEST,
    ],
    answer: 'ForcedRelease',
  },
  {
    ...PLAIN,
    id: 'disable',
    method: 'POST',
    path: '/v1/admin/disable',
    kind: 'leader',
    meaning: 'Refuses new acquires of a lock, or of all under a prefix. At most 256 of both.',
    isNamed: true,
    body: RULED,
    answer: 'AdminChange',
  },
  {
    ...PLAIN,
    id: 'enable',
    method: 'POST',
    path: '/v1/admin/enable',
    kind: 'leader',
    meaning: 'Takes back exactly that; revision 0 when there was nothing to take back.',
    isNamed: true,
    body: RULED,
    answer: 'AdminChange',
  },
  {
    ...PLAIN,
    id: 'expire-session',
    method: 'POST',
    path: '/v1/admin/sessions/{session_id}/expire',
    kind: 'leader',
    meaning: 'Ends a session, whoever owns it, with its waits and leases.',
    isNamed: true,
    body: [ACTOR, REASON, REQUEST],
    answer: 'AdminChange',
  },
  {
    ...PLAIN,
    id: 'report-refusal',
    method: 'POST',
    path: '/v1/admin/refusals',
    kind: 'leader',
    meaning: 'A guard tells that it refused stale tokens.',
    isNamed: true,
    body: [
      needed('name', 'text', 'the lock'),
      needed('fencing_token', 'count', 'the token that was refused'),
      needed('mark', 'count', 'the newest token that the resource had seen'),
      needed('refusals', 'count', 'how many, since the last report; 1 or more'),
      optional('guard', 'text', 'what kind of guard; up to 64 bytes'),
      REQUEST,
    ],
    answer: 'AdminChange',
  },
];

const NODE: readonly Route[] = [
  {
    ...PLAIN,
    id: 'status',
    method: 'GET',
    path: '/v1/cluster/status',
    kind: 'own',
    meaning: 'What this node says of itself and of the cluster.',
    answer: 'Status',
  },
  {
    ...PLAIN,
    id: 'scrub',
    method: 'GET',
    path: '/v1/cluster/scrub',
    kind: 'own',
    meaning: 'What the background check of this node’s disk has read and found.',
    answer: 'Scrub',
  },
  {
    ...PLAIN,
    id: 'scrub-now',
    method: 'POST',
    path: '/v1/cluster/scrub',
    kind: 'own',
    meaning: 'Begins a pass of it; `asked_pass` is what `passes` is when it is through.',
    answer: 'Scrub',
  },
  {
    ...PLAIN,
    id: 'transfer',
    method: 'POST',
    path: '/v1/cluster/transfer',
    kind: 'leader',
    meaning: 'Asks the leader to hand over to another node.',
    body: [needed('node_id', 'count', 'who shall lead')],
    answer: 'Transfer',
  },
  {
    ...PLAIN,
    id: 'livez',
    method: 'GET',
    path: '/livez',
    kind: 'own',
    meaning: 'The process answers.',
    answer: 'Live',
  },
  {
    ...PLAIN,
    id: 'readyz',
    method: 'GET',
    path: '/readyz',
    kind: 'own',
    meaning: '200 when requests sent here can succeed, 503 when not, with the reason.',
    answer: 'Ready',
  },
  {
    ...PLAIN,
    id: 'metrics',
    method: 'GET',
    path: '/metrics',
    kind: 'own',
    meaning: 'Metrics in the text format of Prometheus.',
    answer: '',
    media: 'text/plain',
  },
  {
    ...PLAIN,
    id: 'openapi',
    method: 'GET',
    path: '/openapi.json',
    kind: 'own',
    meaning: 'This interface as OpenAPI 3.1.',
    answer: '',
    media: 'application/json',
  },
];

/** Every route, by topic. */
export const ROUTES: readonly Route[] = [
  ...LOCKS,
  ...LEASES,
  ...SESSIONS,
  ...REQUESTS,
  ...AUDIT,
  ...ELECTIONS,
  ...ADMIN,
  ...NODE,
];

/** Path of the WebSocket that carries frames of the binary protocol. */
export const WEBSOCKET_PATH = '/v1/ws';

/** Request headers that mean something here. */
export const HttpHeader = {
  Key: 'idempotency-key',
  Secret: 'holdfast-session-secret',
  Deadline: 'holdfast-deadline-ms',
  Trace: 'traceparent',
} as const;

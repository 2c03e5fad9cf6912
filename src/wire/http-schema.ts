/**
 * The JSON objects of the HTTP interface, as JSON Schemas.
 *
 * Owns: the names and shapes of what is answered; /openapi.json has them as components, and a test
 * validates every answer of a node against them. Never: a value. Used by: http-routes.ts, openapi.
 */
import { ERROR_ROWS } from './errors.js';
import { EXPLAIN_CAUSES } from './explain.js';

/** A JSON Schema (2020-12). */
export type Schema = { readonly [key: string]: unknown };

const COUNT: Schema = { type: 'integer', minimum: 0 };
const TIME: Schema = { type: 'integer', minimum: 0, description: 'cluster time, ms' };
const TEXT: Schema = { type: 'string' };
const FLAG: Schema = { type: 'boolean' };
const ID: Schema = { type: 'string', pattern: '^[0-9a-f]{32}$' };
const METADATA: Schema = { type: ['string', 'null'] };

/** An object whose properties are all there, but for those named as optional. */
function object(properties: { readonly [name: string]: Schema }, optional: readonly string[] = []) {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', properties, required, additionalProperties: false } as const;
}

function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] };
}

/** Reference to a component. */
export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

const HOLDER = object(
  {
    fencing_token: COUNT,
    since: TIME,
    expires_at: TIME,
    expires_in_ms: COUNT,
    last_renewed: TIME,
    principal: COUNT,
    in_session: FLAG,
    metadata: METADATA,
    metadata_base64: TEXT,
  },
  ['metadata_base64'],
);

const WAITER = object(
  {
    place: COUNT,
    since: TIME,
    until: TIME,
    principal: COUNT,
    metadata: METADATA,
    metadata_base64: TEXT,
  },
  ['metadata_base64'],
);

const ROW = {
  name: TEXT,
  last_revision: { ...COUNT, type: ['integer', 'null'] },
  holder: nullable(ref('Holder')),
  waiters: COUNT,
  fencing: { enum: ['required', 'best-effort'] },
};

const RULE = object({
  name: TEXT,
  is_prefix: FLAG,
  revision: COUNT,
  since: TIME,
  principal: COUNT,
  asked_by: { type: ['string', 'null'] },
  reason: { type: ['string', 'null'] },
});

const READ_POINT = {
  revision: COUNT,
  applied_index: COUNT,
  cluster_time: TIME,
  age_ms: COUNT,
};

const GRANT = {
  lease_id: ID,
  fencing_token: COUNT,
  revision: COUNT,
  ttl_ms: COUNT,
  expires_at: TIME,
  expires_in_ms: COUNT,
};

const FORCED = {
  barrier_token: COUNT,
  fencing_token: COUNT,
  since: TIME,
  expires_at: TIME,
  principal: COUNT,
  metadata: METADATA,
  metadata_base64: TEXT,
};

const TERM = { ttl_ms: COUNT, expires_at: TIME, expires_in_ms: COUNT, cluster_time: TIME };

const MEMBER = object({
  node_id: COUNT,
  address: TEXT,
  role: { enum: ['voter', 'learner'] },
});

const STATUS = object({
  node: COUNT,
  role: { enum: ['follower', 'pre-candidate', 'candidate', 'leader'] },
  term: COUNT,
  leader: nullable(object({ node_id: COUNT, address: TEXT })),
  serving: FLAG,
  applied_index: COUNT,
  commit_index: COUNT,
  revision: COUNT,
  cluster_time: TIME,
  digest: object({ value: TEXT, index: COUNT }),
  feature_level: COUNT,
  members: { type: 'array', items: MEMBER },
  counters: { type: 'object', additionalProperties: { type: 'integer' } },
});

const ERROR = object({
  error: {
    type: 'object',
    properties: {
      code: { enum: [...ERROR_ROWS.map((row) => row.code), 'NOT_FOUND', 'METHOD_NOT_ALLOWED'] },
      message: TEXT,
      retryable: FLAG,
      outcome: { enum: ['none', 'applied', 'unknown'] },
      field: TEXT,
      retry_after_ms: COUNT,
      holder: nullable(
        object(
          {
            fencing_token: COUNT,
            since: TIME,
            expires_at: TIME,
            principal: COUNT,
            metadata: METADATA,
            metadata_base64: TEXT,
          },
          ['metadata_base64'],
        ),
      ),
      leader: nullable(object({ node_id: COUNT, address: TEXT })),
      cause: TEXT,
      ended_revision: COUNT,
      oldest_revision: COUNT,
      revision: COUNT,
      cluster_time: TIME,
      request_id: TEXT,
    },
    required: ['code', 'message', 'retryable', 'outcome'],
    additionalProperties: false,
  },
});

const EVENT_TYPES = [
  ...['granted', 'ended', 'queued', 'left'],
  ...['disabled', 'enabled', 'refused', 'fenced', 'expelled', 'restored'],
];

const EVENT = object({
  type: { enum: EVENT_TYPES },
  revision: COUNT,
  name: TEXT,
  fencing_token: COUNT,
  place: COUNT,
  cause: { type: ['string', 'null'] },
  principal: COUNT,
  cluster_time: TIME,
});

const AUDIT_EVENT = object(
  {
    id: TEXT,
    schema: { const: 1 },
    ...EVENT.properties,
    log_index: COUNT,
    actor: COUNT,
    command: { type: ['string', 'null'] },
    request_id: { type: ['string', 'null'] },
    request_id_hex: TEXT,
    sequence: { type: ['integer', 'null'] },
    session_id: nullable(ID),
    trace_id: nullable(ID),
    asked_by: { type: ['string', 'null'] },
    reason: { type: ['string', 'null'] },
    refusals: COUNT,
  },
  ['request_id_hex', 'refusals'],
);

const EXPLANATION = object({
  name: nullable(TEXT),
  cause: { enum: Object.keys(EXPLAIN_CAUSES) },
  says: { type: 'array', items: TEXT },
  frees: nullable(TEXT),
  fencing: ROW.fencing,
  holder: ROW.holder,
  waiters: COUNT,
  queue: { type: 'array', items: ref('Waiter') },
  events: { type: 'array', items: ref('Event') },
  disabled: nullable(ref('Rule')),
  said: {
    type: 'array',
    items: object({
      revision: COUNT,
      command: { type: ['string', 'null'] },
      principal: COUNT,
      asked_by: { type: ['string', 'null'] },
      reason: { type: ['string', 'null'] },
    }),
  },
  request: nullable(
    object({
      state: { enum: ['done', 'queued', 'unknown', 'forgotten', 'session_gone'] },
      code: { type: ['string', 'null'] },
      place: { type: ['integer', 'null'] },
      fencing_token: { type: ['integer', 'null'] },
      revision: { type: ['integer', 'null'] },
    }),
  ),
  lease: nullable(
    object({
      state: { enum: ['held', 'overdue', 'ended', 'unknown'] },
      name: { type: ['string', 'null'] },
      fencing_token: { type: ['integer', 'null'] },
      expires_at: { type: ['integer', 'null'] },
      cause: { type: ['string', 'null'] },
      ended_revision: { type: ['integer', 'null'] },
    }),
  ),
  revision: COUNT,
  applied_index: COUNT,
  cluster_time: TIME,
});

const ELECTION = object(
  {
    name: TEXT,
    leader: nullable(
      object(
        {
          value: METADATA,
          value_base64: TEXT,
          fencing_token: COUNT,
          since: TIME,
          expires_at: TIME,
          expires_in_ms: COUNT,
        },
        ['value_base64'],
      ),
    ),
    candidates: COUNT,
    revision: COUNT,
    cluster_time: TIME,
  },
  [],
);

const SCRUB = object({
  node: COUNT,
  enabled: FLAG,
  running: FLAG,
  paused: FLAG,
  passes: COUNT,
  passes_failed: COUNT,
  failure: { type: ['string', 'null'] },
  bytes: COUNT,
  age_ms: COUNT,
  segments: COUNT,
  snapshots: COUNT,
  faults: {
    type: 'array',
    items: object({
      kind: { enum: ['log', 'snapshot', 'history'] },
      file: TEXT,
      index: COUNT,
      found: TEXT,
      means: TEXT,
      remedy: TEXT,
    }),
  },
  asked_pass: nullable(COUNT),
});

/** Every component, by its name. */
export const HTTP_SCHEMAS: { readonly [name: string]: Schema } = {
  Holder: HOLDER,
  Waiter: WAITER,
  LockRow: object(ROW),
  Lock: object(
    {
      ...ROW,
      queue: { type: 'array', items: ref('Waiter') },
      disabled: nullable(ref('Rule')),
      ...READ_POINT,
    },
    ['age_ms'],
  ),
  Rule: RULE,
  LockPage: object(
    {
      locks: { type: 'array', items: ref('LockRow') },
      next_cursor: { type: ['string', 'null'] },
      ...READ_POINT,
    },
    ['age_ms'],
  ),
  Check: object({
    name: TEXT,
    verdict: { enum: ['current', 'stale'] },
    fencing_token: COUNT,
    cluster_time: TIME,
  }),
  Grant: object({ name: TEXT, ...GRANT, cluster_time: TIME, replay: FLAG, request_id: TEXT }),
  Renewal: object({ lease_id: ID, fencing_token: COUNT, ...TERM }),
  Release: object({
    lease_id: ID,
    released: { const: true },
    revision: COUNT,
    cluster_time: TIME,
    replay: FLAG,
  }),
  Session: object({
    session_id: ID,
    secret: ID,
    ...TERM,
    replay: FLAG,
    request_id: TEXT,
  }),
  SessionTerm: object({ session_id: ID, ...TERM }),
  SessionEnd: object({ session_id: ID, closed: { const: true }, cluster_time: TIME, replay: FLAG }),
  Lookup: object(
    {
      request_id: TEXT,
      state: { enum: ['done', 'queued', 'unknown', 'forgotten'] },
      code: TEXT,
      place: COUNT,
      session_id: ID,
      secret: ID,
      ...GRANT,
      ...FORCED,
      cluster_time: TIME,
    },
    ['code', 'place', 'session_id', 'secret', ...Object.keys({ ...GRANT, ...FORCED })],
  ),
  Cancellation: object(
    { request_id: TEXT, cancelled: FLAG, code: TEXT, ...GRANT, cluster_time: TIME },
    Object.keys(GRANT),
  ),
  Election: ELECTION,
  Event: EVENT,
  Explanation: EXPLANATION,
  AuditEvent: AUDIT_EVENT,
  AuditPage: object({
    events: { type: 'array', items: ref('AuditEvent') },
    next_revision: COUNT,
    oldest_revision: COUNT,
    revision: COUNT,
    cluster_id: ID,
    cluster_time: TIME,
  }),
  ForcedRelease: object(
    { name: TEXT, ...FORCED, cluster_time: TIME, replay: FLAG, request_id: TEXT },
    ['metadata_base64'],
  ),
  AdminChange: object({ revision: COUNT, cluster_time: TIME, replay: FLAG, request_id: TEXT }),
  Transfer: object({ node_id: COUNT, asked: { const: true } }),
  Status: STATUS,
  Scrub: SCRUB,
  Live: object({ live: { const: true }, node: COUNT }),
  Ready: object({
    ready: FLAG,
    node: COUNT,
    role: TEXT,
    leader_id: COUNT,
    age_ms: COUNT,
    reason: TEXT,
  }),
  Error: ERROR,
};

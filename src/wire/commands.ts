/**
 * The table of commands: number, name, what each takes and gives, place by place.
 *
 * Owns: the public words for commands and fields. docs/PROTOCOL.md is generated from it, and tests
 * hold the decoders and encoders against it. Never: on the hot path. Used by: docs, tests, CLI.
 */
import { CommandKind, LOGGED_COMMAND_MIN } from '../core/locks/command.js';

/** How a field is written in MessagePack; docs/PROTOCOL.md explains each. */
export type FieldType =
  | 'uint'
  | 'bool'
  | 'id'
  | 'text'
  | 'bytes'
  | 'request'
  | 'acknowledged'
  | 'array'
  | 'map'
  | 'reply';

export interface FieldRow {
  readonly name: string;
  readonly type: FieldType;
  /** False when nil stands for absent. */
  readonly isNeeded: boolean;
  readonly meaning: string;
}

export interface CommandRow {
  readonly number: CommandKind;
  readonly name: string;
  /** Goes through the log, so only the leader takes it and the head comes before its fields. */
  readonly isLogged: boolean;
  readonly meaning: string;
  /** After the command number, or after the head of a logged command. */
  readonly fields: readonly FieldRow[];
  /** After the head of a reply with code Ok. */
  readonly replyFields: readonly FieldRow[];
}

function needed(name: string, type: FieldType, meaning: string): FieldRow {
  return { name, type, isNeeded: true, meaning };
}

function optional(name: string, type: FieldType, meaning: string): FieldRow {
  return { name, type, isNeeded: false, meaning };
}

/** Elements 0 to 4 of every logged command. */
export const HEAD_ROWS: readonly FieldRow[] = [
  needed('command', 'uint', 'number of the command'),
  optional('request', 'request', 'what the caller calls this operation, for ever'),
  optional('session', 'id', 'the session that it belongs to'),
  optional('acknowledged', 'acknowledged', 'results that the caller has and needs no more'),
  optional('trace', 'id', 'trace id (W3C Trace Context)'),
];

const TTL = optional('ttl_ms', 'uint', 'lifetime; absent: the default of the cluster');
const METADATA = optional(
  'metadata',
  'bytes',
  'shown to whoever asks who holds; at most 1,024 bytes',
);
const STALE = optional('stale', 'bool', 'true: answer from what this node has applied');
const LEASE = needed('lease', 'id', 'the lease');
const NAME = needed('name', 'text', 'the lock');

const DEADLINE = needed('deadline', 'uint', 'cluster time in ms at which it ends');
const GRANTED_TTL = needed('ttl_ms', 'uint', 'lifetime granted');
const REVISION = needed('revision', 'uint', 'last revision that the answer includes');
const APPLIED = needed('applied_index', 'uint', 'last log entry that the answer includes');
const AGE = optional('age_ms', 'uint', 'stale reads: since this node last learnt a commit index');
const MEMBERS = needed('members', 'array', 'of [node_id, "host:port", role]');

const GRANT: readonly FieldRow[] = [
  needed('lease', 'id', 'proof of ownership: keep it secret'),
  needed('token', 'uint', 'fencing token: pass it to what the lock protects'),
  needed('revision', 'uint', 'revision of the grant'),
  DEADLINE,
  GRANTED_TTL,
];

const QUERIES: readonly CommandRow[] = [
  {
    number: CommandKind.Hello,
    name: 'hello',
    isLogged: false,
    meaning: 'Greets the node. The first request of every connection.',
    fields: [
      needed('version_max', 'uint', 'highest protocol version the client speaks: 1'),
      optional('client_name', 'text', 'what the client calls itself, at most 64 bytes'),
      optional('credential', 'bytes', 'at most 1,024 bytes'),
    ],
    replyFields: [
      needed('version', 'uint', 'protocol version spoken from now on'),
      needed('feature_level', 'uint', 'fields above it are refused'),
      needed('node_id', 'uint', 'the node that answers'),
      needed('leader_id', 'uint', 'the leader it knows, 0 for none'),
      needed('shard_count', 'uint', '1'),
      needed('cluster_id', 'id', 'drawn when the cluster was founded'),
      needed('frame_bytes_max', 'uint', 'greatest body of a frame, both ways'),
      MEMBERS,
    ],
  },
  {
    number: CommandKind.Ping,
    name: 'ping',
    isLogged: false,
    meaning:
      'Answers at once. The head of the reply has the cluster time that the node has applied.',
    fields: [],
    replyFields: [],
  },
  {
    number: CommandKind.Members,
    name: 'members',
    isLogged: false,
    meaning: 'Who is in the cluster and who leads, as far as this node knows.',
    fields: [],
    replyFields: [needed('leader_id', 'uint', '0 for none'), MEMBERS],
  },
  {
    number: CommandKind.SessionAttach,
    name: 'session_attach',
    isLogged: false,
    meaning: 'Binds a session to this connection; the newest binding wins.',
    fields: [needed('session', 'id', 'the session'), needed('secret', 'id', 'its secret')],
    replyFields: [
      DEADLINE,
      GRANTED_TTL,
      needed('ended', 'bool', 'true: over, only its results can still be asked for'),
    ],
  },
  {
    number: CommandKind.Get,
    name: 'get',
    isLogged: false,
    meaning: 'Who holds a lock and who waits for it.',
    fields: [
      NAME,
      STALE,
      optional('at_least_revision', 'uint', 'wait until the answer includes this revision'),
    ],
    replyFields: [
      optional('lock', 'array', 'lock row with queue; nil: never used, or idle and forgotten'),
      REVISION,
      APPLIED,
      AGE,
      optional('disabled', 'array', 'the rule that disables it; left out when there is none'),
    ],
  },
  {
    number: CommandKind.List,
    name: 'list',
    isLogged: false,
    meaning: 'Locks that are held or waited for, in byte order of their names, page by page.',
    fields: [
      optional('prefix', 'text', 'first bytes of the names; absent: all'),
      optional('cursor', 'text', 'last name of the page before'),
      optional('limit', 'uint', 'rows wanted, 1 to 250; absent: 100'),
      STALE,
    ],
    replyFields: [
      needed('locks', 'array', 'of lock rows without queue'),
      optional('next_cursor', 'text', 'nil on the last page'),
      REVISION,
      APPLIED,
      AGE,
    ],
  },
  {
    number: CommandKind.Lookup,
    name: 'lookup',
    isLogged: false,
    meaning: 'What became of a request of this principal.',
    fields: [
      optional('session', 'id', 'needed when the request is a sequence'),
      needed('request', 'request', 'the request id'),
    ],
    replyFields: [
      needed('state', 'text', '"done", "queued", "unknown" or "forgotten"'),
      optional('result', 'reply', 'done, queued: the reply without its correlation'),
    ],
  },
  {
    number: CommandKind.Check,
    name: 'check',
    isLogged: false,
    meaning: 'Whether a token is the current one of a lock. A guard at the resource is safer.',
    fields: [NAME, needed('token', 'uint', 'the token in question')],
    replyFields: [
      needed('verdict', 'text', '"current" or "stale"'),
      needed('token', 'uint', 'token of the holder, 0 when nobody holds'),
    ],
  },
  {
    number: CommandKind.Status,
    name: 'status',
    isLogged: false,
    meaning: 'What the node says of itself.',
    fields: [],
    replyFields: [needed('status', 'map', 'see Status')],
  },
  {
    number: CommandKind.Watch,
    name: 'watch',
    isLogged: false,
    meaning:
      'Tells every event of a lock, or of all locks under a prefix, in order and once. Answered ' +
      'many times with code 2 under the same correlation, until unwatch or an error.',
    fields: [
      optional('name', 'text', 'the lock; or'),
      optional('prefix', 'text', 'first bytes of the names; empty: every lock'),
      optional('revision', 'uint', 'first revision wanted; absent: the next one'),
      optional('snapshot', 'bool', 'true: first the locks as they are; not beside a revision'),
    ],
    replyFields: [
      needed('events', 'array', 'of event rows; empty: a mark of progress'),
      needed('revision', 'uint', 'every event up to it has been told'),
      optional('locks', 'array', 'of lock rows: a part of the snapshot; nil: it is over'),
    ],
  },
  {
    number: CommandKind.Unwatch,
    name: 'unwatch',
    isLogged: false,
    meaning: 'Ends a watch of this connection. Nothing is told under its correlation any more.',
    fields: [needed('correlation', 'uint', 'that of the watch')],
    replyFields: [],
  },
  {
    number: CommandKind.Transfer,
    name: 'transfer',
    isLogged: false,
    meaning: 'Asks the leader to hand over to another node.',
    fields: [needed('node_id', 'uint', 'who shall lead')],
    replyFields: [],
  },
  {
    number: CommandKind.Abandon,
    name: 'abandon',
    isLogged: false,
    meaning:
      'Nobody waits any more for the result of a queued acquire. Without a session its place ' +
      'lapses, as if the connection had gone; the same request id takes it up again.',
    fields: [
      needed('correlation', 'uint', 'that of the acquire'),
      needed('place', 'uint', 'its place in the queue'),
    ],
    replyFields: [],
  },
  {
    number: CommandKind.Audit,
    name: 'audit',
    isLogged: false,
    meaning: 'Committed events with what caused them, from a revision on, page by page.',
    fields: [
      optional('prefix', 'text', 'first bytes of the names; absent: every lock'),
      optional('revision', 'uint', 'first revision wanted; absent: the next one'),
      optional('limit', 'uint', 'events wanted, 1 to 512; absent: 256'),
      optional('wait_ms', 'uint', 'how long to wait for an event, at most 30,000; absent: 0'),
    ],
    replyFields: [
      needed('events', 'array', 'of audit rows'),
      needed('next_revision', 'uint', 'where the next page begins'),
      needed('oldest_revision', 'uint', 'the oldest that this node can show'),
      needed('revision', 'uint', 'the last that it has applied'),
      needed('cluster_id', 'id', 'with a revision it is the id of an event'),
    ],
  },
  {
    number: CommandKind.Explain,
    name: 'explain',
    isLogged: false,
    meaning: 'Why a lock is held or free, and what became of a request or a lease there.',
    fields: [
      NAME,
      optional('session', 'id', 'needed when the request is a sequence'),
      optional('request', 'request', 'a request of this principal'),
      optional('lease', 'id', 'a lease of this principal; absent: that of the request'),
    ],
    replyFields: [
      optional('lock', 'array', 'lock row with queue; nil: never used, or idle and forgotten'),
      needed('events', 'array', 'of event rows: its newest ones, the oldest first'),
      optional('request', 'array', 'of [state, code, place, token, revision]'),
      optional('lease', 'array', 'of [state, name|nil, token, deadline, cause, revision]'),
      REVISION,
      APPLIED,
      optional('disabled', 'array', 'the rule that disables it; left out with the next one'),
      optional(
        'said',
        'array',
        'of [revision, command, actor, asked_by|nil, reason|nil], or left out',
      ),
      optional('grants_from', 'uint', 'after a restore: when the first grant may be'),
    ],
  },
];

const SESSIONS: readonly CommandRow[] = [
  {
    number: CommandKind.SessionOpen,
    name: 'session_open',
    isLogged: true,
    meaning: 'Opens a session and attaches it to this connection. Named by a free-form request id.',
    fields: [TTL, METADATA],
    replyFields: [
      needed('session', 'id', 'the session'),
      needed('secret', 'id', 'to attach it elsewhere: keep it secret'),
      DEADLINE,
      GRANTED_TTL,
    ],
  },
  {
    number: CommandKind.SessionRenew,
    name: 'session_renew',
    isLogged: true,
    meaning: 'Keeps a session and all its leases.',
    fields: [TTL],
    replyFields: [DEADLINE, GRANTED_TTL],
  },
  {
    number: CommandKind.SessionClose,
    name: 'session_close',
    isLogged: true,
    meaning: 'Ends a session: cancels its waits, releases its leases.',
    fields: [],
    replyFields: [],
  },
  {
    number: CommandKind.SessionTakeOver,
    name: 'session_take_over',
    isLogged: true,
    meaning: 'Its place is reserved; refused at feature level 1.',
    fields: [needed('secret', 'id', 'the secret of the session')],
    replyFields: [
      needed('session', 'id', 'the session'),
      needed('secret', 'id', 'its new secret'),
      DEADLINE,
      GRANTED_TTL,
    ],
  },
];

const LEASES: readonly CommandRow[] = [
  {
    number: CommandKind.Acquire,
    name: 'acquire',
    isLogged: true,
    meaning: 'Acquires a lock, waits for it, or is refused. Needs a request id.',
    fields: [
      NAME,
      TTL,
      optional('wait_ms', 'uint', 'how long to queue, in cluster time; absent: 0, a try'),
      optional('mode', 'uint', '0 exclusive; others are reserved'),
      optional('permits', 'uint', 'reserved'),
      optional('capacity', 'uint', 'reserved'),
      optional('expected_revision', 'uint', 'refuse if the lock changed after it; only with a try'),
      optional('owner', 'bytes', 'reserved'),
      METADATA,
      optional('not_after', 'uint', 'cluster time after which a first arrival has no effect'),
      optional('lock_delay_ms', 'uint', 'reserved'),
      optional('hold_ms_max', 'uint', 'reserved'),
    ],
    replyFields: GRANT,
  },
  {
    number: CommandKind.Renew,
    name: 'renew',
    isLogged: true,
    meaning: 'Keeps one lease. A request id is not needed.',
    fields: [LEASE, optional('ttl_ms', 'uint', 'new lifetime; absent: as before'), METADATA],
    replyFields: [DEADLINE, GRANTED_TTL, needed('token', 'uint', 'that of the grant')],
  },
  {
    number: CommandKind.Release,
    name: 'release',
    isLogged: true,
    meaning: 'Ends a lease. Releasing what its own release ended answers released again.',
    fields: [LEASE],
    replyFields: [needed('revision', 'uint', 'revision of the release')],
  },
  {
    number: CommandKind.Cancel,
    name: 'cancel',
    isLogged: true,
    meaning: 'Cancels a wait, or tells what the request had become.',
    fields: [needed('target', 'request', 'request id of the wait; a sequence is of this session')],
    replyFields: [
      needed('cause', 'uint', 'code of the final result of the target'),
      ...GRANT.map((field) => ({ ...field, isNeeded: false })),
    ],
  },
];

const ACTOR = needed('actor', 'text', 'who asks, as they name themselves; at most 128 bytes');
const REASON = needed('reason', 'text', 'why; at most 1,024 bytes');
const RULED: readonly FieldRow[] = [
  optional('name', 'text', 'the lock; or'),
  optional('prefix', 'text', 'first bytes of the names; empty: every lock'),
  ACTOR,
  REASON,
];

const ADMIN: readonly CommandRow[] = [
  {
    number: CommandKind.ForceRelease,
    name: 'force_release',
    isLogged: true,
    meaning:
      'Ends the lease that holds a lock, whoever owns it; the next waiter is granted in the same ' +
      'entry. Another holder than the one named, or none: CONFLICT, with the holder.',
    fields: [
      NAME,
      optional('lease', 'id', 'the lease that is meant'),
      optional('token', 'uint', 'the token that is meant; neither: whoever holds'),
      ACTOR,
      REASON,
    ],
    replyFields: [
      needed('revision', 'uint', 'the barrier token: above that of the lease that ended'),
      needed('token', 'uint', 'that of the lease that ended'),
      needed('since', 'uint', 'cluster time of its grant'),
      needed('deadline', 'uint', 'cluster time until which it was held'),
      needed('principal', 'uint', 'whose it was'),
      needed('metadata', 'bytes', 'its metadata'),
    ],
  },
  {
    number: CommandKind.Disable,
    name: 'disable',
    isLogged: true,
    meaning:
      'From now on no acquire of the lock, or of any under the prefix, is taken: DISABLED. The ' +
      'holder and the queue stay as they are. At most 256 names and prefixes.',
    fields: RULED,
    replyFields: [needed('revision', 'uint', 'revision since which it is disabled')],
  },
  {
    number: CommandKind.Enable,
    name: 'enable',
    isLogged: true,
    meaning: 'Takes back a disable of exactly this name or prefix.',
    fields: RULED,
    replyFields: [needed('revision', 'uint', 'revision of the change, 0 when there was none')],
  },
  {
    number: CommandKind.ExpireSession,
    name: 'expire_session',
    isLogged: true,
    meaning: 'Ends a session, whoever owns it, with its waits and leases.',
    fields: [needed('target', 'id', 'the session'), ACTOR, REASON],
    replyFields: [needed('revision', 'uint', 'revision of its end')],
  },
  {
    number: CommandKind.ReportRefusal,
    name: 'report_refusal',
    isLogged: true,
    meaning: 'A guard tells that it refused stale tokens: it shows in events, audit and metrics.',
    fields: [
      NAME,
      needed('token', 'uint', 'the token that was refused'),
      needed('mark', 'uint', 'the newest token that the resource had seen'),
      needed('refusals', 'uint', 'how many, since the last report'),
      optional('guard', 'text', 'what kind of guard; at most 64 bytes'),
    ],
    replyFields: [needed('revision', 'uint', 'revision of the event')],
  },
];

const INTERNAL: readonly CommandRow[] = [
  {
    number: CommandKind.KeepWaits,
    name: 'keep_waits',
    isLogged: true,
    meaning: 'From nodes only: keeps waits without a session alive. FORBIDDEN to clients.',
    fields: [needed('places', 'array', 'of places')],
    replyFields: [],
  },
  {
    number: CommandKind.Settings,
    name: 'settings',
    isLogged: true,
    meaning: 'From nodes only: changes the replicated settings. FORBIDDEN to clients.',
    fields: [needed('settings', 'array', 'of [setting, value]')],
    replyFields: [],
  },
];

const RESTORED: readonly CommandRow[] = [
  {
    number: CommandKind.Restored,
    name: 'restored',
    isLogged: true,
    meaning:
      'In the first entry behind a restored state, written by the restore. FORBIDDEN to ' +
      'clients.',
    fields: [needed('reason', 'bytes', 'what was restored, by whom and why; at most 1,024 bytes')],
    replyFields: [],
  },
];

/** All commands of protocol version 1, in the order of their numbers. */
export const COMMAND_ROWS: readonly CommandRow[] = [
  ...QUERIES,
  ...SESSIONS,
  ...LEASES,
  ...INTERNAL,
  ...ADMIN,
  ...RESTORED,
];

/** Numbers that have their place and no form yet. */
export const RESERVED_COMMANDS: readonly CommandKind[] = [CommandKind.Authenticate];

function assertRows(rows: readonly CommandRow[]): void {
  let before = 0;
  for (const row of rows) {
    if (row.number <= before) throw new Error(`command ${row.name} is out of order or twice`);
    if (row.isLogged !== row.number >= LOGGED_COMMAND_MIN) {
      throw new Error(`command ${row.name} has a number of the wrong range`);
    }
    before = row.number;
  }
}

assertRows(COMMAND_ROWS);

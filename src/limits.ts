/**
 * Every bound of Holdfast, with its unit in its name, in one place.
 *
 * Owns: the constants of this build and the relations between them, asserted when the module is
 * loaded. What decides an outcome is replicated (core/locks/settings.ts); of this file `apply` sees
 * only the sizes that operation version 1 may have, which change with the version alone.
 * Read by: every other file.
 */

/** Bytes a request id that the caller chose (free-form) may have. */
export const REQUEST_ID_BYTES_MAX = 64;
/** Bytes of a session id, a session secret and a lease id: 128 random bits. */
export const ID_BYTES = 16;
/** Bytes of a trace id, W3C Trace Context. */
export const TRACE_ID_BYTES = 16;
/** Bytes of a lock name, least and most (UTF-8, no control characters). */
export const NAME_BYTES_MIN = 1;
export const NAME_BYTES_MAX = 512;
/** Bytes of metadata that a lease, a wait or a session may carry. */
export const METADATA_BYTES_MAX = 1_024;
/** Bytes of an owner name (deadlock detection). */
export const OWNER_BYTES_MAX = 128;
/** The kind that a guard calls itself in a report. */
export const GUARD_KIND_BYTES_MAX = 64;
/** Names that one acquire may ask for together. */
export const NAME_SET_MAX = 16;
/** Acknowledged sequences above the mark that one request may list. */
export const ACKNOWLEDGED_SINGLES_MAX = 64;

/** A revision, a token, a sequence and a stamp stay below this: exact in a double. */
export const SAFE_INTEGER_MAX = 2 ** 53 - 1;

/** A restore leaves the other half of the revisions to the cluster that it makes. */
export const RESTORED_REVISION_MAX = 2 ** 52;

/** Body bytes of one frame on the client port. */
export const FRAME_BYTES_MAX = 1 << 20;
/** Bytes of one operation inside a frame. */
export const OPERATION_BYTES_MAX = 32 * 1_024;
/** Operations one frame may carry. */
export const FRAME_OPERATIONS_MAX = 8_192;
/** Locks that one page of a list shows, when its caller names no limit, and at most. */
export const LIST_ROWS_DEFAULT = 100;
export const LIST_ROWS_MAX = 250;
/** Bytes of what a client calls itself, and of its credential. */
export const CLIENT_NAME_BYTES_MAX = 64;
export const CREDENTIAL_BYTES_MAX = 1_024;
/** Bytes of a `host:port`: a name of 253 bytes, or an IPv6 address in brackets. */
export const ADDRESS_BYTES_MAX = 260;
/** Bytes of a zone label. */
export const ZONE_BYTES_MAX = 64;
/** Array and map nesting that a decoder follows before it refuses. */
export const NESTING_DEPTH_MAX = 8;

/** Operations and bytes after which an open batch is closed without waiting for its gap. */
export const BATCH_OPERATIONS_MAX = 4_096;
export const BATCH_BYTES_MAX = 1 << 20;
/** Batches that a leader proposes before the oldest of them is applied. Full: stop reading. */
export const BATCHES_IN_FLIGHT_MAX = 64;
/** Operations that one turn applies before sockets and timers get theirs. */
export const APPLY_OPERATIONS_MAX = 16_384;
/** The longest that an open batch waits for company under load. */
export const BATCH_GAP_US_MAX = 5_000;

/** Client connections a node accepts. Full: the new one is closed with OVERLOADED. */
export const CONNECTIONS_MAX = 10_000;
/** Requests undecided on one connection. Full: stop reading that connection. */
export const CONNECTION_REQUESTS_MAX = 16_384;
/** Bytes of unsent replies on one connection. Past it: stop reading; past twice it: close. */
export const CONNECTION_OUT_BYTES_MAX = 8 << 20;
/** Queued acquires whose results one connection is owed. Full: LIMIT `waits`. */
export const CONNECTION_WAITS_MAX = 16_384;
/** Requests waiting for a decision over all connections of a node. Full: OVERLOADED. */
export const PENDING_REQUESTS_MAX = 65_536;
/** Room above that bound for what ends or keeps a lease: refused last. */
export const PENDING_RESERVE = 16_384;
/** Reads waiting for their read point on one node. Full: OVERLOADED. */
export const PENDING_READS_MAX = 16_384;
/** Names that a list looks at for one page, and what each counts for in the turn's budget. */
export const LIST_VISITS_MAX = 10_000;
export const LIST_VISIT_BYTES = 64;
/** Bytes of read answers that one turn encodes, and what each answer counts for at least. */
export const READ_BYTES_PER_TURN = 512 * 1_024;
export const READ_BYTES_LEAST = 4_096;
/** Read rounds of one node that are not confirmed. Full: reads gather for the next one. */
export const READ_ROUNDS_MAX = 64;
/** Rounds that a leader tracks for all nodes. Full: a further one is aborted. */
export const LEADER_READ_ROUNDS_MAX = 1_024;
/** A read round unanswered for this long is asked again: its message may be lost. */
export const READ_ROUND_MS_MAX = 250;
/** Waiters that a get shows. */
export const GET_WAITERS_MAX = 100;
/** Events that a node keeps for watches, bytes of their names, and how many it starts with. */
export const WATCH_EVENTS_KEPT = 131_072;
export const WATCH_NAME_BYTES_KEPT = 8 << 20;
export const WATCH_EVENTS_LEAST = 1_024;
/** Watches of one connection and of one node. Full: LIMIT `watches`. */
export const CONNECTION_WATCHES_MAX = 1_024;
export const WATCHES_MAX = 50_000;
/** Bytes that a watcher leaves unread before it is told nothing more, until it reads again. */
export const WATCH_OUT_BYTES_MAX = 1 << 20;
/** Event rows in one part of a watch. */
export const WATCH_ROWS_MAX = 512;
/** Kept events and snapshot rows that one turn looks at for watches which are behind. */
export const WATCH_CATCH_UP_MAX = 16_384;
/** A watch without events is told this often how far it has come. */
export const WATCH_PROGRESS_MS = 5_000;
/** Events that one page of the audit stream shows, when its caller names no limit, and at most. */
export const AUDIT_ROWS_DEFAULT = 256;
export const AUDIT_ROWS_MAX = 512;
/** How long a page of the audit stream may wait for its first event. */
export const AUDIT_WAIT_MS_MAX = 30_000;
/** Pages of the audit stream that one node has not answered. Full: OVERLOADED. */
export const AUDIT_READS_MAX = 1_024;
/** Kept events that one turn looks at for pages of the audit stream. */
export const AUDIT_VISITS_MAX = 8_192;
/** Kept events that an explanation looks at, the newest first, and how many of them it shows. */
export const EXPLAIN_VISITS_MAX = 16_384;
export const EXPLAIN_EVENTS_MAX = 16;
/** Log and snapshots that a node keeps behind its last snapshot, for the audit stream. */
export const HISTORY_BYTES_KEPT = 512 << 20;
/** How long the thread that reads history works on one page before it says how far it is. */
export const HISTORY_SLICE_MS = 500;
/** The thread that reads history ends when nobody has asked for this long. */
export const HISTORY_IDLE_MS = 30_000;
/** Places in the history that the thread can go on from. */
export const HISTORY_CURSORS_MAX = 2;
/** A guard's refusals are reported this often for one lock, at most. */
export const REFUSAL_REPORT_MS = 1_000;
/** Locks of which one process keeps refusals until then. Full: counted as dropped, not reported. */
export const REFUSED_LOCKS_MAX = 1_024;
/** Bytes a second that the background check of the disk reads, by default. */
export const SCRUB_BYTES_PER_SECOND = 4 << 20;
/** From the end of one pass of it to the next, and from the start of a node to the first. */
export const SCRUB_PAUSE_MS = 3_600_000;
export const SCRUB_START_MS = 60_000;
/** From the beginning of a pass to the next at least, also when it is asked for. */
export const SCRUB_SPACING_MS = 2_000;
/** How often a pass asks whether the node is behind, and how far behind that is, in entries. */
export const SCRUB_LOOK_MS = 2_000;
export const SCRUB_BEHIND_ENTRIES = 1_024;
/** An operation undecided for this long: the node is behind as well. */
export const SCRUB_BEHIND_MS = 500;
/** How long it waits before it looks again at what seems damaged. */
export const SCRUB_REST_MS = 1_000;
/** Places of damage that a node remembers. Full: the others are in its log alone. */
export const SCRUB_FAULTS_KEPT = 64;
/** Body bytes of one HTTP request. */
export const HTTP_BODY_BYTES_MAX = 64 * 1_024;
/** HTTP requests that one node has not answered, waits included. Full: OVERLOADED. */
export const HTTP_CALLS_MAX = 8_192;
/** Room above that bound for what keeps or ends a lease: refused last. */
export const HTTP_CALLS_RESERVE = 2_048;
/** Streams of events that one node serves over HTTP. Full: OVERLOADED. */
export const HTTP_STREAMS_MAX = 10_000;
/** How long a node that leads no more may still answer what was forwarded to it. */
export const FORWARD_LINGER_MS = 2_000;
/** A forwarded request is given up this long after its own deadline. */
export const FORWARD_SLACK_MS = 1_000;
/** A node that takes requests over HTTP is ready when it heard from a leader this lately. */
export const READY_AGE_MS_MAX = 1_500;
/** A frame must be complete this long after its first byte, or the connection is closed. */
export const FRAME_TIMEOUT_MS = 30_000;
/** A connection closed by the node is read to its end this long, so that a last reply arrives. */
export const CLOSE_LINGER_MS = 2_000;
/** An idle connection is probed by TCP after this long: half-open ones go away. */
export const KEEPALIVE_MS = 30_000;

/** Time from receipt that a request may take when its caller names none, and at most. */
export const REQUEST_DEADLINE_DEFAULT_MS = 10_000;
export const REQUEST_DEADLINE_MAX_MS = 60_000;

/** The raft clock: one tick, and the timers counted in it (50 ms, 300 to 600 ms). */
export const TICK_MS = 10;
export const HEARTBEAT_TICKS = 5;
export const ELECTION_TICKS_MIN = 30;
export const ELECTION_TICKS_MAX = 60;
/** Voters and learners of one shard. */
export const MEMBERS_MAX = 9;
/** Append messages and bytes sent to one follower and not yet acknowledged. */
export const INFLIGHT_APPENDS_MAX = 64;
export const INFLIGHT_BYTES_MAX = 8 << 20;
/** Bytes of entries in one append message. At least one entry is always sent. */
export const APPEND_BYTES_MAX = 2 << 20;
/** Entries in one append message. */
export const APPEND_ENTRIES_MAX = 256;
/** Entries and bytes that a replica keeps in memory behind the applied index for followers. */
export const LOG_WINDOW_ENTRIES = 4_096;
export const LOG_WINDOW_BYTES = 32 << 20;
/** Body bytes of one frame on the peer port. */
export const PEER_FRAME_BYTES_MAX = 8 << 20;
/** Bytes queued for one peer. Past it messages are dropped; raft sends again. */
export const PEER_OUT_BYTES_MAX = 32 << 20;
/** Connections on the peer port at once, and body bytes of one frame before its hello passed. */
export const PEER_CONNECTIONS_MAX = 64;
export const PEER_GREETING_BYTES_MAX = 64 * 1_024;
/** A hello, a connect or a founding answer must come within this time. */
export const PEER_GREETING_MS_MAX = 2_000;
/** Pause before a peer is dialled again: doubled from the least to the greatest, with jitter. */
export const PEER_BACKOFF_MS_MIN = 20;
export const PEER_BACKOFF_MS_MAX = 500;
/** A peer link is probed this often; after so many probes without an answer it is dialled anew. */
export const PEER_PROBE_MS = 1_000;
export const PEER_PROBES_LOST_MAX = 3;

/** Bytes of one log segment (one LMDB environment) before the next is opened. */
export const SEGMENT_BYTES_MAX = 64 << 20;
/** A durable commit that takes longer than this ends the node. */
export const LOG_SILENCE_MS_MAX = 20_000;
/** Appends handed to the log thread and not yet durable. */
export const LOG_APPENDS_MAX = 256;
/** From here on nothing more is proposed, and a leader's entries are dropped as if lost. */
export const LOG_APPENDS_PAUSE = 192;
/** Shared memory that carries orders to the log thread; a power of two. */
export const LOG_RING_BYTES = 4 << 20;
/** Bytes that the log thread puts into one transaction before it commits. */
export const LOG_GROUP_BYTES_MAX = 16 << 20;
/** Bytes that must stay free on the log's disk; a node that would go below ends. */
export const LOG_FREE_BYTES_MIN = 64 << 20;

/** Bytes of one chunk of a snapshot, and chunks of one snapshot. */
export const SNAPSHOT_CHUNK_BYTES_MAX = (1 << 20) + 16 * 1_024;
export const SNAPSHOT_CHUNKS_MAX = 16_384;
/** Bytes after which a chunk that is being written is closed, at the end of the row. */
export const SNAPSHOT_CHUNK_BYTES = 1 << 20;
/** Rows of a snapshot that are read between two turns. */
export const SNAPSHOT_ROWS_AT_ONCE = 500;
/** A node that fetches a snapshot waits this long for one chunk before it gives up for now. */
export const SNAPSHOT_ANSWER_MS_MAX = 10_000;
/** A leader makes no snapshot while chunks of the last one are read at least this often. */
export const SNAPSHOT_LENT_MS = 15_000;
/** Between two questions of a backup whether its snapshot is there. */
export const BACKUP_ROUND_MS = 200;
/** Entries, or bytes of entries, applied since the last snapshot after which the next is made. */
export const SNAPSHOT_ENTRIES = 100_000;
export const SNAPSHOT_LOG_BYTES = 256 << 20;
/** Entries before a snapshot that stay in the log for followers that are a little behind. */
export const LOG_TAIL_ENTRIES = 10_000;

/** Cluster time that one turn may add: a stalled leader expires nobody by waking. */
export const CLOCK_STEP_MS_MAX = 1_000;
/** While a record has a deadline, an idle leader appends at least this often. */
export const PULSE_MS = 200;
/** How often a node renews the implicit sessions of its waiting connections. */
export const KEEP_WAITS_MS = 3_000;
/** Waits that one keep-alive names: it must fit an operation. */
export const KEEP_WAITS_PLACES_MAX = 2_000;

function assertLimit(holds: boolean, relation: string): void {
  if (!holds) throw new Error(`limits contradict each other: ${relation}`);
}

assertLimit(OPERATION_BYTES_MAX < FRAME_BYTES_MAX, 'an operation fits a frame');
assertLimit(
  NAME_SET_MAX * NAME_BYTES_MAX + METADATA_BYTES_MAX + OWNER_BYTES_MAX < OPERATION_BYTES_MAX,
  'the largest acquire fits an operation',
);
assertLimit(
  LIST_ROWS_MAX * (NAME_BYTES_MAX + METADATA_BYTES_MAX + 128) < FRAME_BYTES_MAX / 2,
  'a full page of locks is at most half a frame',
);
assertLimit(
  BATCH_BYTES_MAX + OPERATION_BYTES_MAX < APPEND_BYTES_MAX,
  'a full batch fits an append message',
);
assertLimit(2 * APPEND_BYTES_MAX < PEER_FRAME_BYTES_MAX, 'an append message fits a peer frame');
assertLimit(
  SNAPSHOT_CHUNK_BYTES + 8 * METADATA_BYTES_MAX < SNAPSHOT_CHUNK_BYTES_MAX,
  'a chunk has room for the row that closes it',
);
assertLimit(SNAPSHOT_CHUNK_BYTES_MAX < PEER_FRAME_BYTES_MAX / 2, 'a chunk fits a peer frame');
assertLimit(
  SNAPSHOT_ANSWER_MS_MAX < SNAPSHOT_LENT_MS,
  'a snapshot is not replaced under a node that still fetches it',
);
assertLimit(LOG_TAIL_ENTRIES < SNAPSHOT_ENTRIES, 'a snapshot frees more log than stays');
assertLimit(
  HTTP_CALLS_MAX + HTTP_CALLS_RESERVE < CONNECTION_REQUESTS_MAX,
  'the HTTP door is never stopped from asking',
);
assertLimit(HTTP_BODY_BYTES_MAX > OPERATION_BYTES_MAX, 'an operation fits a body');
assertLimit((WATCH_EVENTS_KEPT & (WATCH_EVENTS_KEPT - 1)) === 0, 'the events are a power of two');
assertLimit((WATCH_EVENTS_LEAST & (WATCH_EVENTS_LEAST - 1)) === 0, 'so is where they start');
assertLimit(
  WATCH_NAME_BYTES_KEPT % WATCH_EVENTS_KEPT === 0,
  'the names kept are a whole number of bytes an event',
);
assertLimit(
  WATCH_ROWS_MAX * (NAME_BYTES_MAX + 64) < FRAME_BYTES_MAX / 2,
  'a part of a watch is at most half a frame',
);
assertLimit(
  AUDIT_ROWS_MAX * (NAME_BYTES_MAX + REQUEST_ID_BYTES_MAX + 192) < FRAME_BYTES_MAX / 2,
  'a page of the audit stream is at most half a frame',
);
assertLimit(AUDIT_WAIT_MS_MAX < REQUEST_DEADLINE_MAX_MS, 'a page can wait within its deadline');
assertLimit(HEARTBEAT_TICKS * 4 < ELECTION_TICKS_MIN, 'three heartbeats may be lost');
assertLimit(ELECTION_TICKS_MIN < ELECTION_TICKS_MAX, 'election time-outs are spread');
assertLimit(PULSE_MS < CLOCK_STEP_MS_MAX, 'a pulse never runs into the clock cap');
assertLimit((LOG_RING_BYTES & (LOG_RING_BYTES - 1)) === 0, 'the ring is a power of two');
assertLimit(BATCH_BYTES_MAX <= LOG_RING_BYTES / 4, 'about every batch fits the ring');
assertLimit(BATCHES_IN_FLIGHT_MAX < LOG_APPENDS_PAUSE, 'the log queue holds every batch in flight');
assertLimit(
  LOG_APPENDS_PAUSE + 32 < LOG_APPENDS_MAX,
  'terms and votes find room in a full log queue',
);

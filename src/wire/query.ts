/**
 * Decodes operations that never reach the log: hello, reads, attach, transfer.
 *
 * Owns: their form at protocol version 1: places, types, sizes. As strict as operation.ts: what is
 * not known is refused. Never: an answer. A query may wait for a read point, so unlike a Command
 * it owns its bytes. Used by: replica.
 */
import { CommandKind, RequestKind } from '../core/locks/command.js';
import {
  AUDIT_ROWS_DEFAULT,
  AUDIT_ROWS_MAX,
  AUDIT_WAIT_MS_MAX,
  CLIENT_NAME_BYTES_MAX,
  CREDENTIAL_BYTES_MAX,
  LIST_ROWS_DEFAULT,
  LIST_ROWS_MAX,
  NAME_BYTES_MAX,
  NAME_BYTES_MIN,
  OPERATION_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
} from '../limits.js';
import { copyOf } from './copy.js';
import { Fault } from './fault.js';
import { CORRELATION_MAX } from './frame.js';
import {
  arrayAt,
  arrayHeaderBytes,
  booleanAt,
  idAt,
  integerBytes,
  NIL,
  rangeAt,
  rangeHeaderBytes,
  unsignedAt,
  wordAt,
} from './msgpack-reader.js';
import { isPlainText } from './utf8.js';

const NO_BYTES = new Uint8Array(0);

/** One decoded query. Fields that its kind does not have keep their initial values. */
export class Query {
  /** CommandKind, below LOGGED_COMMAND_MIN. */
  kind = 0;

  /** Hello: highest protocol version the client speaks, its name, its credential (empty: none). */
  version = 0;
  clientName: Uint8Array = NO_BYTES;
  credential: Uint8Array = NO_BYTES;

  /** SessionAttach, Lookup, Explain: the session's id as four big-endian words, signed. */
  hasSession = false;
  session0 = 0;
  session1 = 0;
  session2 = 0;
  session3 = 0;
  /** SessionAttach: the session's secret. */
  secret0 = 0;
  secret1 = 0;
  secret2 = 0;
  secret3 = 0;

  /** Get, Check, Watch, Explain: the lock. List, Watch: the prefix, maybe empty. */
  name: Uint8Array = NO_BYTES;
  /** List: the last name of the page before, null for the first page. */
  cursor: Uint8Array | null = null;
  /** List: rows wanted, 1 to LIST_ROWS_MAX. */
  limit = LIST_ROWS_DEFAULT;
  /** Get, List: true when an answer from this node's applied state suffices. */
  stale = false;
  /** Get: the answer must include this revision; -1 when not asked for. */
  atLeastRevision = -1;

  /** Explain: the lease that is asked about, as four big-endian words, signed. */
  hasLease = false;
  lease0 = 0;
  lease1 = 0;
  lease2 = 0;
  lease3 = 0;

  /** Lookup, Explain: which request. */
  requestKind: RequestKind = RequestKind.None;
  sequence = -1;
  request: Uint8Array = NO_BYTES;

  /** Check: the token. */
  token = -1;
  /** Transfer: the node that shall lead. */
  nodeId = 0;

  /** Watch: true when `name` is a prefix. */
  isPrefix = false;
  /** Watch, Audit: the first revision wanted; -1: the next one. */
  revision = -1;
  /** Watch: true when the locks as they are now shall be told first. */
  snapshot = false;
  /** Unwatch, Abandon: the request of this connection that is meant. */
  correlation = 0;
  /** Abandon: its place in the queue. */
  place = 0;
  /** Audit: how long the page may wait for its first event, ms. */
  waitMs = 0;
}

/** Elements that a query may have, its command included; 0 when there is no such query. */
export function queryFieldsMax(kind: number): number {
  switch (kind) {
    case CommandKind.Ping:
    case CommandKind.Members:
    case CommandKind.Status:
      return 1;
    case CommandKind.Transfer:
    case CommandKind.Unwatch:
      return 2;
    case CommandKind.SessionAttach:
    case CommandKind.Lookup:
    case CommandKind.Check:
    case CommandKind.Abandon:
      return 3;
    case CommandKind.Hello:
    case CommandKind.Get:
      return 4;
    case CommandKind.Explain:
      return 5;
    case CommandKind.List:
    case CommandKind.Watch:
    case CommandKind.Audit:
      return 5;
    default:
      return 0;
  }
}

/**
 * Decodes the operation at `start` … `end` into `query`, which is fresh.
 * Returns Fault.None, or the fault that names the offending field (faultCode, faultField).
 */
export function decodeQuery(bytes: Uint8Array, start: number, end: number, query: Query): number {
  if (end - start > OPERATION_BYTES_MAX) return Fault.Size;
  const count = arrayAt(bytes, start, end);
  if (count < 1) return Fault.Operation;
  let at = start + arrayHeaderBytes(bytes[start]!);
  const kind = unsignedAt(bytes, at, end);
  if (kind < 0) return Fault.Command;
  const fieldsMax = queryFieldsMax(kind);
  if (fieldsMax === 0) return Fault.Command;
  if (count > fieldsMax) return Fault.Fields;
  query.kind = kind;
  at += integerBytes(bytes[at]!);
  at = decodeFields(new Fields(bytes, at, end, count - 1), query);
  if (at < 0) return -at;
  return at === end ? Fault.None : Fault.Operation;
}

/** Reads fields one by one; those left out at the end read as nil. */
class Fields {
  /** Offset and length of the range that range() found last. */
  offset = 0;
  length = 0;

  constructor(
    readonly bytes: Uint8Array,
    public at: number,
    private readonly end: number,
    private remaining: number,
  ) {}

  private isLeftOut(): boolean {
    if (this.remaining === 0) return true;
    this.remaining -= 1;
    return false;
  }

  /** An integer, NIL or INVALID. */
  unsigned(): number {
    if (this.isLeftOut()) return NIL;
    const value = unsignedAt(this.bytes, this.at, this.end);
    if (value >= NIL) this.at += integerBytes(this.bytes[this.at]!);
    return value;
  }

  /** True or false as 1 or 0, NIL or INVALID. */
  boolean(): number {
    if (this.isLeftOut()) return NIL;
    const value = booleanAt(this.bytes, this.at, this.end);
    this.at += 1;
    return value;
  }

  /** Offset of an id, NIL or INVALID. */
  id(): number {
    if (this.isLeftOut()) return NIL;
    const offset = idAt(this.bytes, this.at, this.end);
    this.at = offset < 0 ? this.at + 1 : offset + 16;
    return offset;
  }

  /** Length of a string or binary, NIL or INVALID; an integer is INVALID and is not moved past. */
  range(): number {
    if (this.isLeftOut()) return NIL;
    const length = rangeAt(this.bytes, this.at, this.end);
    if (length === NIL) this.at += 1;
    if (length < 0) return length;
    this.offset = this.at + rangeHeaderBytes(this.bytes[this.at]!);
    this.length = length;
    this.at = this.offset + length;
    return length;
  }

  /** True when the next field is an integer. */
  isInteger(): boolean {
    return this.remaining > 0 && unsignedAt(this.bytes, this.at, this.end) >= 0;
  }

  /** True when the range found last may stand in a name. */
  isPlain(): boolean {
    return isPlainText(this.bytes, this.offset, this.offset + this.length);
  }

  /** A copy of the range found last. */
  copy(): Uint8Array {
    return copyOf(this.bytes, this.offset, this.offset + this.length);
  }
}

/* Every function below returns the position after what it read, or the negative fault. */

function decodeFields(fields: Fields, query: Query): number {
  switch (query.kind) {
    case CommandKind.Get:
      return decodeGet(fields, query);
    case CommandKind.List:
      return decodeList(fields, query);
    case CommandKind.Check:
      return decodeCheck(fields, query);
    case CommandKind.Lookup:
      return decodeLookup(fields, query);
    case CommandKind.SessionAttach:
      return decodeAttach(fields, query);
    case CommandKind.Hello:
      return decodeHello(fields, query);
    case CommandKind.Transfer:
      query.nodeId = fields.unsigned();
      return query.nodeId < 1 ? -Fault.NodeId : fields.at;
    case CommandKind.Watch:
      return decodeWatch(fields, query);
    case CommandKind.Unwatch:
      return decodeCorrelation(fields, query);
    case CommandKind.Abandon:
      return decodeAbandon(fields, query);
    case CommandKind.Audit:
      return decodeAudit(fields, query);
    case CommandKind.Explain:
      return decodeExplain(fields, query);
    default:
      return fields.at;
  }
}

function decodeHello(fields: Fields, query: Query): number {
  query.version = fields.unsigned();
  if (query.version < 1) return -Fault.Version;
  const name = fields.range();
  if (name < NIL || name > CLIENT_NAME_BYTES_MAX) return -Fault.ClientName;
  if (name > 0) {
    if (!fields.isPlain()) return -Fault.ClientName;
    query.clientName = fields.copy();
  }
  const credential = fields.range();
  if (credential < NIL || credential > CREDENTIAL_BYTES_MAX) return -Fault.Credential;
  if (credential > 0) query.credential = fields.copy();
  return fields.at;
}

function decodeName(fields: Fields, query: Query): number {
  const length = fields.range();
  if (length < NAME_BYTES_MIN || length > NAME_BYTES_MAX) return -Fault.Name;
  if (!fields.isPlain()) return -Fault.Name;
  query.name = fields.copy();
  return fields.at;
}

function decodeStale(fields: Fields, query: Query): number {
  const stale = fields.boolean();
  if (stale < NIL) return -Fault.Stale;
  query.stale = stale === 1;
  return fields.at;
}

function decodeGet(fields: Fields, query: Query): number {
  let at = decodeName(fields, query);
  if (at < 0) return at;
  at = decodeStale(fields, query);
  if (at < 0) return at;
  query.atLeastRevision = fields.unsigned();
  return query.atLeastRevision < NIL ? -Fault.AtLeastRevision : fields.at;
}

function decodeList(fields: Fields, query: Query): number {
  const prefix = fields.range();
  if (prefix < NIL || prefix > NAME_BYTES_MAX) return -Fault.Prefix;
  if (prefix > 0) {
    if (!fields.isPlain()) return -Fault.Prefix;
    query.name = fields.copy();
  }
  const cursor = fields.range();
  if (cursor < NIL || cursor > NAME_BYTES_MAX) return -Fault.Cursor;
  if (cursor >= 0) query.cursor = fields.copy();
  const limit = fields.unsigned();
  if (limit < NIL || limit === 0 || limit > LIST_ROWS_MAX) return -Fault.Limit;
  if (limit > 0) query.limit = limit;
  return decodeStale(fields, query);
}

function decodeCheck(fields: Fields, query: Query): number {
  const at = decodeName(fields, query);
  if (at < 0) return at;
  query.token = fields.unsigned();
  return query.token < 0 ? -Fault.Token : fields.at;
}

function setSession(bytes: Uint8Array, offset: number, query: Query): void {
  query.hasSession = true;
  query.session0 = wordAt(bytes, offset);
  query.session1 = wordAt(bytes, offset + 4);
  query.session2 = wordAt(bytes, offset + 8);
  query.session3 = wordAt(bytes, offset + 12);
}

function decodeLookup(fields: Fields, query: Query): number {
  const session = fields.id();
  if (session < NIL) return -Fault.Session;
  if (session >= 0) setSession(fields.bytes, session, query);
  const at = decodeRequest(fields, query);
  return at >= 0 && query.requestKind === RequestKind.None ? -Fault.Request : at;
}

/** A request id, or nil. A sequence needs the session. */
function decodeRequest(fields: Fields, query: Query): number {
  if (fields.isInteger()) {
    query.requestKind = RequestKind.Sequence;
    query.sequence = fields.unsigned();
    if (query.sequence === 0) return -Fault.Request;
    return query.hasSession ? fields.at : -Fault.Session;
  }
  const length = fields.range();
  if (length === NIL) return fields.at;
  if (length < 1 || length > REQUEST_ID_BYTES_MAX) return -Fault.Request;
  query.requestKind = RequestKind.Free;
  query.request = fields.copy();
  return fields.at;
}

function decodeExplain(fields: Fields, query: Query): number {
  const at = decodeName(fields, query);
  if (at < 0) return at;
  const session = fields.id();
  if (session < NIL) return -Fault.Session;
  if (session >= 0) setSession(fields.bytes, session, query);
  const afterRequest = decodeRequest(fields, query);
  if (afterRequest < 0) return afterRequest;
  const lease = fields.id();
  if (lease < NIL) return -Fault.Lease;
  if (lease < 0) return fields.at;
  query.hasLease = true;
  query.lease0 = wordAt(fields.bytes, lease);
  query.lease1 = wordAt(fields.bytes, lease + 4);
  query.lease2 = wordAt(fields.bytes, lease + 8);
  query.lease3 = wordAt(fields.bytes, lease + 12);
  return fields.at;
}

function decodeAttach(fields: Fields, query: Query): number {
  const session = fields.id();
  if (session < 0) return -Fault.Session;
  setSession(fields.bytes, session, query);
  const secret = fields.id();
  if (secret < 0) return -Fault.Secret;
  query.secret0 = wordAt(fields.bytes, secret);
  query.secret1 = wordAt(fields.bytes, secret + 4);
  query.secret2 = wordAt(fields.bytes, secret + 8);
  query.secret3 = wordAt(fields.bytes, secret + 12);
  return fields.at;
}

/** A lock or a prefix, never both; the empty prefix is every lock. */
function decodeWatch(fields: Fields, query: Query): number {
  const name = fields.range();
  if (name < NIL || name > NAME_BYTES_MAX || name === 0) return -Fault.Name;
  if (name > 0) {
    if (!fields.isPlain()) return -Fault.Name;
    query.name = fields.copy();
  }
  const prefix = fields.range();
  if (prefix < NIL || prefix > NAME_BYTES_MAX) return -Fault.Prefix;
  const isPrefix = prefix >= 0;
  if (isPrefix === name > 0) return -Fault.Name;
  if (prefix >= 0) {
    if (!fields.isPlain()) return -Fault.Prefix;
    query.isPrefix = true;
    query.name = fields.copy();
  }
  query.revision = fields.unsigned();
  if (query.revision < NIL || query.revision === 0) return -Fault.Revision;
  const snapshot = fields.boolean();
  if (snapshot < NIL || (snapshot === 1 && query.revision > 0)) return -Fault.Snapshot;
  query.snapshot = snapshot === 1;
  return fields.at;
}

/** A prefix, the empty one by default: every lock. */
function decodeAudit(fields: Fields, query: Query): number {
  const prefix = fields.range();
  if (prefix < NIL || prefix > NAME_BYTES_MAX) return -Fault.Prefix;
  if (prefix > 0) {
    if (!fields.isPlain()) return -Fault.Prefix;
    query.name = fields.copy();
  }
  query.isPrefix = true;
  query.revision = fields.unsigned();
  if (query.revision < NIL || query.revision === 0) return -Fault.Revision;
  const limit = fields.unsigned();
  if (limit < NIL || limit === 0 || limit > AUDIT_ROWS_MAX) return -Fault.Limit;
  query.limit = limit > 0 ? limit : AUDIT_ROWS_DEFAULT;
  const waitMs = fields.unsigned();
  if (waitMs < NIL || waitMs > AUDIT_WAIT_MS_MAX) return -Fault.WaitMs;
  query.waitMs = Math.max(0, waitMs);
  return fields.at;
}

function decodeCorrelation(fields: Fields, query: Query): number {
  query.correlation = fields.unsigned();
  const isSound = query.correlation >= 1 && query.correlation <= CORRELATION_MAX;
  return isSound ? fields.at : -Fault.Correlation;
}

function decodeAbandon(fields: Fields, query: Query): number {
  const at = decodeCorrelation(fields, query);
  if (at < 0) return at;
  query.place = fields.unsigned();
  return query.place < 1 ? -Fault.Place : fields.at;
}

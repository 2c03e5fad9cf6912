/**
 * The public entry: `import { connect } from 'holdfast'`.
 *
 * Owns: which names are public. Never: code. The only barrel of the project.
 * Used by: programs, the CLI, guards and the dashboard.
 */
export type {
  Admin,
  AdminCallOptions,
  AdminChange,
  AdminOptions,
  DisableTarget,
  ForcedRelease,
  ForceTarget,
  RefusalReport,
} from './admin.js';
export type { AuditCheckpoint, AuditEvent, AuditOptions, AuditPage } from './audit.js';
export { Client, type CloseOptions, type InOrderOptions, type Work } from './client.js';
export { type ConnectOptions, connect } from './connect.js';
export type { Counters } from './counters.js';
export { Leadership, type LeaderView } from './election.js';
export {
  type ErrorDetails,
  type Holder,
  HoldfastError,
  isHoldfastError,
  type LeaseEnd,
  type ReleasedGrant,
} from './errors.js';
export type { ExplainQuestion, Explanation } from './explain.js';
export type { HoldState as LeaseState } from './hold.js';
export { Lease, type Released } from './lease.js';
export { LeaseSet } from './lease-set.js';
export type {
  DisabledView,
  GrantView,
  HolderView,
  LockSummary,
  LockView,
  LookupView,
  WaiterView,
} from './lock-view.js';
export type { AcquireOptions, CallOptions } from './options.js';
export type { RenewOptions } from './ownership.js';
export type { GetOptions, ListOptions, RequestName, TokenCheck } from './reads.js';
export type { Member } from './reply.js';
export { Session, type SessionOptions, type SessionState } from './session.js';
export type { TracerProvider } from './tracing.js';
export type { SilentNode } from './unreachable.js';
export type {
  EventType,
  LockEvent,
  ProgressMark,
  SnapshotPart,
  WatchItem,
  WatchOptions,
} from './watch.js';

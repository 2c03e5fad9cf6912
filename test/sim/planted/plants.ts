/**
 * Bugs to plant in the product, one at a time, each of a kind that has hurt somebody.
 *
 * Owns: the list. A simulator that does not catch one of them is broken, not the list.
 * Used by: planted.ts.
 */
import type { Patch } from './image.js';
import { OPERATOR_PLANTS } from './operator-plants.js';

export interface Plant extends Patch {
  readonly name: string;
  /** Further pieces that the same bug takes. */
  readonly also?: readonly Patch[];
}

/** Everything that a bug changes. */
export function patchesOf(plant: Plant): readonly Patch[] {
  return [plant, ...(plant.also ?? [])];
}

const RAFT: readonly Plant[] = [
  {
    name: 'raft: an entry of an earlier term is committed by counting',
    file: 'core/raft/replication.ts',
    find: 'if (index <= state.commitIndex || state.log.termAt(index) !== state.term) return;',
    replace: 'if (index <= state.commitIndex) return;',
  },
  {
    name: 'raft: two of five are a majority',
    file: 'core/raft/members.ts',
    find: 'return (voters >>> 1) + 1;',
    replace: 'return voters >>> 1;',
  },
  {
    name: 'raft: a vote is not stored',
    file: 'core/raft/election.ts',
    find: 'state.votedFor = message.from;\n    saveHardState(state);',
    replace: 'state.votedFor = message.from;',
  },
  {
    name: 'raft: votes go to logs that are behind',
    file: 'core/raft/election.ts',
    find: 'mayVote && state.log.isUpToDate(message.index, message.logTerm)',
    replace: 'mayVote',
  },
  {
    name: 'raft: an entry is acknowledged before it is on disk',
    file: 'core/raft/replication.ts',
    find: 'AppendReply, to);\n  reply.index = index;\n  sendWhenDurable(state, reply);',
    replace: 'AppendReply, to);\n  reply.index = index;\n  state.effects.messages.push(reply);',
  },
  {
    name: 'raft: the leader counts itself before its own disk',
    file: 'core/raft/replication.ts',
    find: '? state.durableIndex',
    replace: '? state.log.lastIndex',
  },
  {
    name: 'raft: an append may follow any term',
    file: 'core/raft/log.ts',
    find: 'return this.termAt(index) === term;',
    replace: 'return true;',
  },
  {
    name: 'raft: a heartbeat commits past what the follower is known to hold',
    file: 'core/raft/sending.ts',
    find: 'Math.min(progress.matchIndex, state.commitIndex)',
    replace: 'state.commitIndex',
  },
  {
    name: 'raft: reads are answered without asking a majority',
    file: 'core/raft/read-index.ts',
    find: 'return confirmed >= majorityOf(state.members.voters.length);',
    replace: 'return true;',
  },
  {
    name: 'raft: an append that is overtaken cuts what follows it',
    file: 'core/raft/replication.ts',
    find: 'if (log.termAt(entry.index) === entry.term) continue;',
    replace: '',
  },
  {
    name: 'raft: who steps down within a term forgets its vote',
    file: 'core/raft/election.ts',
    find: 'if (term > state.term) {\n    state.term = term;',
    replace: 'if (term >= state.term) {\n    state.term = term;',
  },
];

const STORAGE: readonly Plant[] = [
  {
    name: 'storage: the checksum of a record is not looked at',
    file: 'io/log/record.ts',
    find: 'if (crc32(record.subarray(CHAIN)) !== this.crc) return false;',
    replace: '',
  },
  {
    name: 'storage: the chain of records is not looked at',
    file: 'io/log/verify.ts',
    find: 'if (this.anchored && this.header.predecessorCrc !== this.lastCrc) {',
    replace: 'if (this.anchored && this.header.predecessorCrc < 0) {',
  },
  {
    name: 'storage: a cut leaves the newer segments in place',
    file: 'io/log/segmented-log.ts',
    find: 'while (this.segments.length > 1 && this.newest.first >= from) this.removeNewest();',
    replace: '',
  },
  {
    name: 'storage: the chain goes on from the records that were cut',
    file: 'io/log/segmented-log.ts',
    find: 'this.lastCrc = from > this.firstIndex ? this.crcOf(from - 1) : CHAIN_START;',
    replace: '',
  },
  {
    name: 'storage: the vote is stored without its node',
    file: 'io/log/state-store.ts',
    find: 'this.save({ ...this.state, term, votedFor });',
    replace: 'this.save({ ...this.state, term, votedFor: 0 * votedFor });',
  },
  {
    name: 'storage: the checksum of term and vote is not looked at',
    file: 'io/log/state-record.ts',
    find: "if (crc32(bytes.subarray(4)) !== view.getUint32(0)) return 'has a wrong checksum';",
    replace: '',
  },
  {
    name: 'storage: a file that was cut is mapped',
    file: 'io/log/environment.ts',
    find: 'if (size < newest.bytes) return',
    replace: 'if (size < 0) return',
  },
  {
    name: 'storage: what waits for the disk leaves when any write is done',
    file: 'replica/turn.ts',
    find: 'if (first.appendId > appendId) break;',
    replace: '',
  },
  {
    name: 'storage: a segment with the first entry that is still needed is dropped',
    file: 'io/log/segmented-log.ts',
    find: 'this.segments[0]!.last < index',
    replace: 'this.segments[0]!.first < index',
  },
  {
    name: 'storage: an order is told durable before its commit',
    file: 'io/log/group-commit.ts',
    find: 'this.log.commit();\n    this.events.onDurable(this.durableAppendId);',
    replace: 'this.events.onDurable(this.durableAppendId);\n    this.log.commit();',
  },
  {
    name: 'storage: a wiped disk is let in by its old node id',
    file: 'io/peers/membership.ts',
    find: 'if (!isSameId(hello.diskId, member.diskId)) {',
    replace: 'if (hello.diskId.length !== member.diskId.length) {',
  },
];

const LOCKS: readonly Plant[] = [
  {
    name: 'locks: a dead waiter is granted',
    file: 'core/locks/ownership.ts',
    find: 'while (wait !== NONE && waitDeadline(state, wait) <= state.now) {',
    replace: 'while (wait !== NONE && waitDeadline(state, wait) < 0) {',
  },
  {
    name: 'locks: the last waiter is granted first',
    file: 'core/locks/ownership.ts',
    find: 'let wait = locks.firstWait[lock] as number;\n  while (wait !== NONE && waitDeadline',
    replace: 'let wait = locks.lastWait[lock] as number;\n  while (wait !== NONE && waitDeadline',
  },
  {
    name: 'locks: a renewal revives a lease that is over',
    file: 'core/locks/lease-commands.ts',
    find: 'if (leaseDeadline(state, lease) > state.now) return lease;',
    replace: 'if (leaseDeadline(state, lease) > 0) return lease;',
  },
  {
    name: 'locks: a lease outlives its session',
    file: 'core/locks/ownership.ts',
    find: 'return Math.min(sessions.deadline[session] as number, Math.max(floor, kept + ttlMs));',
    replace: 'return Math.max(floor, kept + ttlMs);',
  },
  {
    name: 'locks: the lease of another principal is renewed and released',
    file: 'core/locks/lease-commands.ts',
    find: 'if (lease === NONE || leases.principal[lease] !== command.principal) return NONE;',
    replace: 'if (lease === NONE) return NONE;',
  },
  {
    name: 'locks: a renewal with a shorter TTL moves the deadline back',
    file: 'core/locks/lease-commands.ts',
    find: 'leases.deadlineFloor[lease] = before;',
    replace: 'leases.deadlineFloor[lease] = 0 * before;',
  },
  {
    name: 'locks: a sweep that stopped at its bound counts as done',
    file: 'core/locks/sweep.ts',
    find: 'areLeasesDrained && areWaitsDrained && isGraceOver && areSessionsDrained;',
    replace: 'areLeasesDrained || areWaitsDrained || isGraceOver || true;',
  },
  {
    name: 'locks: what expired answers released',
    file: 'core/locks/lease-commands.ts',
    find: 'if (outcome.cause !== LeaseEnd.Released) return;',
    replace: 'if (outcome.cause === LeaseEnd.Unknown) return;',
  },
  {
    name: 'locks: cluster time starts ahead of the log with each leader',
    file: 'replica/cluster-clock.ts',
    find: 'this.runningMs = stampMs;',
    replace: 'this.runningMs = stampMs + 400;',
  },
  {
    name: 'locks: a new leader goes on from what is committed, not from its log',
    file: 'replica/turn.ts',
    find: 'const last = raft.entryAt(raft.lastIndex);',
    replace: 'const last = raft.entryAt(Math.min(raft.commitIndex, raft.lastIndex));',
  },
  {
    name: 'locks: a leader that nobody needs lets cluster time stand',
    file: 'replica/batching.ts',
    find: 'return state.machine.hasDeadlines && idleUs >=',
    replace: 'return state.machine.counts.waits > 0 && idleUs >=',
  },
];

const RESULTS: readonly Plant[] = [
  {
    name: 'results: a refusal is not stored',
    file: 'core/locks/requests.ts',
    find: 'if (command.requestKind === RequestKind.None) return;\n  const slot = createRecord',
    replace:
      'if (command.requestKind === RequestKind.None || outcome.code !== 0) return;\n' +
      '  const slot = createRecord',
  },
  {
    name: 'results: an id with other parameters gets the result of the first',
    file: 'core/locks/requests.ts',
    find: 'if (!isSame && results.anyParameters[slot] === 0) {',
    replace: 'if (!isSame && results.anyParameters[slot] === 2) {',
  },
  {
    name: 'results: a free-form result is forgotten after a tenth of a second',
    file: 'core/locks/requests.ts',
    find: 'Math.max(now + settings.resultRetentionMs, results.notAfter[slot] as number)',
    replace: 'Math.max(now + 100, results.notAfter[slot] as number)',
  },
  {
    name: 'results: an id is forgotten before its not_after',
    file: 'core/locks/requests.ts',
    find: 'Math.max(now + settings.resultRetentionMs, results.notAfter[slot] as number)',
    replace: 'now + settings.resultRetentionMs + 0 * (results.notAfter[slot] as number)',
  },
  {
    name: 'results: a first arrival at its not_after is carried out',
    file: 'core/locks/requests.ts',
    find: 'command.notAfter >= 0 && now >= command.notAfter',
    replace: 'command.notAfter >= 0 && now > command.notAfter',
  },
  {
    name: 'results: one id of two principals is one request',
    file: 'core/locks/requests.ts',
    find: 'const slot = results.findFree(principal, bytes, offset, length);',
    replace: 'const slot = results.findFree(Math.min(principal, 1), bytes, offset, length);',
  },
  {
    name: 'results: who steps down says NOT_LEADER of what may still commit',
    file: 'replica/turn.ts',
    find: '  refuseOpenBatch(state);\n',
    replace:
      '  refuseOpenBatch(state);\n' +
      '  let batch = state.pending.takeUpTo(Number.MAX_SAFE_INTEGER);\n' +
      '  while (batch !== null) {\n' +
      '    for (let i = 0; i < batch.count; i += 1) {\n' +
      '      const to = batch.connections[i] ?? null;\n' +
      '      if (to !== null) replyNotLeader(state, to, batch.correlations[i] as number);\n' +
      '    }\n' +
      '    state.pending.give(batch);\n' +
      '    batch = state.pending.takeUpTo(Number.MAX_SAFE_INTEGER);\n' +
      '  }\n',
  },
  {
    name: 'results: a cancel that comes too late says cancelled',
    file: 'core/locks/cancel.ts',
    find: 'const code = results.code[target] as number;',
    replace: 'const code: number = OutcomeCode.Cancelled;',
  },
  {
    name: 'results: a caller is told what another term put at its index',
    file: 'replica/apply.ts',
    find: 'if (batch.index === entry.index && batch.term === entry.term) {',
    replace: 'if (batch.index === entry.index) {',
  },
  {
    name: 'results: a read is answered before its read point is applied',
    file: 'replica/pending-reads.ts',
    find: 'if (batch.index <= appliedIndex) this.ready.push(...batch.reads);',
    replace: 'if (batch.index >= 0) this.ready.push(...batch.reads);',
  },
];

const EVENTS: readonly Plant[] = [
  {
    name: 'events: a waiter leaves without an event',
    file: 'core/locks/ownership.ts',
    find: 'waitEvent(state, wait, EventKind.Left, revision, code);',
    replace: '',
  },
  {
    name: 'events: a grant after a wait does not name its place',
    file: 'core/locks/ownership.ts',
    find: 'event.token = token;\n  event.place = place;',
    replace: 'event.token = token;\n  event.place = 0 * place;',
  },
];

const SNAPSHOTS: readonly Plant[] = [
  {
    name: 'snapshots: request results are not written',
    file: 'core/locks/snapshot-writer.ts',
    find: 'if (!results.isLive(slot)) continue;',
    replace: 'if (results.isLive(slot) || slot >= 0) continue;',
  },
  {
    name: 'snapshots: waits get new places',
    file: 'core/locks/snapshot-writer.ts',
    find: 'for (const wait of waitsByPlace(state)) {',
    replace: 'for (const wait of waitsByPlace(state).reverse()) {',
  },
  {
    name: 'snapshots: log is dropped before the snapshot is durable',
    file: 'server/snapshot-jobs.ts',
    find:
      "  yield { kind: 'folder', job: 'publishDraft', index };\n  lender.index = index;\n" +
      "  const firstIndex = (yield { kind: 'drop', before: logFrom }) as number;",
    replace:
      "  const firstIndex = (yield { kind: 'drop', before: logFrom }) as number;\n" +
      "  yield { kind: 'folder', job: 'publishDraft', index };\n  lender.index = index;",
  },
  {
    name: 'snapshots: one is taken whatever its digest is',
    file: 'io/snapshots/restore.ts',
    find: 'return digest === manifest.digest ? machine',
    replace: 'return digest.length > 0 ? machine',
  },
  {
    name: 'snapshots: the checksum of a chunk is not looked at',
    file: 'io/snapshots/snapshot-files.ts',
    find: 'return crc32(bytes) === chunk.crc ? null',
    replace: 'return crc32(bytes) >= 0 ? null',
  },
  {
    name: 'snapshots: a chunk that an earlier try has left is not synced',
    file: 'io/peers/snapshot-fetch.ts',
    find: 'writeDurably(file, kept);',
    replace: '',
  },
  {
    name: 'snapshots: an install leaves the old log where it was',
    file: 'io/log/group-commit.ts',
    find: 'if (order.resetTo !== 0) this.log.reset(order.resetTo);',
    replace: '',
  },
  {
    name: 'snapshots: a start keeps a log that ends before its snapshot',
    file: 'io/log/verify.ts',
    find: 'log.reset(baseIndex);\n  return',
    replace: 'return',
  },
  {
    name: 'snapshots: a failed sync of a folder is swallowed',
    file: 'io/sync-folder.ts',
    find: '    fs.fsyncSync(handle);\n',
    replace: '    try {\n      fs.fsyncSync(handle);\n    } catch {}\n',
  },
  {
    name: 'snapshots: a draft whose write failed is made again',
    file: 'server/snapshot-jobs.ts',
    find: 'if (error instanceof FailedWrite) throw error;\n    logger.error(',
    replace: 'logger.error(',
  },
  {
    name: 'snapshots: one whose write failed is fetched again',
    file: 'server/snapshot-jobs.ts',
    find: 'if (error instanceof FailedWrite) throw error;\n    logger.warn(',
    replace: 'logger.warn(',
  },
  {
    name: 'snapshots: a rename counts before it is durable',
    file: 'io/snapshots/snapshot-folder.ts',
    find: 'fs.renameSync(from, to);\n  syncFolder(path.dirname(to));',
    replace: 'fs.renameSync(from, to);',
  },
];

const WIRE: readonly Plant[] = [
  {
    name: 'wire: the checksum of a peer frame is not looked at',
    file: 'wire/peer.ts',
    find: 'return checksum(body) === u32At(bytes, start + 4);',
    replace: 'return checksum(body) >= 0;',
  },
  {
    name: 'wire: a refused append arrives as an accepted one',
    file: 'wire/peer.ts',
    find: 'message.reject = bytes[start + 2] === 1;',
    replace: 'message.reject = bytes[start + 2] === 2;',
  },
  {
    name: 'wire: the wait is read as the TTL',
    file: 'wire/operation.ts',
    find: 'command.waitMs = waitMs;',
    replace: 'command.ttlMs = waitMs;',
  },
  {
    name: 'wire: a reply tells the deadline as its cluster time',
    file: 'wire/reply.ts',
    find: 'return putHalves(bytes, at, highOf(outcome.entryTime), outcome.entryTime | 0);',
    replace: 'return putHalves(bytes, at, 0, Math.max(0, outcome.entryTime - 300) | 0);',
  },
  {
    name: 'wire: acknowledged singles are read as a mark',
    file: 'wire/operation.ts',
    find: 'command.acknowledged[single] = sequence;',
    replace: 'command.acknowledgedMark = sequence;',
  },
];

export const PLANTS: readonly Plant[] = [
  ...RAFT,
  ...STORAGE,
  ...LOCKS,
  ...RESULTS,
  ...EVENTS,
  ...SNAPSHOTS,
  ...WIRE,
  ...OPERATOR_PLANTS,
];

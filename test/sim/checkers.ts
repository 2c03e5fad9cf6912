/**
 * Independent checks of one finished run: its committed log, its nodes, what its clients were told.
 *
 * Owns: the verdicts. Never: production rules; the log is read through the production decoder once,
 * and judged by code of its own. Used by: chaos runs and their tests.
 */
import { Command, CommandKind } from '../../src/core/locks/command.js';
import { EventKind } from '../../src/core/locks/event.js';
import { LockMachine } from '../../src/core/locks/lock-machine.js';
import { Outcome, OutcomeCode } from '../../src/core/locks/outcome.js';
import { defaultSettings, type Settings } from '../../src/core/locks/settings.js';
import type { Entry } from '../../src/core/raft/message.js';
import { EntryReader } from '../../src/wire/entry.js';
import { decodeOperation } from '../../src/wire/operation.js';
import type { History } from './history.js';
import type { SimCluster } from './sim-cluster.js';

/** One event of the committed log, as the checkers see it. */
interface Seen {
  readonly kind: number;
  readonly revision: number;
  readonly token: number;
  readonly place: number;
  readonly lock: string;
}

const KEY = new Uint32Array(4).fill(0x0707_0707);

/** Applies a committed log to a fresh machine and collects its events. */
function replay(entries: readonly Entry[], settings: Settings): { events: Seen[]; digest: string } {
  const machine = new LockMachine(settings, KEY);
  const reader = new EntryReader();
  const command = new Command();
  const outcome = new Outcome();
  const events: Seen[] = [];
  for (const entry of entries) {
    if (!reader.open(entry.data)) throw new Error(`entry ${entry.index} is malformed`);
    const { entropy0, entropy1, entropy2, entropy3 } = reader;
    machine.beginEntry(entry.index, reader.stampMs, entropy0, entropy1, entropy2, entropy3);
    while (reader.next()) {
      if (decodeOperation(entry.data, reader.start, reader.end, command) !== 0) {
        throw new Error(`entry ${entry.index} has an operation that does not decode`);
      }
      command.principal = reader.principal;
      machine.apply(command, outcome);
    }
    machine.endEntry();
    for (let i = 0; i < machine.events.count; i += 1) {
      const { kind, revision, token, place } = machine.events.at(i);
      const lock = new TextDecoder().decode(machine.eventName(machine.events.at(i)));
      events.push({ kind, revision, token, place, lock });
    }
  }
  return { events, digest: machine.digest() };
}

/** Every violation found in a run that has been healed and is quiet. */
export function checkRun(cluster: SimCluster, history: History, settings?: Partial<Settings>) {
  const problems: string[] = [];
  const committed = longestLog(cluster, problems);
  const { events } = replay(committed, { ...defaultSettings(), ...settings });
  checkRevisions(events, problems);
  checkExclusion(events, problems);
  checkOrder(events, problems);
  checkAnswers(events, history, problems);
  checkBeliefs(history, problems);
  checkDigests(cluster, problems);
  return { problems, events: events.length, entries: committed.length };
}

/** Raft §5.4: the committed prefixes of all disks agree; the longest is the log. */
function longestLog(cluster: SimCluster, problems: string[]): Entry[] {
  let longest: Entry[] = [];
  const commits = cluster.nodes.map((node) => {
    const commit = node.replica?.status().commitIndex ?? 0;
    return node.disk.entries.slice(0, commit);
  });
  for (const entries of commits) if (entries.length > longest.length) longest = entries;
  for (const [at, entries] of commits.entries()) {
    for (const [position, entry] of entries.entries()) {
      if (longest[position]?.term === entry.term) continue;
      problems.push(`I5: node ${at + 1} committed another entry at ${entry.index}`);
      break;
    }
  }
  return longest;
}

function checkRevisions(events: readonly Seen[], problems: string[]): void {
  for (const [position, event] of events.entries()) {
    if (event.revision !== position + 1) {
      problems.push(`revision ${event.revision} stands at place ${position + 1}`);
      return;
    }
  }
}

/** I1, I2: grant and end alternate on every lock; tokens rise over all locks. */
function checkExclusion(events: readonly Seen[], problems: string[]): void {
  const holders = new Map<string, number>();
  let lastToken = 0;
  for (const event of events) {
    if (event.kind === EventKind.Granted) {
      if (holders.has(event.lock)) problems.push(`I1: ${event.lock} granted twice`);
      if (event.token <= lastToken) problems.push(`I2: token ${event.token} after ${lastToken}`);
      lastToken = event.token;
      holders.set(event.lock, event.token);
    } else if (event.kind === EventKind.Ended) {
      if (holders.get(event.lock) !== event.token) {
        problems.push(`I4: ${event.lock} ended with token ${event.token}, held by another`);
      }
      holders.delete(event.lock);
    }
  }
}

/** I7: those who were queued are granted in the order of their places. */
function checkOrder(events: readonly Seen[], problems: string[]): void {
  const queues = new Map<string, number[]>();
  for (const event of events) {
    const queue = queues.get(event.lock) ?? [];
    queues.set(event.lock, queue);
    if (event.kind === EventKind.Queued) queue.push(event.place);
    else if (event.kind === EventKind.Left) queue.splice(queue.indexOf(event.place), 1);
    else if (event.kind === EventKind.Granted) {
      if (event.place === 0 && queue.length > 0) problems.push(`I7: barging on ${event.lock}`);
      if (event.place !== 0 && queue.shift() !== event.place) {
        problems.push(`I7: place ${event.place} of ${event.lock} overtook`);
      }
    }
  }
}

/** I5, I6: what was acknowledged is in the log; one request id has one result. */
function checkAnswers(events: readonly Seen[], history: History, problems: string[]): void {
  const grants = new Map<number, string>();
  for (const event of events) {
    if (event.kind === EventKind.Granted) grants.set(event.token, event.lock);
  }
  const results = new Map<string, string>();
  for (const answer of history.answers) {
    const isGrant = answer.command === CommandKind.Acquire && answer.code === OutcomeCode.Ok;
    if (isGrant && grants.get(answer.token) !== answer.lock) {
      problems.push(`I10: token ${answer.token} for ${answer.lock} was told and is not in the log`);
    }
    const result = `${answer.code} ${answer.token} ${answer.leaseId}`;
    const earlier = results.get(answer.requestId);
    if (earlier !== undefined && earlier !== result) {
      problems.push(`I6: ${answer.requestId} had ${earlier}, then ${result}`);
    }
    results.set(answer.requestId, result);
  }
}

/** No two clients believe themselves holder of one lock at one moment of true time. */
function checkBeliefs(history: History, problems: string[]): void {
  const byLock = new Map<string, typeof history.beliefs>();
  for (const belief of history.beliefs) {
    const list = byLock.get(belief.lock) ?? [];
    list.push(belief);
    byLock.set(belief.lock, list);
  }
  for (const [lock, beliefs] of byLock) {
    beliefs.sort((a, b) => a.token - b.token);
    for (let i = 1; i < beliefs.length; i += 1) {
      const before = beliefs[i - 1];
      const after = beliefs[i];
      if (before === undefined || after === undefined || before.token === after.token) continue;
      if (before.untilUs > after.fromUs) {
        problems.push(`I8: ${lock}: ${before.token} believed until after ${after.token} began`);
      }
    }
  }
}

/** Nodes that applied the same index have the same digest. */
function checkDigests(cluster: SimCluster, problems: string[]): void {
  const digests = new Map<number, string>();
  for (const node of cluster.nodes) {
    const status = node.replica?.status();
    if (status === undefined) continue;
    const index = status.appliedIndex;
    const digest = status.digest;
    const other = digests.get(index);
    if (other !== undefined && other !== digest) problems.push(`digest differs at ${index}`);
    digests.set(index, digest);
  }
}

/**
 * How golden scripts tell what happened: messages, roles, disks and logs in a few plain words.
 *
 * Owns: the wording. Never: an order of things. Used by: script.ts.
 */
import { Role } from '../../src/core/raft/effects.js';
import { type Message, MessageKind } from '../../src/core/raft/message.js';
import type { Cluster, TestNode } from '../paper/cluster.js';
import { logWords } from '../paper/cluster.js';
import type { Order } from '../paper/disk.js';

const ROLE_WORDS = ['follower', 'pre-candidate', 'candidate', 'leader'] as const;
const KIND_WORDS = new Map<number, string>(
  Object.entries(MessageKind).map(([word, kind]) => [kind, word]),
);

function range(first: number, last: number): string {
  return first === last ? `${first}` : `${first} to ${last}`;
}

/** What a message says, without its sender and receiver. */
function contentOf(message: Message): string {
  const { kind, term, index, logTerm } = message;
  switch (kind) {
    case MessageKind.PreVote:
    case MessageKind.Vote:
      return `for term ${term}, log ends at ${index} of term ${logTerm}`;
    case MessageKind.PreVoteReply:
    case MessageKind.VoteReply:
      return message.reject ? `no, in term ${term}` : `yes for term ${term}`;
    case MessageKind.Append: {
      const place = `term ${term}, after ${index} of term ${logTerm}, commit ${message.commit}`;
      return `${place}: ${message.entries.length > 0 ? logWords(message.entries) : 'nothing'}`;
    }
    case MessageKind.AppendReply:
      return message.reject
        ? `term ${term}, refuses after ${index}, try ${message.hintIndex} of ${message.hintTerm}`
        : `term ${term}, has ${index}`;
    case MessageKind.Heartbeat:
      return `term ${term}, commit ${message.commit}${roundOf(message)}`;
    case MessageKind.HeartbeatReply:
      return `term ${term}${roundOf(message)}`;
    case MessageKind.ReadIndexReply:
      return `term ${term}, index ${index}`;
    case MessageKind.Transfer:
      return `term ${term}, to ${message.context}`;
    default:
      return `term ${term}`;
  }
}

function roundOf(message: Message): string {
  return message.context === 0 ? '' : `, read round ${message.context}`;
}

export function kindOf(message: Message): string {
  return KIND_WORDS.get(message.kind) ?? 'unknown';
}

export function messageWords(message: Message): string {
  return `${message.from}>${message.to} ${kindOf(message)} ${contentOf(message)}`;
}

export function roleWords(node: TestNode): string {
  const { raft } = node;
  if (raft === null) return 'is down';
  if (raft.role === Role.Leader) return `leads term ${raft.term}`;
  if (raft.role === Role.Candidate) return `asks for votes in term ${raft.term}`;
  if (raft.role === Role.PreCandidate) return `asks whether it could win term ${raft.term + 1}`;
  if (raft.leaderId !== 0) return `follows ${raft.leaderId} in term ${raft.term}`;
  return `knows no leader in term ${raft.term}`;
}

/** What an order made durable. */
export function orderWords(order: Order): string {
  const { hardState, truncateFrom, entries } = order;
  const words: string[] = [];
  if (hardState !== null) {
    const vote = hardState.votedFor === 0 ? 'no vote' : `vote for ${hardState.votedFor}`;
    words.push(`term ${hardState.term}, ${vote}`);
  }
  if (truncateFrom > 0) words.push(`cut from ${truncateFrom}`);
  const [first] = entries;
  if (first !== undefined) {
    words.push(`${range(first.index, first.index + entries.length - 1)}: ${logWords(entries)}`);
  }
  return words.join('; ');
}

export function commitWords(before: number, after: number): string {
  return `commits ${range(before + 1, after)}`;
}

/** Every node: what it is, and its log; entries in brackets are not on its disk yet. */
export function tableOf(cluster: Cluster): string[] {
  return cluster.nodes.map((node) => {
    const { id, raft, disk } = node;
    if (raft === null) return `${id} down, on disk: ${cluster.diskText(id)}`;
    const durable = cluster.entries(id).slice(0, raft.durableIndex);
    const rest = cluster.entries(id).slice(raft.durableIndex);
    const words = [logWords(durable), rest.length > 0 ? `(${logWords(rest)})` : ''];
    const log = words.filter((word) => word !== '').join(' ') || 'empty';
    const vote = disk.hardState.votedFor === 0 ? 'none' : disk.hardState.votedFor;
    const place = `term ${raft.term}, vote ${vote}, commit ${raft.commitIndex}`;
    return `${id} ${ROLE_WORDS[raft.role]}, ${place}, log: ${log}`;
  });
}

/**
 * Founding's questions and offers, over the peer port.
 *
 * Owns: the way between records and bytes, and the time one member is given. Never: what follows
 * from an answer (founding.ts). Used by: server/node.ts.
 */
import { askIdentity, offerFounding } from '../io/peers/founding-client.js';
import { decodeFounding, encodeFounding, type FoundingRecord } from '../wire/founding.js';
import { type FoundingPeers, FoundingRefused, type PeerIdentity } from './founding.js';
import type { MemberAddress } from './options.js';

/** A member that does not say who it is in this time counts as not reached in this round. */
const ASK_MS_MAX = 2_000;
/** An offer is answered when the record is on the member's disk. */
const OFFER_MS_MAX = 10_000;

/** The record in these bytes. Throws FoundingRefused when there is none. */
export function readRecord(bytes: Uint8Array): FoundingRecord {
  const record = decodeFounding(bytes);
  if (typeof record !== 'string') return record;
  throw new FoundingRefused(`A founding record ${record}: it was made by another version.`);
}

export class PeerFounding implements FoundingPeers {
  async ask(member: MemberAddress): Promise<PeerIdentity> {
    const { nodeId, diskId, record } = await askIdentity(member.peer, ASK_MS_MAX);
    return { nodeId, diskId, record: record === null ? null : readRecord(record) };
  }

  async offer(member: MemberAddress, record: FoundingRecord): Promise<void> {
    await offerFounding(member.peer, encodeFounding(record), OFFER_MS_MAX);
  }
}

/**
 * The asking side of founding: who are you, and please store this.
 *
 * Owns: one connection for one question, and its time-out. Never: the decision to found, or a
 * second try. Used by: server, while the cluster has no founding record.
 */
import net from 'node:net';
import { PEER_GREETING_MS_MAX } from '../../limits.js';
import { copyOf } from '../../wire/copy.js';
import {
  decodeFoundingStored,
  decodeFoundingTell,
  encodeFoundingAsk,
  encodeFoundingRecord,
  type FoundingTell,
} from '../../wire/founding-talk.js';
import type { OutBuffer } from '../../wire/out-buffer.js';
import { checksum, PeerSocket } from './peer-socket.js';

/** The peer port of a node. */
export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

type Decode<T> = (bytes: Uint8Array, start: number, end: number) => T | null;

/** Sends one frame and resolves with what `decode` makes of the first frame that comes back. */
function exchange<T>(
  { host, port }: PeerAddress,
  timeoutMs: number,
  encode: (out: OutBuffer) => void,
  decode: Decode<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host, port, noDelay: true });
    let answer: T | null = null;
    const link = new PeerSocket(socket, {
      onBody: (bytes, start, end) => {
        answer = decode(bytes, start, end);
        if (answer !== null) link.destroy('answered');
        return answer !== null;
      },
      onEnd: (reason) => {
        clearTimeout(timer);
        if (answer === null) reject(new Error(`${host}:${port} did not answer: ${reason}`));
        else resolve(answer);
      },
    });
    const timer = setTimeout(() => link.destroy(`no answer within ${timeoutMs} ms`), timeoutMs);
    socket.once('connect', () => {
      encode(link.out);
      link.flush();
    });
  });
}

/** Asks the node at `address` who it is. Rejects when it does not say so within `timeoutMs`. */
export async function askIdentity(
  address: PeerAddress,
  timeoutMs = PEER_GREETING_MS_MAX,
): Promise<FoundingTell> {
  const encode = (out: OutBuffer) => encodeFoundingAsk(out, checksum);
  const { nodeId, diskId, record } = await exchange(address, timeoutMs, encode, decodeFoundingTell);
  // The decoder lends ranges of the socket's bytes; what is kept is copied.
  const kept = record === null ? null : copyOf(record, 0, record.length);
  return { nodeId, diskId: copyOf(diskId, 0, diskId.length), record: kept };
}

/**
 * Offers a founding record to the node at `address`. Resolves when the record is on its disk;
 * rejects with the node's reason when it refuses, and when it does not answer within `timeoutMs`:
 * then nobody knows whether it is stored, and the same record may be offered again.
 */
export async function offerFounding(
  address: PeerAddress,
  record: Uint8Array,
  timeoutMs = PEER_GREETING_MS_MAX,
): Promise<void> {
  const encode = (out: OutBuffer) => encodeFoundingRecord(out, record, checksum);
  const stored = await exchange(address, timeoutMs, encode, decodeFoundingStored);
  if (stored.isStored) return;
  throw new Error(`${address.host}:${address.port} refused the founding: ${stored.reason}`);
}

/**
 * What a hostile or broken program may send to a peer port.
 *
 * Owns: the frames, each with its length and its checksum. Never: a socket, an expectation. Whoever
 * sends them knows the protocol but neither the cluster's id nor its disks.
 * Used by: hostile-bytes.test.ts.
 */
import type { Prng } from '../../../src/collections/prng.js';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import { Message, MessageKind } from '../../../src/core/raft/message.js';
import { checksum } from '../../../src/io/peers/peer-socket.js';
import { PEER_FRAME_BYTES_MAX, PEER_GREETING_BYTES_MAX } from '../../../src/limits.js';
import { encodeFounding } from '../../../src/wire/founding.js';
import { encodeFoundingAsk, encodeFoundingRecord } from '../../../src/wire/founding-talk.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { encodeMessage, encodePeerHello, PEER_VERSION } from '../../../src/wire/peer.js';
import { randomBytes } from './hostile-client-bytes.js';

const HEADER_BYTES = 8;

/** A frame whose checksum is right, whatever its body. */
export function peerFrame(body: Uint8Array): Buffer {
  const frame = Buffer.alloc(HEADER_BYTES + body.length);
  frame.writeUInt32BE(body.length, 0);
  frame.writeUInt32BE(checksum(body), 4);
  frame.set(body, HEADER_BYTES);
  return frame;
}

function written(write: (out: OutBuffer) => void): Buffer {
  const out = new OutBuffer();
  write(out);
  return Buffer.from(out.take());
}

/** A sound question who the node is, which any stranger may ask. */
export function askFrame(): Buffer {
  return written((out) => encodeFoundingAsk(out, checksum));
}

/** The hello of node 2 of another cluster. */
function strangeHello(): Buffer {
  const id = new Uint8Array(16).fill(0xee);
  const hello = {
    version: PEER_VERSION,
    featureLevel: 1,
    nodeId: 2,
    clusterId: id,
    diskId: id,
  };
  return written((out) => encodePeerHello(out, hello, checksum));
}

/** An offer to found another cluster. */
function strangeFounding(): Buffer {
  const members = [1, 2, 3].map((nodeId) => {
    const diskId = new Uint8Array(16).fill(nodeId);
    return { nodeId, diskId, peer: '127.0.0.1:1', client: '127.0.0.1:2', zone: null };
  });
  const clusterId = new Uint8Array(16).fill(0xee);
  const settings = defaultSettings();
  const record = encodeFounding({ clusterId, members, settings, featureLevel: 1 });
  return written((out) => encodeFoundingRecord(out, record, checksum));
}

/** A leader's heartbeat of a far term, without a hello before it. */
function strangeMessage(): Buffer {
  const message = new Message(MessageKind.Heartbeat, 2, 1);
  message.term = 2 ** 40;
  return written((out) => encodeMessage(out, message, checksum));
}

/** Frames after each of which the node has to close the connection. */
export function impossiblePeerFrames(prng: Prng): Map<string, Buffer> {
  const frames = new Map<string, Buffer>();
  const length = (claimed: number): Buffer => {
    const frame = Buffer.alloc(64);
    frame.writeUInt32BE(claimed, 0);
    return frame;
  };
  frames.set('a length of 0', length(0));
  frames.set('a length of 2^32 - 1', length(2 ** 32 - 1));
  frames.set('a length that only a member may send', length(PEER_GREETING_BYTES_MAX + 1));
  frames.set('a length past every bound', length(PEER_FRAME_BYTES_MAX + 1));
  const broken = askFrame();
  broken[4] = (broken[4] ?? 0) ^ 1;
  frames.set('a wrong checksum', broken);
  frames.set('a message without a hello', strangeMessage());
  frames.set('the hello of another cluster', strangeHello());
  for (let kind = 0; kind < 10; kind += 1) {
    // Kind 4 is the question, which has no body; with one it is no question.
    const body = randomBytes(prng, 200);
    body[0] = kind;
    if (kind !== 6) frames.set(`nonsense of kind ${kind}`, peerFrame(body));
  }
  return frames;
}

/** Offers that the node answers with a refusal: it is founded, and they are not for it. */
export function refusedPeerFrames(prng: Prng): Map<string, Buffer> {
  const nonsense = randomBytes(prng, 200);
  nonsense[0] = 6;
  return new Map([
    ['a founding record of another cluster', strangeFounding()],
    ['a founding record that is none', peerFrame(nonsense)],
  ]);
}

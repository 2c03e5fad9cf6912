/**
 * Fetches another member's snapshot on a connection of its own, and goes on where it was cut off.
 *
 * Owns: the connection and the folder `incoming-…`: each chunk is checked against the manifest and
 * on disk before the next is asked for; a fetch that begins again finds them. Never: makes what it
 * fetched count; whoever asked builds the machine first. Run on a worker thread, so that neither
 * checksums nor fsync are the event loop's.
 */
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { SNAPSHOT_ANSWER_MS_MAX } from '../../limits.js';
import { copyOf } from '../../wire/copy.js';
import {
  decodePeerHelloReply,
  encodePeerHello,
  type PeerHello,
  PeerKind,
  PeerVerdict,
} from '../../wire/peer.js';
import { decodeManifest, type SnapshotManifest } from '../../wire/snapshot-manifest.js';
import {
  decodeChunkTell,
  decodeSnapshotTell,
  encodeChunkAsk,
  encodeSnapshotAsk,
} from '../../wire/snapshot-talk.js';
import {
  chunkFault,
  chunkFile,
  readChunk,
  writeDurably,
  writeManifest,
} from '../snapshots/snapshot-files.js';
import { incomingPlace, removeOtherIncoming } from '../snapshots/snapshot-folder.js';
import type { PeerAddress } from './founding-client.js';
import { isSameId } from './membership.js';
import { checksum, PeerSocket } from './peer-socket.js';

export interface FetchTask {
  readonly dataFolder: string;
  /** The member that is asked. */
  readonly address: PeerAddress;
  /** Who asks. */
  readonly hello: PeerHello;
  readonly leastIndex: number;
  /** Ms for one answer, SNAPSHOT_ANSWER_MS_MAX by default. */
  readonly answerMsMax?: number;
}

export interface FetchResult {
  readonly manifest: SnapshotManifest;
  /** Chunks that were there already, from an earlier try. */
  readonly resumed: number;
  readonly bytes: number;
}

type Decode<T> = (bytes: Uint8Array, start: number, end: number) => T | null;

/** One connection on which one question is out at a time. */
class Asker {
  private readonly link: PeerSocket;
  private waiting: { onBody: Decode<true>; reject: (reason: Error) => void } | null = null;
  private ended: Error | null = null;

  constructor(
    { host, port }: PeerAddress,
    private readonly answerMsMax: number,
  ) {
    const socket = net.connect({ host, port, noDelay: true });
    this.link = new PeerSocket(socket, {
      onBody: (bytes, start, end) => this.waiting?.onBody(bytes, start, end) === true,
      onEnd: (reason) => {
        this.ended = new Error(`${host}:${port}: ${reason}`);
        this.waiting?.reject(this.ended);
      },
    });
    this.link.isGreeted = true;
    socket.once('connect', () => this.link.flush());
  }

  /** Sends what `encode` writes and resolves with what `decode` makes of the next frame. */
  ask<T>(encode: (link: PeerSocket) => void, decode: Decode<T>): Promise<T> {
    if (this.ended !== null) return Promise.reject(this.ended);
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(
        () => this.link.destroy(`no answer within ${this.answerMsMax} ms`),
        this.answerMsMax,
      );
      const settle = (then: () => void): void => {
        clearTimeout(timer);
        this.waiting = null;
        then();
      };
      this.waiting = {
        onBody: (bytes, start, end) => {
          const answer = decode(bytes, start, end);
          if (answer === null) return null;
          settle(() => resolve(answer));
          return true;
        },
        reject: (reason) => settle(() => reject(reason)),
      };
      encode(this.link);
      this.link.flush();
    });
  }

  close(): void {
    this.link.destroy('done');
  }
}

async function greet(asker: Asker, hello: PeerHello): Promise<void> {
  const reply = await asker.ask(
    ({ out }) => encodePeerHello(out, hello, checksum, PeerKind.FetchHello),
    decodePeerHelloReply,
  );
  if (reply.verdict !== PeerVerdict.Welcome) throw new Error(`it refuses this node: ${reply.text}`);
}

async function askManifest(asker: Asker, task: FetchTask): Promise<SnapshotManifest> {
  const bytes = await asker.ask(
    ({ out }) => encodeSnapshotAsk(out, task.leastIndex, checksum),
    (body, start, end) => {
      const lent = decodeSnapshotTell(body, start, end);
      return lent === null ? null : copyOf(lent, 0, lent.length);
    },
  );
  if (bytes.length === 0)
    throw new Error(`it has no snapshot of index ${task.leastIndex} or later`);
  const manifest = decodeManifest(bytes);
  if (typeof manifest === 'string') throw new Error(`its manifest ${manifest}`);
  if (!isSameId(manifest.clusterId, task.hello.clusterId)) throw new Error('of another cluster');
  if (manifest.index < task.leastIndex) throw new Error(`it offers index ${manifest.index}`);
  return manifest;
}

/** Gets one chunk on disk, unless it is there already. True when it was. */
async function fetchChunk(
  asker: Asker,
  folder: string,
  manifest: SnapshotManifest,
  position: number,
): Promise<boolean> {
  if (typeof readChunk(folder, manifest, position) !== 'string') return true;
  const name = { index: manifest.index, position };
  const chunk = await asker.ask(
    ({ out }) => encodeChunkAsk(out, name, checksum),
    (body, start, end) => decodeChunkTell(body, start, end, name),
  );
  // Lent by the socket: written before anything else is read from it.
  if (chunk.length === 0) throw new Error(`its snapshot of index ${manifest.index} is gone`);
  const file = chunkFile(folder, position);
  const fault = chunkFault(chunk, manifest.chunks[position]!);
  if (fault !== null) throw new Error(`its ${path.basename(file)} ${fault}`);
  writeDurably(file, chunk);
  return false;
}

/**
 * Resolves when the whole snapshot is durable in `incoming-…`, with its manifest. Rejects with the
 * reason; what was fetched stays for the next try.
 */
export async function fetchSnapshot(task: FetchTask): Promise<FetchResult> {
  const asker = new Asker(task.address, task.answerMsMax ?? SNAPSHOT_ANSWER_MS_MAX);
  try {
    await greet(asker, task.hello);
    const manifest = await askManifest(asker, task);
    const folder = incomingPlace(task.dataFolder, manifest.index);
    removeOtherIncoming(task.dataFolder, manifest.index);
    fs.mkdirSync(folder, { recursive: true });
    let resumed = 0;
    let bytes = 0;
    for (let position = 0; position < manifest.chunks.length; position += 1) {
      if (await fetchChunk(asker, folder, manifest, position)) resumed += 1;
      bytes += manifest.chunks[position]!.bytes;
    }
    writeManifest(folder, manifest);
    return { manifest, resumed, bytes };
  } finally {
    asker.close();
  }
}

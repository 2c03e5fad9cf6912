/**
 * Fetches a member's snapshot on a connection of its own.
 *
 * Owns: the connection, on which one question is out at a time. Never: what is asked and what
 * becomes of the answers (snapshot-fetch.ts). Run on a worker thread, so that neither checksums nor
 * fsync are the event loop's.
 */
import net from 'node:net';
import { SNAPSHOT_ANSWER_MS_MAX } from '../../limits.js';
import {
  decodePeerHelloReply,
  encodePeerHello,
  type PeerHello,
  PeerKind,
  PeerVerdict,
} from '../../wire/peer.js';
import type { PeerAddress } from './founding-client.js';
import { checksum, PeerSocket } from './peer-socket.js';
import { type FetchResult, fetchSteps } from './snapshot-fetch.js';

export interface FetchTask {
  readonly dataFolder: string;
  /** The member that is asked. */
  readonly address: PeerAddress;
  /** Who asks. */
  readonly hello: PeerHello;
  readonly leastIndex: number;
  /** True: no member asks, and the one that is asked makes a snapshot if it has none. */
  readonly isBackup?: boolean;
  /** Ms for one answer, SNAPSHOT_ANSWER_MS_MAX by default. */
  readonly answerMsMax?: number;
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

async function greet(asker: Asker, { hello, isBackup = false }: FetchTask): Promise<void> {
  const kind = isBackup ? PeerKind.BackupHello : PeerKind.FetchHello;
  const reply = await asker.ask(
    ({ out }) => encodePeerHello(out, hello, checksum, kind),
    decodePeerHelloReply,
  );
  if (reply.verdict !== PeerVerdict.Welcome) throw new Error(`it refuses this node: ${reply.text}`);
}

/**
 * Resolves when the whole snapshot is durable in `incoming-…`, with its manifest. Rejects with the
 * reason; what was fetched stays for the next try.
 */
export async function fetchSnapshot(task: FetchTask): Promise<FetchResult> {
  const asker = new Asker(task.address, task.answerMsMax ?? SNAPSHOT_ANSWER_MS_MAX);
  const { dataFolder, hello, leastIndex } = task;
  const steps = fetchSteps({ dataFolder, clusterId: hello.clusterId, leastIndex });
  try {
    await greet(asker, task);
    let step = steps.next();
    while (step.done !== true) {
      const question = step.value;
      const answer = await asker.ask(({ out }) => question.encode(out), question.decode);
      step = steps.next(answer);
    }
    return step.value;
  } finally {
    asker.close();
  }
}

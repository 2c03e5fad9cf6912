/**
 * A client of the simulated cluster: speaks the wire to one node at a time.
 *
 * Owns: its connection and the replies it has received. Never: retries by itself; scenarios decide.
 * Used by: scenarios.
 */
import { Packr, Unpackr } from 'msgpackr';
import { Connection } from '../../src/replica/connection.js';
import type { SimCluster, SimNode } from './sim-cluster.js';

const packr = new Packr({ useRecords: false, variableMapSize: true });
const unpackr = new Unpackr({ useRecords: false, int64AsType: 'number' });
const DELAY_US = 60;
const HELLO = [1, 1, 'sim', null] as const;

/** One decoded reply: [correlation, code, cluster time, replay, ...fields]. */
export type Reply = readonly [number, number, number | null, boolean, ...unknown[]];

export class SimClient {
  private connection: Connection | null = null;
  private node: SimNode | null = null;
  private life = 0;
  private lastCorrelation = 0;
  /** One-way delay between client and node, µs, least and most. */
  delayUs: readonly [number, number] = [DELAY_US, DELAY_US];
  /** Hears every reply but notices; without it they are kept in `replies`. */
  onReply: ((reply: Reply) => void) | null = null;
  /** Final and queued replies by correlation, in order of arrival. */
  readonly replies = new Map<number, Reply[]>();
  readonly notices: Reply[] = [];
  private readonly arrivals = new Map<number, number>();

  constructor(
    private readonly cluster: SimCluster,
    private readonly id: number,
    private readonly principal = 1,
  ) {}

  get isConnected(): boolean {
    const { node } = this;
    return node?.replica != null && node.life === this.life && this.connection?.closed === false;
  }

  /** The node that it is or was connected to. */
  get nodeId(): number {
    return this.node?.nodeId ?? 0;
  }

  /** Opens a connection to `node` and greets it. */
  connect(node: SimNode): void {
    this.disconnect();
    const { world } = this.cluster;
    this.node = node;
    this.life = node.life;
    const transport = {
      backlogBytes: 0,
      flush: (): void => {
        connection.sealFrame();
        const bytes = connection.out.bytes.slice(0, connection.out.length);
        connection.out.clear();
        world.after(this.delay(), () => this.receive(connection, bytes));
      },
      close: (): void => undefined,
      pauseReading: (): void => undefined,
      resumeReading: (): void => undefined,
    };
    const connection: Connection = new Connection(this.id, this.principal, transport, 'sim');
    this.connection = connection;
    this.cluster.whenAwake(node, () => node.replica?.connectionOpened(connection));
    this.send(HELLO);
  }

  /** The connection breaks: replies on their way are lost. */
  disconnect(): void {
    const { connection, node, life } = this;
    this.connection = null;
    if (connection === null || node === null || node.life !== life) return;
    this.cluster.whenAwake(node, () => {
      connection.closed = true;
      node.replica?.connectionClosed(connection);
    });
  }

  /** Sends one operation. Returns its correlation. */
  send(operation: readonly unknown[], deadlineMs = 10_000): number {
    this.lastCorrelation += 1;
    const correlation = this.lastCorrelation;
    const { connection, node, life } = this;
    if (connection === null || node === null) return correlation;
    const body = packr.pack([1, 0, [correlation, deadlineMs, operation]]);
    this.cluster.world.after(this.delay(), () => {
      if (node.life !== life) return;
      this.cluster.whenAwake(node, () => {
        if (!connection.closed) node.replica?.receive(connection, body, 0, body.length);
      });
    });
    return correlation;
  }

  private delay(): number {
    const [least, most] = this.delayUs;
    return least === most ? least : this.cluster.world.between(least, most);
  }

  /** The last reply to `correlation`, or undefined. */
  replyTo(correlation: number): Reply | undefined {
    const replies = this.replies.get(correlation);
    return replies?.[replies.length - 1];
  }

  /** When the last reply to `correlation` arrived, µs of true time. */
  arrivedUs(correlation: number): number {
    return this.arrivals.get(correlation) ?? Number.NaN;
  }

  private receive(connection: Connection, bytes: Uint8Array): void {
    if (connection !== this.connection) return;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    while (at < bytes.length) {
      const length = view.getUint32(at);
      const frame = unpackr.unpack(bytes.subarray(at + 4, at + 4 + length)) as unknown[];
      at += 4 + length;
      for (const item of frame.slice(2) as Reply[]) this.note(item);
    }
  }

  private note(reply: Reply): void {
    if (reply[0] === 0) {
      this.notices.push(reply);
      return;
    }
    if (this.onReply !== null) {
      this.onReply(reply);
      return;
    }
    this.arrivals.set(reply[0], this.cluster.world.nowUs);
    const known = this.replies.get(reply[0]);
    if (known === undefined) this.replies.set(reply[0], [reply]);
    else known.push(reply);
  }
}

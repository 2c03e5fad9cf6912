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

/** One decoded reply: [correlation, code, cluster time, replay, ...fields]. */
export type Reply = readonly [number, number, number | null, boolean, ...unknown[]];

export class SimClient {
  private connection: Connection | null = null;
  private node: SimNode | null = null;
  private life = 0;
  private lastCorrelation = 0;
  /** Final and queued replies by correlation, in order of arrival. */
  readonly replies = new Map<number, Reply[]>();
  readonly notices: Reply[] = [];
  private readonly arrivals = new Map<number, number>();

  constructor(
    private readonly cluster: SimCluster,
    private readonly id: number,
  ) {}

  get isConnected(): boolean {
    const { node } = this;
    return node?.replica != null && node.life === this.life && this.connection?.closed === false;
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
        const bytes = connection.out.take().slice();
        world.after(DELAY_US, () => this.receive(bytes));
      },
      close: (): void => undefined,
      pauseReading: (): void => undefined,
      resumeReading: (): void => undefined,
    };
    const connection: Connection = new Connection(this.id, 1, transport, 'sim');
    this.connection = connection;
    node.replica?.connectionOpened(connection);
    this.send([1, 1, 'sim', null]);
  }

  /** The connection breaks: replies on their way are lost. */
  disconnect(): void {
    const { connection, node } = this;
    if (connection === null) return;
    connection.closed = true;
    if (node?.life === this.life) node.replica?.connectionClosed(connection);
    this.connection = null;
  }

  /** Sends one operation. Returns its correlation. */
  send(operation: readonly unknown[], deadlineMs = 10_000): number {
    this.lastCorrelation += 1;
    const correlation = this.lastCorrelation;
    const { connection, node, life } = this;
    const body = packr.pack([1, 0, [correlation, deadlineMs, operation]]);
    this.cluster.world.after(DELAY_US, () => {
      if (connection === null || connection.closed || node?.life !== life) return;
      node.replica?.receive(connection, body, 0, body.length);
    });
    return correlation;
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

  private receive(bytes: Uint8Array): void {
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
    this.arrivals.set(reply[0], this.cluster.world.nowUs);
    const known = this.replies.get(reply[0]);
    if (known === undefined) this.replies.set(reply[0], [reply]);
    else known.push(reply);
  }
}

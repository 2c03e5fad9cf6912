/**
 * A TCP relay on loopback that can swallow what a node answers.
 *
 * Owns: its listening socket and the connections through it, and what it swallowed. Never: changes
 * or delays a byte on the way to the node. With it a request reaches the log and its caller never
 * hears of that: bytes that were swallowed are the proof that the node had answered, and what.
 * Used by: tests of lost replies.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { Endpoint } from '../../../src/client/transport.js';
import { waitFor } from '../wait-for.js';

export class Relay {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private isSwallowing = false;
  private swallowedBytes = 0;
  /** Everything that was swallowed, in order, over all connections. */
  readonly lost: Buffer[] = [];

  private constructor(private readonly target: Endpoint) {
    this.server = createServer({ noDelay: true }, (caller) => this.join(caller));
  }

  /** Starts a relay to a node, on a port of the system's choice. Close it. */
  static async start(target: Endpoint): Promise<Relay> {
    const relay = new Relay(target);
    await new Promise<void>((resolve, reject) => {
      relay.server.once('error', reject);
      relay.server.listen(0, '127.0.0.1', resolve);
    });
    return relay;
  }

  /** `host:port` to connect to instead of the node's. */
  get endpoint(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** From now on nothing that the node says arrives. */
  swallow(): void {
    this.isSwallowing = true;
  }

  /** Resolves when the node has said something that was swallowed; forgets it again. */
  async swallowed(): Promise<void> {
    await waitFor('a reply to be swallowed', () => this.swallowedBytes > 0);
    this.swallowedBytes = 0;
  }

  /** Cuts every connection through the relay and stops listening. Idempotent. */
  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private join(caller: Socket): void {
    const node = connect({ ...this.target, noDelay: true });
    this.tie(caller, node);
    this.tie(node, caller);
    caller.on('data', (bytes) => node.write(bytes));
    node.on('data', (bytes) => {
      if (this.isSwallowing) this.lose(bytes);
      else caller.write(bytes);
    });
  }

  private lose(bytes: Buffer): void {
    this.swallowedBytes += bytes.length;
    this.lost.push(bytes);
  }

  /** The end of one side is the end of the other. */
  private tie(socket: Socket, other: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined); // followed by 'close'
    socket.on('close', () => {
      this.sockets.delete(socket);
      other.destroy();
    });
  }
}

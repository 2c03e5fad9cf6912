/**
 * A TCP relay on loopback that holds what a caller sends, from given bytes on, until it is let go.
 *
 * Owns: its listening socket and the connections through it. It is the network that delays a write
 * past the end of its writer's lease. Never: drops or changes a byte. Used by: story.ts.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { waitFor } from '../cluster/wait-for.js';

export class HoldingRelay {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private held: { readonly to: Socket; readonly bytes: Buffer }[] = [];
  private readonly holding = new Set<Socket>();
  private pattern: string | null = null;

  private constructor(private readonly targetPort: number) {
    this.server = createServer({ noDelay: true }, (caller) => this.join(caller));
  }

  static async start(targetPort: number): Promise<HoldingRelay> {
    const relay = new HoldingRelay(targetPort);
    await new Promise<void>((resolve) => relay.server.listen(0, '127.0.0.1', resolve));
    return relay;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Holds each connection from the first part that has these bytes. */
  holdFrom(pattern: string): void {
    this.pattern = pattern;
  }

  /** Resolves when something is held. */
  async holds(): Promise<void> {
    await waitFor(`${this.pattern} to be held`, () => this.held.length > 0);
  }

  /** Sends on what was held, and holds nothing any more. */
  letGo(): void {
    this.pattern = null;
    this.holding.clear();
    for (const { to, bytes } of this.held) to.write(bytes);
    this.held = [];
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private join(caller: Socket): void {
    const target = connect({ host: '127.0.0.1', port: this.targetPort, noDelay: true });
    this.tie(caller, target);
    this.tie(target, caller);
    target.on('data', (bytes) => caller.write(bytes));
    caller.on('data', (bytes) => {
      if (this.pattern !== null && bytes.includes(this.pattern)) this.holding.add(caller);
      if (this.holding.has(caller)) this.held.push({ to: target, bytes });
      else target.write(bytes);
    });
  }

  private tie(socket: Socket, other: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined); // followed by 'close'
    socket.on('close', () => {
      this.sockets.delete(socket);
      other.destroy();
    });
  }
}

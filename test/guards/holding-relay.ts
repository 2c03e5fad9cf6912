/**
 * A TCP relay on loopback that holds what a caller sends, from given bytes on, until it is let go.
 *
 * Owns: its listening socket and the connections through it. It is the network that delays a write
 * past the end of its writer's lease. A server that closes an idle connection meanwhile gets what
 * was held on a new one, as from a proxy that buffers. Never: drops or changes a byte. Used by:
 * story.ts, special-cases.ts.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { waitFor } from '../cluster/wait-for.js';

export class HoldingRelay {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private held: { readonly from: Socket; readonly bytes: Buffer }[] = [];
  private readonly targets = new Map<Socket, Socket>();
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
    for (const { from, bytes } of this.held) {
      const present = this.targets.get(from);
      const target = present === undefined || present.destroyed ? this.reach(from) : present;
      target.write(bytes);
    }
    this.holding.clear();
    this.held = [];
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private join(caller: Socket): void {
    this.reach(caller);
    this.sockets.add(caller);
    caller.on('error', () => undefined); // followed by 'close'
    caller.on('close', () => {
      this.sockets.delete(caller);
      this.targets.get(caller)?.destroy();
      this.targets.delete(caller);
    });
    caller.on('data', (bytes) => {
      if (this.pattern !== null && bytes.includes(this.pattern)) this.holding.add(caller);
      if (this.holding.has(caller)) this.held.push({ from: caller, bytes });
      else this.targets.get(caller)?.write(bytes);
    });
  }

  private reach(caller: Socket): Socket {
    const target = connect({ host: '127.0.0.1', port: this.targetPort, noDelay: true });
    this.targets.set(caller, target);
    this.sockets.add(target);
    target.on('data', (bytes) => caller.write(bytes));
    target.on('error', () => undefined); // followed by 'close'
    target.on('close', () => {
      this.sockets.delete(target);
      if (!this.holding.has(caller)) caller.destroy();
    });
    return target;
  }
}

/**
 * A simulated network between nodes: delay, loss, duplication, reordering, cut links.
 *
 * Owns: which message arrives when, if at all. Never: its content.
 * Used by: sim-cluster.ts.
 */
import type { Message } from '../../src/core/raft/message.js';
import type { World } from './world.js';

export class SimNetwork {
  /** Shares of messages lost and doubled, 0 to 1. */
  loss = 0;
  duplication = 0;
  /** One-way delay in µs, least and most; a wide range reorders. */
  delayUs: readonly [number, number] = [50, 200];
  private readonly cut = new Set<string>();
  deliver: (message: Message) => void = () => undefined;

  constructor(private readonly world: World) {}

  /** Cuts the link one way. */
  cutLink(from: number, to: number): void {
    this.cut.add(`${from}>${to}`);
  }

  heal(): void {
    this.cut.clear();
    this.loss = 0;
    this.duplication = 0;
  }

  send(message: Message): void {
    if (this.isCut(message) || this.world.chance(this.loss)) return;
    const copies = this.world.chance(this.duplication) ? 2 : 1;
    for (let i = 0; i < copies; i += 1) {
      this.world.after(this.world.between(...this.delayUs), () => {
        if (!this.isCut(message)) this.deliver(message);
      });
    }
  }

  private isCut(message: Message): boolean {
    return this.cut.has(`${message.from}>${message.to}`);
  }
}

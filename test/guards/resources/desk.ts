/**
 * A process that writes a SQLite file for others over TCP, one line of JSON each way.
 *
 * Owns: the lines. SQLite has no network, so a write that was held on its way is here one to the
 * process that has the file; that process has the guard. Used by: story.ts, open.ts.
 */
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { createInterface } from 'node:readline';
import type { Fence } from '../../../src/guards/fence.js';
import type { Guard } from '../../../src/guards/guard.js';
import { isStaleToken, StaleTokenError } from '../../../src/guards/stale-token.js';
import type { Door, Place } from '../resource.js';

interface Order {
  readonly fence: Fence;
  readonly value: string;
}

interface Answer {
  readonly value: string;
  /** Token that was seen by who refused; 0: done. */
  readonly seen: number;
}

/** Takes orders for one door. */
export class Desk {
  private readonly server: Server;

  private constructor(private readonly door: Door) {
    this.server = createServer((socket) => {
      createInterface({ input: socket }).on('line', async (line) => {
        const answer = await this.carryOut(JSON.parse(line) as Order);
        socket.write(`${JSON.stringify(answer)}\n`);
      });
      socket.on('error', () => undefined); // the caller hung up
    });
  }

  static async start(door: Door): Promise<Desk> {
    const desk = new Desk(door);
    await new Promise<void>((resolve) => desk.server.listen(0, '127.0.0.1', resolve));
    return desk;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    this.server.close();
  }

  private async carryOut({ fence, value }: Order): Promise<Answer> {
    try {
      await this.door.write(fence, value);
      return { value: await this.door.read(), seen: 0 };
    } catch (error) {
      if (!isStaleToken(error)) throw error;
      return { value: '', seen: error.seen };
    }
  }
}

/** A door whose writes go through a desk; everything else is that of the door behind. */
export class DeskDoor implements Door {
  readonly guard: Guard;

  constructor(
    private readonly behind: Door,
    private readonly desk: Place,
  ) {
    this.guard = behind.guard;
  }

  write(fence: Fence, value: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.desk.port, '127.0.0.1');
      socket.once('error', reject);
      createInterface({ input: socket }).once('line', (line) => {
        const { seen } = JSON.parse(line) as Answer;
        socket.destroy();
        if (seen === 0) resolve();
        else reject(new StaleTokenError('desk', fence, seen));
      });
      socket.write(`${JSON.stringify({ fence, value })}\n`);
    });
  }

  claim(fence: Fence): Promise<string> {
    return this.behind.claim(fence);
  }

  read(): Promise<string> {
    return this.behind.read();
  }

  close(): Promise<void> {
    return this.behind.close();
  }
}

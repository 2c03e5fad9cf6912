/**
 * What loopback TCP costs below the product: a small message there and back, and large frames.
 *
 * Owns: both ends, in this one process, so CPU is that of both. Never: a frame of the protocol.
 * Used by: main.ts.
 */
import net from 'node:net';
import { cost, type Figure, paced, rate } from './figure.js';

const SMALL_BYTES = 64;
/** 256 requests of the closed loop. */
const LARGE_BYTES = 24_000;
const LARGE_AT_ONCE = 8;
const FOR_MS = 1_500;
const REQUEST_BYTES = 94;

class Echo {
  private constructor(
    private readonly server: net.Server,
    readonly socket: net.Socket,
  ) {}

  static async open(): Promise<Echo> {
    const server = net.createServer({ noDelay: true }, (socket) => {
      socket.on('data', (chunk) => socket.write(chunk));
      socket.on('error', () => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const socket = net.connect({ host: '127.0.0.1', port, noDelay: true });
    await new Promise<void>((resolve) => socket.once('connect', resolve));
    return new Echo(server, socket);
  }

  close(): void {
    this.socket.destroy();
    this.server.close();
  }

  /** Sends messages of `bytes` and resolves when all of them came back. */
  roundTrips(bytes: number, atOnce: number): () => Promise<void> {
    const message = Buffer.alloc(bytes, 7);
    let due = 0;
    let resolve: () => void = () => undefined;
    this.socket.on('data', (chunk) => {
      due -= chunk.length;
      if (due === 0) resolve();
    });
    return () => {
      due = bytes * atOnce;
      return new Promise<void>((done) => {
        resolve = done;
        for (let i = 0; i < atOnce; i += 1) this.socket.write(message);
      });
    };
  }
}

export async function measure(): Promise<Figure[]> {
  const small = await Echo.open();
  const one = await paced(small.roundTrips(SMALL_BYTES, 1), FOR_MS);
  small.close();
  const large = await Echo.open();
  const many = await paced(large.roundTrips(LARGE_BYTES, LARGE_AT_ONCE), FOR_MS);
  large.close();
  const requests = (LARGE_BYTES * LARGE_AT_ONCE) / REQUEST_BYTES;
  return [
    rate('echo of 64 B, one in flight', '/s', one.perSecond),
    cost('echo of 64 B, CPU of both ends', 'µs', one.cpuUs),
    rate('echo of 24 kB frames, 8 in flight, in requests', '/s', many.perSecond * requests),
    cost('echo of 24 kB frames, CPU a request', 'µs', many.cpuUs / requests),
  ];
}

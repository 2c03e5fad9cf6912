/**
 * Streams in memory between a client and fake nodes, with the faults of real ones.
 *
 * A node can be down (refuses), hung (accepts and is silent), or cut off; a connection can be
 * reset, and one direction black-holed. Bytes arrive a turn later, or `latencyMs` later by the
 * clock.
 */
import type { Endpoint, Transport, TransportEvents } from '../../../src/client/transport.js';
import { formatEndpoint } from '../../../src/client/transport.js';
import { FRAME_HEADER_BYTES, FrameReader, frameBytesAt } from '../../../src/wire/frame.js';
import { FrameAssembler } from '../../../src/wire/frame-assembler.js';
import { unpackValue } from '../../../src/wire/msgpack.js';
import type { FakeClock } from './fake-clock.js';

/** One request as a node reads it. */
export interface FakeRequest {
  readonly wire: FakeWire;
  readonly correlation: number;
  readonly deadlineMs: number;
  readonly command: number;
  /** The whole operation, command included. */
  readonly elements: readonly unknown[];
  /** Which frame of its connection carried it, from 1 on. */
  readonly frame: number;
}

/** The node's side of a connection. */
export interface FakeServer {
  onRequest(request: FakeRequest): void;
  onHangUp(wire: FakeWire): void;
}

export class FakeWire implements Transport {
  isOpen = false;
  /** Bytes to the client vanish. */
  isDeafened = false;
  /** Bytes from the client vanish. */
  isMuted = false;
  /** Sessions attached to this connection. */
  readonly attached = new Set<string>();
  frames = 0;
  writes = 0;
  private readonly assembler = new FrameAssembler(frameBytesAt);
  private readonly reader = new FrameReader();
  private isEnded = false;

  constructor(
    readonly network: FakeNetwork,
    readonly address: string,
    private readonly events: TransportEvents,
  ) {}

  open(): void {
    if (this.isEnded) return;
    this.isOpen = true;
    this.events.onOpen();
  }

  write(bytes: Uint8Array): boolean {
    this.writes += 1;
    if (this.isEnded || this.isMuted) return true;
    this.network.later(() => this.receive(bytes));
    return true;
  }

  close(): void {
    this.end(undefined);
  }

  /** The node or the network ends the connection. */
  reset(): void {
    this.end(new Error('ECONNRESET'));
  }

  /** Bytes from the node to the client. */
  send(bytes: Uint8Array): void {
    this.network.later(() => {
      if (!this.isEnded && !this.isDeafened) this.events.onBytes(bytes);
    });
  }

  private end(error: Error | undefined): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.isOpen = false;
    this.network.wires.delete(this);
    this.network.servers.get(this.address)?.onHangUp(this);
    setImmediate(() => this.events.onClose(error));
  }

  private receive(bytes: Uint8Array): void {
    if (this.isEnded) return;
    this.assembler.push(bytes);
    while (this.assembler.next()) {
      const start = this.assembler.frameStart + FRAME_HEADER_BYTES;
      this.frames += 1;
      this.readFrame(this.assembler.bytes, start, this.assembler.frameEnd);
    }
    if (this.assembler.broken) throw new Error('the client sent a broken frame');
  }

  private readFrame(bytes: Uint8Array, start: number, end: number): void {
    const { reader } = this;
    if (reader.open(bytes, start, end) !== 0) throw new Error(`bad frame: ${reader.fault}`);
    const requests: FakeRequest[] = [];
    while (reader.next()) {
      const elements = unpackValue(bytes, reader.operationStart, reader.operationEnd);
      if (!Array.isArray(elements)) throw new Error('an operation is no array');
      const { correlation, deadlineMs, command } = reader;
      requests.push({ wire: this, correlation, deadlineMs, command, elements, frame: this.frames });
    }
    if (reader.fault !== 0) throw new Error(`bad item: ${reader.fault}`);
    const server = this.network.servers.get(this.address);
    for (const request of requests) server?.onRequest(request);
  }
}

export class FakeNetwork {
  readonly servers = new Map<string, FakeServer>();
  readonly wires = new Set<FakeWire>();
  /** Addresses that refuse connections. */
  readonly down = new Set<string>();
  /** Addresses that accept no connection and do not refuse either. */
  readonly blackHoles = new Set<string>();
  latencyMs = 0;
  dials: string[] = [];

  constructor(readonly clock: FakeClock) {}

  /** The way in for a client. */
  readonly dial = (endpoint: Endpoint, events: TransportEvents): Transport => {
    const address = formatEndpoint(endpoint);
    this.dials.push(address);
    const wire = new FakeWire(this, address, events);
    this.wires.add(wire);
    if (this.blackHoles.has(address)) return wire;
    const isRefused = this.down.has(address) || !this.servers.has(address);
    setImmediate(() => {
      if (isRefused) wire.reset();
      else wire.open();
    });
    return wire;
  };

  later(deliver: () => void): void {
    if (this.latencyMs === 0) setImmediate(deliver);
    else this.clock.later(this.latencyMs, deliver);
  }

  /** Ends every connection to a node. */
  reset(address: string): void {
    for (const wire of [...this.wires]) if (wire.address === address) wire.reset();
  }

  /** Every connection to a node loses all bytes from now on, and nobody is told. */
  blackHole(address: string): void {
    this.blackHoles.add(address);
    for (const wire of this.wires) {
      if (wire.address !== address) continue;
      wire.isMuted = true;
      wire.isDeafened = true;
    }
  }
}

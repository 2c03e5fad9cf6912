/**
 * The network of one client, held in the drill's hand: a way to dial that can be cut off, or that
 * leads to one node alone.
 *
 * Owns: what is swallowed. A cut is a black hole: nothing leaves, nothing arrives, and no end is
 * told, as when a cable is pulled. Never: delays or changes bytes. Used by: actor-process.ts.
 */
import { dialTcp } from '../../client/tcp.js';
import {
  type Endpoint,
  formatEndpoint,
  type Transport,
  type TransportEvents,
} from '../../client/transport.js';

export class Leash {
  private isCut = false;

  /** @param only address of the one node that can be reached; null: all. */
  constructor(private readonly only: string | null) {}

  /** From now on nothing passes. */
  cut(): void {
    this.isCut = true;
  }

  /** For connectWith. */
  readonly dial = (endpoint: Endpoint, events: TransportEvents): Transport => {
    const isBarred = this.only !== null && formatEndpoint(endpoint) !== this.only;
    if (this.isCut || isBarred) return nowhere(events);
    let isClosedHere = false;
    const transport = dialTcp(endpoint, {
      onOpen: () => this.pass(() => events.onOpen()),
      onBytes: (bytes) => this.pass(() => events.onBytes(bytes)),
      onDrain: () => this.pass(() => events.onDrain()),
      onClose: (error) => {
        if (isClosedHere || !this.isCut) events.onClose(error);
      },
    });
    return {
      write: (bytes) => this.isCut || transport.write(bytes),
      close: () => {
        isClosedHere = true;
        transport.close();
      },
    };
  };

  private pass(tell: () => void): void {
    if (!this.isCut) tell();
  }
}

/** A connection that is never made; its close is told once, as a transport promises. */
function nowhere(events: TransportEvents): Transport {
  let isClosed = false;
  return {
    write: () => true,
    close: () => {
      if (isClosed) return;
      isClosed = true;
      setImmediate(() => events.onClose(undefined));
    },
  };
}

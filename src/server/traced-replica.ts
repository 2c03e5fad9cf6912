/**
 * A replica and its ports with TracedRequests looking on, for a node that sends spans.
 *
 * Owns: nothing; each call is passed on as it is. Never: in the way of a node without a collector,
 * which uses the replica itself. Made by: node.ts.
 */
import type { DoorReplica } from '../io/http/http-door.js';
import type { Connection } from '../replica/connection.js';
import type { LogPort } from '../replica/ports.js';
import type { Replica } from '../replica/replica.js';
import type { Health } from '../replica/status.js';
import type { StatusReply } from '../wire/query-reply.js';
import type { TracedRequests } from './traced-requests.js';

/** What the client port and the HTTP door ask. */
export class TracedReplica implements DoorReplica {
  constructor(
    private readonly replica: Replica,
    private readonly requests: TracedRequests,
  ) {}

  get leaderId(): number {
    return this.replica.leaderId;
  }

  get leaderAddress(): string {
    return this.replica.leaderAddress;
  }

  health(): Health {
    return this.replica.health();
  }

  status(): StatusReply {
    return this.replica.status();
  }

  connectionOpened(connection: Connection): void {
    this.replica.connectionOpened(connection);
  }

  connectionClosed(connection: Connection): void {
    this.requests.onClosed(connection);
    this.replica.connectionClosed(connection);
  }

  receive(connection: Connection, bytes: Uint8Array, start: number, end: number): boolean {
    this.requests.onFrame(connection, bytes, start, end);
    return this.replica.receive(connection, bytes, start, end);
  }

  onFlush(connection: Connection): void {
    this.requests.onFlush(connection);
  }
}

/** The log as the replica gives it orders. */
export function tracedLog(log: LogPort, requests: TracedRequests): LogPort {
  return {
    append: (order) => {
      requests.onOrdered(order);
      log.append(order);
    },
    read: (readId, fromIndex, toIndex, bytesMax) => log.read(readId, fromIndex, toIndex, bytesMax),
    close: () => log.close(),
  };
}

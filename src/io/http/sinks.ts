/**
 * The two forms of a stream of events: server-sent events, and JSON messages of a WebSocket.
 *
 * Owns: the text of one message. Never: what is told.
 * Used by: http-door.ts.
 */
import { WATCH_OUT_BYTES_MAX } from '../../limits.js';
import type { Json } from '../../wire/event-json.js';
import type { EventSink } from './event-stream.js';
import type { HttpCall, SocketHandle } from './uws-server.js';

const NORMAL_CLOSURE = 1_000;

/** Server-sent events; the id is what a browser sends back as Last-Event-ID. */
export class SseSink implements EventSink {
  isBlocked = false;

  constructor(private readonly call: HttpCall) {}

  send(event: string, revision: number, data: Json): void {
    const id = revision > 0 ? `id: ${revision}\n` : '';
    const text = `${id}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    if (!this.call.write(text)) this.isBlocked = true;
  }

  end(): void {
    this.call.endStream();
  }
}

/** `{"event","revision","data"}`, one a message. */
export class SocketSink implements EventSink {
  constructor(private readonly socket: SocketHandle) {}

  get isBlocked(): boolean {
    return this.socket.backlogBytes > WATCH_OUT_BYTES_MAX;
  }

  send(event: string, revision: number, data: Json): void {
    this.socket.send(JSON.stringify({ event, revision, data }));
  }

  end(): void {
    this.socket.end(NORMAL_CLOSURE, 'the watch has ended');
  }
}

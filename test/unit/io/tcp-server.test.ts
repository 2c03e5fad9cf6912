/** The client port: frames in whole, replies out whole, and bounds for those who misbehave. */

import net from 'node:net';
import t, { type Test } from 'tap';
import { ClientSocket, type ConnectionHandlers } from '../../../src/io/client-socket.js';
import { TcpServer, type TcpServerOptions } from '../../../src/io/tcp-server.js';
import { CONNECTION_OUT_BYTES_MAX, FRAME_BYTES_MAX } from '../../../src/limits.js';
import type { Connection } from '../../../src/replica/connection.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { ReplyReader } from '../../../src/wire/reply-reader.js';
import { waitFor } from '../../cluster/wait-for.js';
import { frameOf, RawClient } from './raw-client.js';

/** Handlers that greet everybody, echo each frame at once, and remember what happened. */
class Echo implements ConnectionHandlers {
  readonly open: Connection[] = [];
  readonly closed: Connection[] = [];
  readonly bodies: Buffer[] = [];
  greets = true;
  verdict = true;

  onOpen(connection: Connection): void {
    connection.greeted = this.greets;
    this.open.push(connection);
  }

  onFrame(connection: Connection, bytes: Uint8Array, start: number, end: number): boolean {
    const body = Buffer.from(bytes.slice(start, end));
    this.bodies.push(body);
    const frame = frameOf(body);
    connection.out.reserve(frame.length);
    connection.out.bytes.set(frame, connection.out.length);
    connection.out.length += frame.length;
    if (this.verdict) connection.transport.flush();
    return this.verdict;
  }

  onClose(connection: Connection): void {
    this.closed.push(connection);
  }
}

async function serve(t: Test, options: Partial<TcpServerOptions> = {}) {
  const echo = new Echo();
  const base = { host: '127.0.0.1', port: 0, handlers: echo, principal: 1 };
  const server = new TcpServer({ ...base, ...options });
  const port = await server.listen();
  t.teardown(() => server.close());
  return { echo, server, port };
}

/** The code of the one notice in `bytes`. */
function noticeIn(bytes: Buffer): number {
  const reader = new ReplyReader();
  const isFrame = reader.open(bytes, 4, 4 + bytes.readUInt32BE(0));
  return isFrame && reader.next() && reader.correlation === 0 ? reader.code : -1;
}

t.test('frames come out whole wherever the stream is split', (t) => {
  const bodies = [Buffer.from('one'), Buffer.from('2'), Buffer.alloc(40, 3)];
  const stream = Buffer.concat(bodies.map(frameOf));
  for (let first = 0; first <= stream.length; first++) {
    for (const second of [first, Math.min(first + 1, stream.length), stream.length]) {
      const echo = new Echo();
      const socket = new net.Socket();
      new ClientSocket(1, 1, socket, echo);
      for (const part of [stream.subarray(0, first), stream.subarray(first, second)]) {
        if (part.length > 0) socket.emit('data', Buffer.from(part));
      }
      if (second < stream.length) socket.emit('data', Buffer.from(stream.subarray(second)));
      if (!Buffer.concat(echo.bodies).equals(Buffer.concat(bodies)) || echo.bodies.length !== 3) {
        t.fail(`split at ${first} and ${second}: ${echo.bodies.length} frames`);
      }
      socket.destroy();
    }
  }
  t.pass(`${stream.length + 1} split points`);
  t.end();
});

t.test('a stream that comes byte by byte is served', async (t) => {
  const { port } = await serve(t);
  const client = new RawClient(t, port);
  const frame = frameOf(Buffer.from('slow but whole'));
  for (const byte of frame) client.send(Buffer.from([byte]));
  t.strictSame(await client.bytes(frame.length), frame);
});

t.test('a length of 0 or beyond the bound is refused in words, then closed', async (t) => {
  const { echo, server, port } = await serve(t);
  const cases: [length: number, code: number][] = [
    [0, ErrorCode.BadRequest],
    [FRAME_BYTES_MAX + 1, ErrorCode.TooLarge],
    [2 ** 32 - 1, ErrorCode.TooLarge],
    [0x47455420, ErrorCode.TooLarge], // 'GET ': somebody speaks HTTP
  ];
  const before = process.memoryUsage().arrayBuffers;
  for (const [length, code] of cases) {
    const client = new RawClient(t, port);
    client.send(frameOf(Buffer.from('fine')));
    const bomb = Buffer.alloc(100);
    bomb.writeUInt32BE(length);
    client.send(bomb);
    const bytes = await client.ended();
    t.strictSame(
      bytes.subarray(0, 8),
      frameOf(Buffer.from('fine')),
      'what came before is answered',
    );
    t.equal(noticeIn(bytes.subarray(8)), code, `length ${length}`);
  }
  await waitFor('all to be gone', () => server.connectionCount === 0);
  t.equal(echo.bodies.length, cases.length, 'nothing after the bad length is handled');
  t.equal(echo.closed.length, cases.length);
  t.ok(process.memoryUsage().arrayBuffers - before < 4 << 20, 'no length was allocated');
});

t.test('the largest frame is served', async (t) => {
  const { port } = await serve(t);
  const client = new RawClient(t, port);
  const frame = frameOf(Buffer.alloc(FRAME_BYTES_MAX, 9));
  client.send(frame);
  t.ok((await client.bytes(frame.length)).equals(frame));
});

t.test('a handler that answers false ends the connection after what it said', async (t) => {
  const { echo, port } = await serve(t);
  echo.verdict = false;
  const client = new RawClient(t, port);
  client.send(Buffer.concat([frameOf(Buffer.from('bye')), frameOf(Buffer.from('more'))]));
  t.strictSame(await client.ended(), frameOf(Buffer.from('bye')));
  t.equal(echo.bodies.length, 1, 'the frame behind it is not handled');
});

t.test('a frame that does not end in time ends its connection and no other', async (t) => {
  const { echo, port } = await serve(t, { frameTimeoutMs: 150 });
  const good = new RawClient(t, port);
  const slow = new RawClient(t, port);
  const frame = frameOf(Buffer.alloc(1_000, 1));
  let sent = 0;
  const started = performance.now();
  while (!slow.isEnded) {
    // A byte now and then, so that the connection is never idle.
    if (sent < frame.length) slow.send(frame.subarray(sent, sent + 1));
    sent += 1;
    const answered = (sent * 5) | 0;
    good.send(frameOf(Buffer.from('hello')));
    await good.bytes(answered);
  }
  t.ok(performance.now() - started >= 150, 'not before its time');
  t.notOk(good.isEnded);
  t.equal(echo.closed.length, 1);
});

t.test('a connection that says no hello in time is ended', async (t) => {
  const { echo, port } = await serve(t, { frameTimeoutMs: 100 });
  echo.greets = false;
  const client = new RawClient(t, port);
  await client.ended();
  t.equal(echo.bodies.length, 0);
});

t.test('a connection past the greatest number is told OVERLOADED', async (t) => {
  const { server, port } = await serve(t, { connectionsMax: 2 });
  const [first] = [new RawClient(t, port), new RawClient(t, port)];
  await waitFor('two connections', () => server.connectionCount === 2);
  const third = new RawClient(t, port);
  t.equal(noticeIn(await third.ended()), ErrorCode.Overloaded);
  first!.socket.destroy();
  await waitFor('one to be gone', () => server.connectionCount === 1);
  const fourth = new RawClient(t, port);
  fourth.send(frameOf(Buffer.from('room')));
  await fourth.bytes(8);
});

t.test('many connections are served at once, each told of its end once', async (t) => {
  const { echo, server, port } = await serve(t);
  const clients = Array.from({ length: 400 }, () => new RawClient(t, port));
  for (const [at, client] of clients.entries()) client.send(frameOf(Buffer.from(`client ${at}`)));
  await Promise.all(
    clients.map(async (client, at) => {
      const frame = frameOf(Buffer.from(`client ${at}`));
      const bytes = await client.bytes(frame.length);
      if (!bytes.equals(frame)) t.fail(`client ${at} got ${bytes}`);
    }),
  );
  t.equal(server.connectionCount, 400);
  for (const [at, client] of clients.entries()) {
    if (at % 2 === 0) client.socket.end();
    else client.socket.destroy();
  }
  await waitFor('all to be gone', () => server.connectionCount === 0);
  t.equal(echo.closed.length, 400);
  t.equal(new Set(echo.closed.map(({ id }) => id)).size, 400);
  t.ok(echo.closed.every(({ closed }) => closed));
});

t.test('one that does not read is not read from, and loses nothing when it does', async (t) => {
  const { echo, port } = await serve(t);
  const client = new RawClient(t, port);
  client.socket.pause();
  const total = 200;
  const sizeOf = (at: number) => 90_000 + at;
  for (let at = 0; at < total; at++) client.send(frameOf(Buffer.alloc(sizeOf(at), at)));
  let seen = -1;
  await waitFor('reading to stop', async () => {
    const before = seen;
    seen = echo.bodies.length;
    return seen > 0 && seen === before;
  });
  t.ok(seen < total, `stopped after ${seen} of ${total} frames`);
  client.socket.resume();
  const wanted = Buffer.concat(
    Array.from({ length: total }, (_, at) => frameOf(Buffer.alloc(sizeOf(at), at))),
  );
  const bytes = await client.bytes(wanted.length);
  t.ok(bytes.equals(wanted), 'every byte, in order');
});

t.test('one that is behind by twice the bound is ended', async (t) => {
  const { echo, port } = await serve(t);
  const client = new RawClient(t, port);
  client.socket.pause();
  client.send(frameOf(Buffer.from('give me much')));
  await waitFor('the request', () => echo.bodies.length === 1);
  const { out, transport } = echo.open[0]!;
  for (let megabyte = 0; megabyte < 40 && echo.closed.length === 0; megabyte++) {
    out.reserve(1 << 20);
    out.length += 1 << 20;
    transport.flush();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await waitFor('its end', () => echo.closed.length === 1);
  t.ok(2 * CONNECTION_OUT_BYTES_MAX < 40 << 20);
  out.reserve(10);
  out.length += 10;
  transport.flush();
  t.equal(out.length, 0, 'a flush after the end throws the bytes away');
});

t.test('a paused connection delivers nothing until it is resumed', async (t) => {
  const { echo, port } = await serve(t);
  const client = new RawClient(t, port);
  client.send(frameOf(Buffer.from('first')));
  await client.bytes(9);
  const { transport } = echo.open[0]!;
  transport.pauseReading();
  client.send(frameOf(Buffer.from('second')));
  // A frame on another connection, sent later, overtakes the paused one.
  const other = new RawClient(t, port);
  other.send(frameOf(Buffer.from('other')));
  await other.bytes(9);
  t.strictSame(echo.bodies.map(String), ['first', 'other']);
  transport.resumeReading();
  await client.bytes(9 + 10);
  t.equal(echo.bodies.length, 3);
});

t.test('closing says the last words, once, and frees the port', async (t) => {
  const { echo, server, port } = await serve(t);
  const client = new RawClient(t, port);
  client.send(frameOf(Buffer.from('hello')));
  await client.bytes(9);
  const { out, transport } = echo.open[0]!;
  const words = frameOf(Buffer.from('good bye'));
  out.reserve(words.length);
  out.bytes.set(words, out.length);
  out.length += words.length;
  transport.close();
  transport.close();
  out.reserve(1);
  out.length += 1;
  transport.flush();
  // What the client still sends is not handled, and does not reset the last words away.
  client.send(Buffer.alloc(1 << 20, 1));
  t.ok((await client.ended()).subarray(9).equals(words));
  const stays = new RawClient(t, port);
  await waitFor('the next one', () => echo.open.length === 2);
  await server.close();
  await stays.ended();
  t.equal(echo.closed.length, 2);
  const again = new TcpServer({ host: '127.0.0.1', port, handlers: echo, principal: 1 });
  t.equal(await again.listen(), port);
  const taken = new TcpServer({ host: '127.0.0.1', port, handlers: echo, principal: 1 });
  await t.rejects(taken.listen(), { code: 'EADDRINUSE' });
  await again.close();
});

/**
 * What a hostile or broken program may send to a client port.
 *
 * Owns: the bytes. Never: a socket, an expectation. Every body here is meant for a frame of its
 * own. Used by: hostile-bytes.test.ts.
 */
import type { Prng } from '../../../src/collections/prng.js';
import { FRAME_SHARD, FRAME_VERSION } from '../../../src/wire/frame.js';
import { writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { CommandKind } from '../../../src/wire/request.js';

const ARRAY_32 = 0xdd;
const FIX_ARRAY_1 = 0x91;
const NIL = 0xc0;

/** `count` random bytes. */
export function randomBytes(prng: Prng, count: number): Buffer {
  const bytes = Buffer.alloc(count);
  for (let at = 0; at < count; at += 1) bytes[at] = prng.below(256);
  return bytes;
}

function packed(value: Parameters<typeof writeValue>[1]): Buffer {
  const out = new OutBuffer();
  writeValue(out, value);
  return Buffer.from(out.take());
}

/** The body of a frame with one request, whose operation is given as bytes. */
function requestBody(operation: Uint8Array): Buffer {
  const head = Buffer.from([0x93, FRAME_VERSION, FRAME_SHARD, 0x93, 1, NIL]);
  return Buffer.concat([head, operation]);
}

/** A sound hello. */
export function helloBody(): Buffer {
  return requestBody(packed([CommandKind.Hello, FRAME_VERSION, 'stranger', null]));
}

/** `depth` arrays, one in the other. */
function nested(depth: number): Buffer {
  return Buffer.concat([Buffer.alloc(depth, FIX_ARRAY_1), Buffer.from([NIL])]);
}

/** A header that claims 2^32 - 1 items or bytes, and nothing behind it. */
function claim(marker: number): Buffer {
  return Buffer.from([marker, 0xff, 0xff, 0xff, 0xff]);
}

/** Bodies that no frame may have: after each of them the connection has to be closed. */
export function impossibleBodies(): Map<string, Buffer> {
  const bodies = new Map<string, Buffer>();
  for (const [name, marker] of [
    ['array', ARRAY_32],
    ['map', 0xdf],
    ['string', 0xdb],
    ['binary', 0xc6],
    ['extension', 0xc9],
  ] as const) {
    bodies.set(`a frame that is a ${name} of 2^32 - 1`, claim(marker));
    bodies.set(`a request that is a ${name} of 2^32 - 1`, requestBody(claim(marker)));
    const inside = Buffer.concat([Buffer.from([0x92, CommandKind.Hello]), claim(marker)]);
    bodies.set(`a field that is a ${name} of 2^32 - 1`, requestBody(inside));
  }
  bodies.set('arrays 200,000 deep as a frame', nested(200_000));
  bodies.set('arrays 200,000 deep as an operation', requestBody(nested(200_000)));
  bodies.set('nothing but nil', Buffer.from([NIL]));
  bodies.set('a frame of version 2', Buffer.from([0x92, 2, FRAME_SHARD]));
  bodies.set('a frame of shard 7', Buffer.from([0x92, FRAME_VERSION, 7]));
  bodies.set('a byte too many', Buffer.concat([helloBody(), Buffer.from([NIL])]));
  bodies.set('10,000 requests of 1 byte', manyItems(10_000));
  bodies.set('8,192 requests that are none', manyItems(8_192));
  return bodies;
}

function manyItems(count: number): Buffer {
  const head = Buffer.from([ARRAY_32, 0, 0, 0, 0, FRAME_VERSION, FRAME_SHARD]);
  head.writeUInt32BE(count + 2, 1);
  return Buffer.concat([head, Buffer.alloc(count, NIL)]);
}

/** Operations that are refused, each in a sound frame: the connection stays. */
export function wrongOperations(): Map<string, Buffer> {
  const operations = new Map<string, Buffer>();
  const set = (name: string, value: Parameters<typeof writeValue>[1]): void => {
    operations.set(name, requestBody(packed(value)));
  };
  set('no command', []);
  set('a command that nobody knows', [99]);
  set('an acquire without a name', [CommandKind.Acquire, 'id']);
  set('an acquire with a name of 600 bytes', acquire('n'.repeat(600), 30_000));
  set('an acquire with control characters', acquire('a\u0000b', 30_000));
  set('a TTL of 0', acquire('hostile', 0));
  set('a TTL of 2^53 - 1', acquire('hostile', 2 ** 53 - 1));
  set('a renewal of nothing', [CommandKind.Renew]);
  set('a change of the settings', [CommandKind.Settings, null, null, null, null, [[1, 1]]]);
  set('a keep-alive of others', [CommandKind.KeepWaits, null, null, null, null, [1]]);
  set('a session of 15 bytes', [CommandKind.SessionClose, null, new Uint8Array(15)]);
  set('an operation of 40 KiB', acquire('hostile', 30_000, new Uint8Array(40 * 1_024)));
  set('a transfer to nobody', [CommandKind.Transfer, 99]);
  return operations;
}

function acquire(name: string, ttlMs: number, metadata: Uint8Array | null = null) {
  const options = [null, null, null, null, null, metadata];
  return [CommandKind.Acquire, 'id', null, null, null, name, ttlMs, 0, ...options];
}

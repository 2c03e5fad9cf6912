/**
 * Writes an out buffer to a socket without copying it and, when the kernel takes all, without
 * giving it away.
 *
 * Owns: the rule for when the bytes are free again. Never: framing. Used by: tcp-server.ts and the
 * peer links.
 */
import type { Socket } from 'node:net';
import type { OutBuffer } from '../wire/out-buffer.js';

/** Writes what `out` holds in one write and empties it. */
export function writeOut(socket: Socket, out: OutBuffer): void {
  if (out.length === 0) return;
  socket.write(out.bytes.subarray(0, out.length));
  // `writableLength` counts bytes until the kernel has them, those in flight included. At 0 the
  // buffer is ours again; else the socket reads from it later and `out` has to start a new one.
  if (socket.writableLength === 0) out.clear();
  else out.take();
}

/**
 * Lends a simulated node's snapshot: the production lender, with reads that end at once.
 *
 * Owns: the frame of the answer. Which snapshot is lent is decided by src/io/snapshots/lender.ts.
 * Used by: sim-cluster.ts.
 */
import { crc32 } from 'node:zlib';
import { checksum } from '../../src/io/peers/peer-socket.js';
import { SnapshotLender } from '../../src/io/snapshots/lender.js';
import { OutBuffer } from '../../src/wire/out-buffer.js';
import { isPeerFrameIntact, PEER_HEADER_BYTES } from '../../src/wire/peer.js';
import { decodeManifest, encodeManifest } from '../../src/wire/snapshot-manifest.js';
import {
  decodeChunkAsk,
  decodeSnapshotAsk,
  encodeChunkTell,
  encodeSnapshotTell,
} from '../../src/wire/snapshot-talk.js';
import { SimFile } from './devices/files.js';
import type { Media } from './devices/media.js';

const CRC_BYTES = 4;
const PRIME = 7_919;
const NOTHING = new Uint8Array(0);

export class SimLender extends SnapshotLender {
  /** True while what it lends is rotten: changed, and yet with the checksums that belong to it. */
  isRotten: () => boolean = () => false;

  /** The frame that answers `frame`; null when the connection would be ended. */
  answer(media: Media, frame: Uint8Array): Uint8Array | null {
    if (!isPeerFrameIntact(frame, 0, frame.length, checksum)) return null;
    const out = new OutBuffer();
    const leastIndex = decodeSnapshotAsk(frame, PEER_HEADER_BYTES, frame.length);
    const name = decodeChunkAsk(frame, PEER_HEADER_BYTES, frame.length);
    if (leastIndex >= 0) {
      const folder = this.lendManifest(leastIndex);
      const bytes = folder === '' ? NOTHING : bytesOf(media, `${folder}/MANIFEST`);
      const body = bytes.subarray(CRC_BYTES);
      encodeSnapshotTell(out, this.isRotten() ? this.rottenManifest(media, body) : body, checksum);
    } else if (name !== null) {
      const file = this.lendChunk(name);
      const bytes = file === '' ? NOTHING : bytesOf(media, file);
      const isChanged = this.isRotten() && name.position > 0;
      encodeChunkTell(out, name, isChanged ? rotten(bytes, this.index) : bytes, checksum);
    } else return null;
    return out.bytes.slice(0, out.length);
  }

  /** Only its digest tells it from a sound one. The first chunk has the head, and stays. */
  private rottenManifest(media: Media, body: Uint8Array): Uint8Array {
    const manifest = decodeManifest(body);
    if (typeof manifest === 'string') return body;
    const chunks = manifest.chunks.map((chunk, position) => {
      if (position === 0) return chunk;
      const file = this.lendChunk({ index: this.index, position });
      return { ...chunk, crc: crc32(rotten(bytesOf(media, file), this.index)) };
    });
    return encodeManifest({ ...manifest, chunks });
  }
}

/** The chunk as a bad memory would have written it. */
function rotten(bytes: Uint8Array, index: number): Uint8Array {
  if (bytes.length === 0) return bytes;
  const changed = bytes.slice();
  const bit = (index * PRIME) % (bytes.length * 8);
  changed[bit >>> 3] = (changed[bit >>> 3] as number) ^ (1 << (bit & 7));
  return changed;
}

/** Nothing when the file is gone: its snapshot was replaced. */
function bytesOf(media: Media, path: string): Uint8Array {
  const file = media.files.find(path);
  return file instanceof SimFile ? file.bytes : NOTHING;
}

/** A manifest comes back as it was written; anything else is refused in words. */

import fc from 'fast-check';
import t from 'tap';
import { SNAPSHOT_CHUNK_BYTES_MAX } from '../../../src/limits.js';
import {
  decodeManifest,
  encodeManifest,
  type SnapshotManifest,
} from '../../../src/wire/snapshot-manifest.js';

const MANIFEST: SnapshotManifest = {
  clusterId: new Uint8Array(16).fill(9),
  index: 2 ** 40,
  term: 7,
  stampMs: 123_456,
  revision: 2 ** 53 - 1,
  digest: '0123456789abcdef0123456789abcdef',
  chunks: [
    { bytes: SNAPSHOT_CHUNK_BYTES_MAX, crc: 0xffff_ffff },
    { bytes: 1, crc: 0 },
  ],
};

t.test('what was written is read', async (t) => {
  t.strictSame(decodeManifest(encodeManifest(MANIFEST)), MANIFEST);
});

t.test('a manifest whose parts are out of range is refused, and says which', async (t) => {
  const wrong: [Partial<SnapshotManifest>, RegExp][] = [
    [{ clusterId: new Uint8Array(15) }, /cluster/],
    [{ index: 0 }, /index/],
    [{ term: 0 }, /term/],
    [{ stampMs: -1 }, /stamp/],
    [{ revision: -1 }, /revision/],
    [{ digest: '00' }, /digest/],
    [{ chunks: [] }, /chunks/],
    [{ chunks: [{ bytes: 0, crc: 0 }] }, /chunks/],
    [{ chunks: [{ bytes: SNAPSHOT_CHUNK_BYTES_MAX + 1, crc: 0 }] }, /chunks/],
  ];
  for (const [part, words] of wrong) {
    t.match(decodeManifest(encodeManifest({ ...MANIFEST, ...part })), words);
  }
});

t.test('bytes that were cut, lengthened or changed never throw', async (t) => {
  const bytes = encodeManifest(MANIFEST);
  for (let length = 0; length < bytes.length; length += 1) {
    t.type(decodeManifest(bytes.subarray(0, length)), 'string', `${length} bytes`);
  }
  t.type(decodeManifest(Uint8Array.of(...bytes, 0)), 'string');
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, byte) => {
      const changed = bytes.slice();
      changed[at] = byte;
      decodeManifest(changed);
    }),
  );
});

/**
 * The program of a node with some of its source changed: a fault planted in the product.
 *
 * Owns: images built for a test file, deleted at its end. Never: a change of the sources; a patch
 * that does not fit them any more is an error. Used by: tests of what real nodes do about a fault
 * that nothing from outside can give them.
 */
import { rmSync } from 'node:fs';
import path from 'node:path';
import { buildImage, type Patch } from '../sim/planted/image.js';

/** What an image uses of a tap test. */
export interface ImageTest {
  teardown(remove: () => void): unknown;
}

/** Builds an image; returns its program, for `nodeProgram`. `name` is free in this test file. */
export function buildNodeImage(test: ImageTest, name: string, patches: readonly Patch[]): string {
  const folder = buildImage(`${name}-${process.pid}`, patches);
  test.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return path.join(folder, 'src/cli/main.js');
}

/**
 * The version of the product, from package.json.
 *
 * Owns: where that file is from here: two folders up in dist, three in the tests' mirror. Never: a
 * version of a protocol or a format. Used by: node.ts.
 */
import { existsSync, readFileSync } from 'node:fs';

const PLACES = ['../../package.json', '../../../package.json'];

/** 'unknown' when there is no package.json. */
export function readVersion(): string {
  for (const place of PLACES) {
    const file = new URL(place, import.meta.url);
    if (!existsSync(file)) continue;
    return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  }
  return 'unknown';
}

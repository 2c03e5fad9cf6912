/**
 * The names of log segments: folders `segment-<first index>` below the log's folder.
 *
 * Owns: the naming, for ever. Never: what is inside a segment. Used by: segmented-log.ts, and by
 * workers that read sealed segments.
 */
import fs from 'node:fs';
import path from 'node:path';

const DIGITS = 16;
const PATTERN = /^segment-(\d{16})$/;

/** The folder of the segment whose first record has index `first`. */
export function segmentFolder(logFolder: string, first: number): string {
  return path.join(logFolder, `segment-${String(first).padStart(DIGITS, '0')}`);
}

/** First indices of the segments in `logFolder`, ascending. */
export function listSegments(logFolder: string): number[] {
  const firsts: number[] = [];
  for (const name of fs.readdirSync(logFolder)) {
    const match = PATTERN.exec(name);
    if (match !== null) firsts.push(Number(match[1]));
  }
  return firsts.sort((left, right) => left - right);
}

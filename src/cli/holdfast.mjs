#!/usr/bin/env node
/**
 * The `holdfast` command of a clone: a file that is there before the first build, so that npx finds
 * the same command before and after it.
 *
 * Owns: one sentence for a clone that was not built. Never: a command; dist/cli/main.js has them.
 */
import { existsSync } from 'node:fs';

const built = new URL('../../dist/cli/main.js', import.meta.url);
if (existsSync(built)) {
  await import(built.href);
} else {
  console.error('holdfast is not built yet: run `npm run build` or `npm start` in the clone first');
  process.exitCode = 69;
}

#!/usr/bin/env node
/**
 * The `holdfast` program: hands its words to the command table and exits with the status it gives.
 *
 * Owns: the process's streams and its exit. Never: a command. Started by npm's link and by
 * `npm start` (start.mjs), which puts `dev` in front of its own arguments.
 */
import { readFileSync } from 'node:fs';
import { COMMANDS } from './commands/table.js';
import { Program } from './program.js';

function readVersion(): string {
  // dist/cli and dist-test/src/cli lie at different depths below package.json.
  for (const step of ['../../package.json', '../../../package.json']) {
    try {
      const text = readFileSync(new URL(step, import.meta.url), 'utf8');
      return (JSON.parse(text) as { version: string }).version;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}

// A reader such as `head` may leave early: what it did not want is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

const program = new Program(COMMANDS, {
  standardOutput: process.stdout,
  standardError: process.stderr,
  version: readVersion(),
});
process.exitCode = await program.run(process.argv.slice(2));

/**
 * Where a test finds files: fixtures among the sources, and compiled entries to start as processes.
 *
 * Tests run compiled, from dist-test/, with the project's root as their working directory.
 */

import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's root folder, absolute. */
export const projectRoot = fileURLToPath(new URL('../../..', import.meta.url));

/** A file among the sources, such as a fixture: `projectFile('test/golden/election.txt')`. */
export function projectFile(name: string): string {
  return path.join(projectRoot, name);
}

/** The compiled form of a source file, to start: `compiledFile('src/cli/main.ts')`. */
export function compiledFile(name: string): string {
  return path.join(projectRoot, 'dist-test', name.replace(/\.ts$/, '.js'));
}

/** Every file below a folder, both relative to the root; none if there is no such folder. */
export function filesBelow(folder: string): string[] {
  const top = projectFile(folder);
  if (!existsSync(top)) return [];
  return readdirSync(top, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(projectRoot, path.join(entry.parentPath, entry.name)))
    .sort();
}

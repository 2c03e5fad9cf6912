/**
 * Runs a TypeScript entry of the project that is not part of dist: load tests, simulator, tools.
 *
 * `node test/gate/exec.mjs loadtest/main.ts --rate 10` installs what is missing, brings dist-test/
 * up to date, and imports the compiled entry in this same process with the arguments that follow.
 * Called by the scripts of package.json.
 */

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { installMissing, root } from './project.mjs';

const [entry, ...words] = process.argv.slice(2);
if (entry === undefined) {
  console.error('usage: node test/gate/exec.mjs FILE.ts [ARGUMENT…]');
  process.exit(2);
}
installMissing();
const { compile, outputOf } = await import('./compile.mjs');
compile();
const output = path.join(root, outputOf(path.relative(root, path.resolve(entry))) ?? entry);
process.setSourceMapsEnabled(true);
process.argv = [process.execPath, output, ...words];
await import(pathToFileURL(output).href);

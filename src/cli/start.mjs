/**
 * `npm start`: brings a clone to where it can run, then starts the five nodes on loopback.
 *
 * Installs what the lock file names if it is missing, builds dist/ if it is missing or older than
 * the sources, and hands over to `holdfast dev` in this same process, so that signals reach it.
 * Plain JavaScript, since nothing is compiled yet when it runs. Not part of the published package.
 */

import { fileURLToPath } from 'node:url';
import { build, isBuilt } from '../../test/gate/build.mjs';
import { installMissing } from '../../test/gate/project.mjs';

installMissing();
if (!isBuilt()) {
  console.error('holdfast: building dist');
  if (!build(2)) {
    console.error('holdfast: the build failed, nothing was started');
    process.exit(1);
  }
}
const main = new URL('../../dist/cli/main.js', import.meta.url);
process.argv = [process.execPath, fileURLToPath(main), 'dev', ...process.argv.slice(2)];
await import(main.href);

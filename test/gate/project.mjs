/**
 * What the scripts of the gate share: the project's root, its files, and the install step.
 *
 * Plain JavaScript on Node's own modules, since it runs before anything is installed or compiled.
 * Called by run.mjs, exec.mjs, build.mjs, compile.mjs and src/cli/start.mjs.
 */

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's root folder, absolute, without a slash at its end. */
export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** Every file below the folders that exist, relative to the root, in byte order. */
export function listFiles(folders) {
  const found = [];
  const visit = (folder) => {
    const entries = fs.readdirSync(path.join(root, folder), { withFileTypes: true });
    for (const entry of entries) {
      const name = path.join(folder, entry.name);
      if (entry.isDirectory()) {
        if (entry.name !== 'node_modules' && !entry.name.startsWith('.')) visit(name);
      } else if (entry.isFile()) {
        found.push(name);
      }
    }
  };
  for (const folder of folders) {
    if (fs.existsSync(path.join(root, folder))) visit(folder);
  }
  return found.sort();
}

function readJson(file) {
  return JSON.parse(fs.readFileSync(path.join(root, file), 'utf8'));
}

/**
 * Whether node_modules holds what the lock file asks for. Compares versions, not file times: npm
 * writes the two files in no fixed order, and a clone gives every file the same time.
 */
export function isInstalled() {
  const installedFile = 'node_modules/.package-lock.json';
  if (!fs.existsSync(path.join(root, installedFile))) return false;
  const installed = readJson(installedFile).packages;
  for (const [name, entry] of Object.entries(readJson('package-lock.json').packages)) {
    if (name === '' || (entry.optional && installed[name] === undefined)) continue;
    if (installed[name]?.version !== entry.version) return false;
  }
  return true;
}

/** Installs what the lock file names, if it is not there. Npm's own words go to stderr. */
export function installMissing() {
  if (isInstalled()) return;
  const fresh = !fs.existsSync(path.join(root, 'node_modules'));
  const words = fresh ? ['ci'] : ['install', '--no-save'];
  console.error(`holdfast: npm ${words.join(' ')} (what package-lock.json names is not installed)`);
  const result = spawnSync('npm', [...words, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (result.status !== 0) throw new Error(`npm ${words[0]} failed with status ${result.status}`);
}

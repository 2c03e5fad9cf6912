/**
 * Builds dist/ from src: JavaScript, declarations, source maps, and the files that are not code.
 *
 * Owns dist/. An output whose source is gone is deleted, and dist/.built holds a digest of what was
 * built, so that `npm start` knows whether to build again. Code with a type error is written, but
 * the build fails and the digest is not: a broken build is never taken for a fresh one.
 * Called by `npm run build`, by the gate and by src/cli/start.mjs.
 */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { installMissing, listFiles, root } from './project.mjs';

const stampFile = path.join(root, 'dist/.built');
const commandLine = path.join(root, 'dist/cli/main.js');
const settings = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];
const assets = new Set(['.html', '.css', '.svg', '.json', '.sql', '.lua']);

function isAsset(file) {
  return assets.has(path.extname(file)) && !file.endsWith('tsconfig.json');
}

function digestOfSources() {
  const hash = createHash('sha256');
  for (const file of [...settings, ...listFiles(['src'])]) {
    hash
      .update(`${file}\0`)
      .update(fs.readFileSync(path.join(root, file)))
      .update('\0');
  }
  return hash.digest('hex');
}

function deleteOrphans() {
  const sources = new Set(listFiles(['src']));
  for (const file of listFiles(['dist'])) {
    const stem = path
      .join('src', path.relative('dist', file))
      .replace(/(\.d\.ts|\.js)(\.map)?$/, '');
    if (sources.has(`${stem}.ts`) || sources.has(stem)) continue;
    fs.rmSync(path.join(root, file), { force: true });
  }
}

/** Whether dist/ was built from the sources as they are now. */
export function isBuilt() {
  if (!fs.existsSync(stampFile) || !fs.existsSync(commandLine)) return false;
  return fs.readFileSync(stampFile, 'utf8') === digestOfSources();
}

/** Builds dist/, the compiler's words going to the file descriptor. Returns whether it is whole. */
export function build(outputFd) {
  fs.rmSync(stampFile, { force: true });
  const digest = digestOfSources();
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  const compiled = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: ['ignore', outputFd, outputFd],
  });
  deleteOrphans();
  for (const file of listFiles(['src']).filter(isAsset)) {
    const target = path.join(root, 'dist', path.relative('src', file));
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.copyFileSync(path.join(root, file), target);
  }
  // npm links `bin` without making it executable when the package is the clone itself.
  if (fs.existsSync(commandLine)) fs.chmodSync(commandLine, 0o755);
  if (compiled.status !== 0) return false;
  fs.writeFileSync(stampFile, digest);
  return true;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  installMissing();
  if (!build(1)) process.exit(1);
}

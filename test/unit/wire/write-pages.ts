/**
 * Writes the generated parts of docs/PROTOCOL.md, docs/ERRORS.md and docs/HTTP.md: `npm run docs`.
 *
 * Owns: nothing. Never: prose. pages.test.ts fails as long as a page differs from the code.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { projectFile } from '../../gate/paths.js';
import { GENERATED_PAGES, regenerated } from './pages.js';

for (const name of GENERATED_PAGES) {
  const file = projectFile(name);
  const page = readFileSync(file, 'utf8');
  const wanted = regenerated(page);
  if (wanted !== page) writeFileSync(file, wanted);
  console.log(`${name}: ${wanted === page ? 'unchanged' : 'written'}`);
}

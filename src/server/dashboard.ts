/**
 * The files of the dashboard, read once when a node starts.
 *
 * Owns: which file is served at which path, and the policy that lets the page load nothing from
 * elsewhere: it works without a network. Never: a file that is not named here.
 * Used by: node.ts.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Asset } from '../io/http/http-door.js';

const MODULES = ['app', 'browser', 'figures', 'force', 'markup', 'node', 'plot'] as const;
const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

const resolver = createRequire(import.meta.url);

/** A file of a package, by the file that the package names as its entry. */
function packageFile(entry: string, file: string): Buffer {
  return readFileSync(path.join(path.dirname(resolver.resolve(entry)), file));
}

function asset(type: string, body: Uint8Array, policy?: string): Asset {
  const headers: [string, string][] = [
    ['content-type', type],
    ['cache-control', 'no-cache'],
    ['x-content-type-options', 'nosniff'],
  ];
  if (policy !== undefined) headers.push(['content-security-policy', policy]);
  return { headers, body };
}

/** Scripts of this node alone, and the one inline map of imports, by its digest. */
function policyFor(page: string): string {
  const map = /<script type="importmap">(.*?)<\/script>/s.exec(page)?.[1] ?? '';
  const digest = createHash('sha256').update(map).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${digest}'`,
    "style-src 'self' 'unsafe-inline'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** How the page knows whether it may change something. */
const READ_ONLY = 'data-admin="no"';

/** Every file by its path. Throws when one is missing: the build is not whole. */
export function dashboardAssets(isAdmin: boolean): ReadonlyMap<string, Asset> {
  const own = (file: string): Buffer => {
    return readFileSync(new URL(`../dashboard/${file}`, import.meta.url));
  };
  const text = own('index.html').toString('utf8');
  if (!text.includes(READ_ONLY)) throw new Error('dashboard: index.html does not say data-admin');
  const page = isAdmin ? text.replace(READ_ONLY, 'data-admin="yes"') : text;
  const assets = new Map<string, Asset>();
  assets.set('/', asset('text/html; charset=utf-8', Buffer.from(page), policyFor(page)));
  for (const name of MODULES) assets.set(`/ui/${name}.js`, asset(SCRIPT, own(`${name}.js`)));
  assets.set('/ui/app.css', asset(STYLE, own('app.css')));
  assets.set('/ui/preact.js', asset(SCRIPT, packageFile('preact', 'preact.mjs')));
  assets.set('/ui/hooks.js', asset(SCRIPT, packageFile('preact/hooks', 'hooks.mjs')));
  assets.set('/ui/htm.js', asset(SCRIPT, packageFile('htm', 'htm.module.js')));
  assets.set('/ui/uplot.js', asset(SCRIPT, packageFile('uplot', 'uPlot.esm.js')));
  assets.set('/ui/uplot.css', asset(STYLE, packageFile('uplot', 'uPlot.min.css')));
  return assets;
}

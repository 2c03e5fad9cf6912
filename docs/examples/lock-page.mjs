/**
 * A browser page that watches one lock: who holds it, since when, under which token, who waits.
 *
 * A node answers no page of another origin, and whoever reaches a node may do everything. So this
 * small server stands between: it gives the page, and passes on two reads of this one lock to
 * whichever node answers. Who opens the page can change nothing.
 *
 *     HOLDFAST_HTTP=127.0.0.1:7501,… node docs/examples/lock-page.mjs jobs/nightly
 */
import { readFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { pipeline } from 'node:stream';

const ANSWER_MS_MAX = 2_000;

const [lock] = process.argv.slice(2);
if (lock === undefined) {
  console.error('lock-page: give the name of a lock');
  process.exit(64);
}
const nodes = (process.env.HOLDFAST_HTTP ?? '127.0.0.1:7501').split(',');
const read = `/v1/locks/${encodeURIComponent(lock)}`;

const file = (name) => readFileSync(new URL(`lock-page/${name}`, import.meta.url));
const files = new Map([
  ['/', ['text/html; charset=utf-8', file('index.html')]],
  ['/page.css', ['text/css; charset=utf-8', file('page.css')]],
  ['/page.mjs', ['text/javascript; charset=utf-8', file('page.mjs')]],
]);
/** The page loads nothing from elsewhere, and nobody can put it into a frame. */
const HEADERS = {
  'content-security-policy': "default-src 'self'; img-src data:; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** The node that answered last: it is asked first. */
let present = 0;

/** Passes one read on to a node, and to the next one when that does not answer. */
function pass(path, accept, response, tries = 0) {
  if (tries === nodes.length) return response.writeHead(503, HEADERS).end('no node answers');
  const asked = get(`http://${nodes[present]}${path}`, { headers: { accept }, agent: false });
  let isDecided = false;
  const tryNext = () => {
    if (isDecided) return;
    isDecided = true;
    asked.destroy();
    if (response.destroyed) return; // the page has gone
    present = (present + 1) % nodes.length;
    pass(path, accept, response, tries + 1);
  };
  // A node that stands still takes the connection and says nothing.
  asked.setTimeout(ANSWER_MS_MAX, tryNext);
  asked.on('error', tryNext);
  asked.on('response', (answer) => {
    if (answer.statusCode >= 500) return tryNext();
    isDecided = true;
    asked.setTimeout(0);
    const type = answer.headers['content-type'];
    response.writeHead(answer.statusCode, { ...HEADERS, 'content-type': type });
    // One end goes with the other: the page then asks anew, and comes to a node that lives.
    pipeline(answer, response, () => asked.destroy());
  });
  response.once('close', () => asked.destroy());
}

const server = createServer((request, response) => {
  const { pathname, search } = new URL(request.url, 'http://page');
  const [type, body] = files.get(pathname) ?? [];
  if (request.method !== 'GET') response.writeHead(405, HEADERS).end();
  else if (pathname === '/lock') pass(read, 'application/json', response);
  else if (pathname === '/watch') pass(`${read}/watch${search}`, 'text/event-stream', response);
  else if (body === undefined) response.writeHead(404, HEADERS).end();
  else response.writeHead(200, { ...HEADERS, 'content-type': type }).end(body);
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`${lock} is shown at http://127.0.0.1:${server.address().port}/`);
});

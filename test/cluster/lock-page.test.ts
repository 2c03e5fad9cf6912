/**
 * The sixth example of the documentation, a page that watches a lock, as its reader starts it and
 * sees it: the example's own server, real nodes, a real browser. The others run in
 * test/guards/examples.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import t from 'tap';
import { projectFile, projectRoot } from '../gate/paths.js';
import { colourProblems, launchBrowser, open, SIZES, skipsBrowser } from './browser.js';
import { Cluster, freePorts } from './harness.js';
import { HttpClient } from './http-client.js';
import { waitFor } from './wait-for.js';

const LOCK = 'jobs/<b>nightly</b>';
const EXAMPLE = projectFile('docs/examples/lock-page.mjs');

interface Ended {
  readonly status: number | null;
  readonly errors: string;
}

/** The example's process. */
class PageServer {
  said = '';
  errors = '';
  private readonly child: ChildProcess;
  readonly ended: Promise<Ended>;

  constructor(words: readonly string[], env: Record<string, string>) {
    const options = { cwd: projectRoot, env: { ...process.env, ...env } };
    this.child = spawn(process.execPath, [EXAMPLE, ...words], options);
    this.child.stdout?.on('data', (chunk) => {
      this.said += chunk;
    });
    this.child.stderr?.on('data', (chunk) => {
      this.errors += chunk;
    });
    this.ended = new Promise((resolve) => {
      this.child.once('close', (status) => resolve({ status, errors: this.errors }));
    });
  }

  async ready(): Promise<void> {
    await waitFor('the page to be served', () => this.said.includes('is shown at'));
  }

  async kill(): Promise<Ended> {
    this.child.kill('SIGKILL');
    return this.ended;
  }
}

t.test('a page that watches a lock', { skip: skipsBrowser }, async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3 });
  const client = new HttpClient();
  t.teardown(() => client.close());
  const browser = await launchBrowser(t);
  const [port = 0] = await freePorts(1);
  const nodes = cluster.nodeIds.map((nodeId) => cluster.httpUrl(nodeId).slice('http://'.length));
  const env = { HOLDFAST_HTTP: nodes.join(','), PORT: String(port) };
  let server = new PageServer([LOCK], env);
  t.teardown(() => server.kill());
  await server.ready();
  const url = `http://127.0.0.1:${port}/`;
  t.equal(server.said.trim(), `${LOCK} is shown at ${url}`);

  /** Any node takes it; the third is never struck here. */
  const base = cluster.httpUrl(3);
  let keys = 0;
  const acquire = async (metadata: string, waitMs = 0) => {
    keys += 1;
    const body = { ttl_ms: 600_000, wait_ms: waitMs, metadata };
    const path = `${base}/v1/locks/${encodeURIComponent(LOCK)}/acquire`;
    return client.post(path, body, { 'idempotency-key': `page-${keys}` });
  };
  const release = (leaseId: string) => client.delete(`${base}/v1/leases/${leaseId}`);

  const { page, problems, hosts } = await open(browser, url, { viewport: SIZES[0] });
  const state = page.getByRole('status');
  const text = async (id: string) => (await page.locator(id).textContent())?.trim();
  const isShown = (id: string, wanted: string) =>
    waitFor(`${id} to be ${wanted}`, async () => (await text(id)) === wanted);
  const isLive = () =>
    waitFor('the page to be live', async () => (await text('#state')) === 'live');
  const rows = () => page.locator('#changes tr').allTextContents();

  await t.test(
    'shows who holds, since when, the token, and who waits, as it changes',
    async (t) => {
      await isLive();
      await isShown('#holder', 'nobody');
      await isShown('h1', LOCK);
      const first = await acquire('worker-7');
      t.equal(first.status, 200, first.text);
      await isShown('#holder', 'worker-7');
      await isShown('#token', String(first.json.fencing_token));
      t.match(await page.title(), /worker-7/);
      const since = Date.parse((await page.locator('#since').getAttribute('datetime')) ?? '');
      t.ok(Math.abs(Date.now() - since) < 30_000, `since ${since}`);
      t.match(await text('#age'), /^\(\d+ s\)$/);
      const waiting = acquire('worker-8', 600_000);
      await page.locator('#waiters').getByText('worker-8').waitFor();
      t.equal(await page.locator('#alone').isVisible(), false);
      await release(first.json.lease_id);
      const second = await waiting;
      await isShown('#holder', 'worker-8');
      await isShown('#token', String(second.json.fencing_token));
      t.ok(second.json.fencing_token > first.json.fencing_token);
      await page.locator('#alone').waitFor();
      const wanted = [/granted/, /ended: released/, /queued/, /granted/];
      await waitFor('every change', async () => (await rows()).length === wanted.length);
      t.match(await rows(), wanted, 'the newest first');
      await release(second.json.lease_id);
      await isShown('#holder', 'nobody');
      t.same(problems, [], 'no error in the console');
      t.same([...hosts], [new URL(url).host], 'nothing from elsewhere');
    },
  );

  await t.test('goes on when its node is killed, and when one stands still', async (t) => {
    const count = (await rows()).length;
    await cluster.kill(1);
    await cluster.leaderOtherThan(1);
    const lease = await waitFor('a grant', async () => {
      const answer = await acquire('worker-9');
      return answer.status === 200 ? answer.json : null;
    });
    await isShown('#holder', 'worker-9');
    await isLive();
    await waitFor('the change', async () => (await rows()).length === count + 1);
    await cluster.restart(1);
    await cluster.settled();
    await cluster.stop(2);
    await cluster.leaderOtherThan(2);
    await waitFor('the release', async () => (await release(lease.lease_id)).status === 200);
    await isShown('#holder', 'nobody');
    await isLive();
    await cluster.cont(2);
    await waitFor('each change once', async () => (await rows()).length === count + 2);
    t.match((await rows())[0], /ended: released/);
  });

  await t.test('says so while nobody answers, and shows then what it missed', async (t) => {
    const count = (await rows()).length;
    await server.kill();
    await state.getByText('reconnecting: what is shown may be old').waitFor();
    t.equal(await page.locator('#state.live').count(), 0);
    const lease = (await acquire('worker-10')).json;
    server = new PageServer([LOCK], env);
    await server.ready();
    await isLive();
    await isShown('#holder', 'worker-10');
    await waitFor('what was missed', async () => (await rows()).length === count + 1);
    await release(lease.lease_id);
    await isShown('#holder', 'nobody');
    t.match((await rows())[0], /ended: released/);
  });

  await t.test('begins anew when a node no longer keeps what it was told last', async (t) => {
    const { page } = await open(browser, url, { viewport: SIZES[0] });
    await page.locator('#state.live').waitFor();
    const asked: string[] = [];
    const data = JSON.stringify({ error: { code: 'COMPACTED', oldest_revision: 9 } });
    await page.route('**/watch?*', async (route) => {
      asked.push(new URL(route.request().url()).search);
      if (asked.length > 1) return route.continue();
      const headers = { 'content-type': 'text/event-stream' };
      return route.fulfill({ headers, body: `event: error\ndata: ${data}\n\n` });
    });
    await server.kill();
    server = new PageServer([LOCK], env);
    await server.ready();
    await page.getByText('some changes were missed').waitFor();
    await page.locator('#state.live').waitFor();
    const lease = (await acquire('worker-11')).json;
    await page.locator('#holder').getByText('worker-11').waitFor();
    t.match(asked[0], /^\?revision=\d+$/);
    t.equal(asked[1], '?snapshot=true');
    await release(lease.lease_id);
    await page.close();
  });

  await t.test('is readable in light and dark, wide and narrow', async (t) => {
    const lease = (await acquire('a worker with a long name '.repeat(8))).json;
    for (const viewport of SIZES) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const { page } = await open(browser, url, { viewport, colorScheme });
        await page.locator('#state.live').waitFor();
        await page.locator('#holder').getByText('a worker').waitFor();
        const places = ['body', 'h1', 'h2', 'dt', 'dd', 'th', '#state', '#age', '#alone'];
        t.same(await colourProblems(page, places), [], `${colorScheme} ${viewport.width}`);
        await page.close();
      }
    }
    await release(lease.lease_id);
  });

  await t.test('has a name for each part', async (t) => {
    for (const name of ['Now', 'In line', 'Changes']) {
      t.equal(await page.getByRole('region', { name }).count(), 1, name);
      t.equal(await page.getByRole('heading', { name }).count(), 1, name);
    }
    t.equal(await page.getByRole('heading', { level: 1, name: LOCK }).count(), 1);
    t.equal(await page.getByRole('table', { name: 'Changes' }).count(), 1);
    t.equal(await page.getByRole('list', { name: 'In line' }).count(), 1);
    t.equal(await page.getByRole('columnheader').count(), 3);
    t.equal(await state.count(), 1);
    t.equal(await page.locator('html').getAttribute('lang'), 'en');
  });

  await t.test('is served, and nothing else is', async (t) => {
    const page = await client.get(url);
    t.match(page.headers['content-security-policy'], /default-src 'self'/);
    t.equal((await client.get(`${url}v1/cluster/status`)).status, 404);
    t.equal((await client.post(`${url}lock`, {})).status, 405);
    t.equal((await client.get(`${url}watch?revision=x`)).status, 400, 'the node refuses it');
  });

  await t.test('without nodes it says so; without a lock it does not start', async (t) => {
    const { status, errors } = await new PageServer([], env).ended;
    t.equal(status, 64);
    t.match(errors, /give the name of a lock/);
    const [dead = 0, other = 0] = await freePorts(2);
    const alone = { HOLDFAST_HTTP: `127.0.0.1:${dead}`, PORT: String(other) };
    const lonely = new PageServer([LOCK], alone);
    t.teardown(() => lonely.kill());
    await lonely.ready();
    t.equal((await client.get(`http://127.0.0.1:${other}/lock`)).status, 503);
    const opened = await open(browser, `http://127.0.0.1:${other}/`, { viewport: SIZES[0] });
    await opened.page.getByRole('status').getByText('reconnecting').waitFor();
    await opened.page.close();
  });
});

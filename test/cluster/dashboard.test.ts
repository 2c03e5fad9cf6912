import t from 'tap';
import { colourProblems, launchBrowser, open, SIZES, skipsBrowser } from './browser.js';
import { Cluster } from './harness.js';
import { HttpClient } from './http-client.js';
import { waitFor } from './wait-for.js';

t.test('the dashboard in headless Chromium', { skip: skipsBrowser }, async (t) => {
  const cluster = await Cluster.start({ test: t });
  const client = new HttpClient();
  t.teardown(() => client.close());
  const browser = await launchBrowser(t);
  let base = '';
  /** A browser makes this machine busy, so that others may lead by now: the leader is asked for. */
  const aimAtFollower = async (): Promise<number> => {
    const leader = await cluster.leader();
    base = cluster.httpUrl(cluster.nodeIds.find((nodeId) => nodeId !== leader) ?? 0);
    return leader;
  };
  await aimAtFollower();
  const acquire = (name: string, body: object, key: string) =>
    client.post(`${base}/v1/locks/${encodeURIComponent(name)}/acquire`, body, {
      'idempotency-key': key,
    });
  const held = await acquire('jobs/nightly', { ttl_ms: 600_000, metadata: 'worker-7' }, 'a');
  void acquire('jobs/nightly', { ttl_ms: 600_000, wait_ms: 600_000, metadata: 'worker-8' }, 'b');

  await t.test('shows cluster, locks, queue, live events and plots', async (t) => {
    const { page, problems, hosts } = await open(browser, base, { viewport: SIZES[0] });
    await page.waitForSelector('#live.good');
    await waitFor('the leader to be shown', async () => {
      const shown = await page.locator('#leader').textContent();
      return shown?.trim() === `node ${await cluster.leader()} leads`;
    });
    await page.locator('#locks').getByText('worker-7').waitFor();
    await page.locator('#locks').getByText('jobs/nightly').click();
    await page.locator('#queue').getByText('worker-8').waitFor();
    await acquire('live/one', { ttl_ms: 600_000 }, 'c');
    await page.locator('#events').getByText('live/one').waitFor();
    await page.locator('#hot').getByText('live/one').waitFor();
    await page.waitForSelector('#latency canvas');
    await page.locator('#prefix').fill('live/');
    await page.locator('#locks').getByText('worker-7').waitFor({ state: 'detached' });
    t.same(problems, [], 'no error in the console');
    t.same([...hosts], [new URL(base).host], 'nothing from elsewhere');
    await page.close();
  });

  await t.test('goes on when the leader is killed', async (t) => {
    const killed = await aimAtFollower();
    const { page } = await open(browser, base, { viewport: SIZES[0] });
    await page.waitForSelector('#live.good');
    await cluster.kill(killed);
    const next = await cluster.leaderOtherThan(killed);
    await page.getByText(`node ${next} leads`).waitFor();
    await waitFor('a grant', async () => {
      const answer = await acquire('live/two', { ttl_ms: 600_000 }, 'd');
      return answer.status === 200 ? true : null;
    });
    await page.locator('#events').getByText('live/two').waitFor();
    t.pass('events go on');
    await page.close();
  });

  await t.test('is readable in light and dark, wide and narrow', async (t) => {
    for (const viewport of SIZES) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const { page } = await open(browser, base, { viewport, colorScheme });
        await page.waitForSelector('#live.good');
        await page.waitForSelector('#latency canvas');
        const label = `${colorScheme} ${viewport.width}`;
        const places = ['body', 'h2', 'th', '#live', '.link'];
        t.same(await colourProblems(page, places), [], label);
        await page.close();
      }
    }
  });
  t.equal(held.status, 200);
});

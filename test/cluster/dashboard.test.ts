import t from 'tap';
import { colourProblems, launchBrowser, open, SIZES, skipsBrowser } from './browser.js';
import { Cluster } from './harness.js';
import { HttpClient } from './http-client.js';
import { waitFor } from './wait-for.js';

t.test('the dashboard in headless Chromium', { skip: skipsBrowser }, async (t) => {
  const readOnly = 5;
  const nodeWords = (nodeId: number) => (nodeId === readOnly ? [] : ['--dashboard-admin']);
  const cluster = await Cluster.start({ test: t, nodeWords });
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

  await t.test('an operator frees a lock: the token that is meant, and its barrier', async (t) => {
    const admin = (path: string, body: object, key: string) => {
      const said = { actor: 'ops@bastion', reason: 'restore', ...body };
      return client.post(`${base}/v1/admin/${path}`, said, { 'idempotency-key': key });
    };
    const leader = await cluster.leader();
    const other = cluster.nodeIds.find((nodeId) => nodeId !== leader && nodeId !== readOnly);
    const opened = await open(browser, cluster.httpUrl(other ?? 0), { viewport: SIZES[0] });
    const { page, problems } = opened;
    const queue = page.locator('#queue');
    await page.waitForSelector('#live.good');
    await page.locator('#locks').getByText('jobs/nightly').click();
    await page.locator('#force').click();
    const token = held.json.fencing_token;
    const submit = page.getByRole('button', { name: `Release token ${token} by force` });
    t.equal(await submit.isDisabled(), true, 'not before it is said who asks, and why');
    await page.locator('input[name=actor]').fill('me@desk');
    await page.locator('input[name=reason]').fill('worker-7 hangs');
    await submit.click();
    const done = (await page.locator('#forced').textContent()) ?? '';
    const barrier = Number(/Barrier token (\d+)/.exec(done)?.[1]);
    t.match(done, `holdfast guard raise 'jobs/nightly' --token ${barrier}`);
    await page.locator('#events .serious').getByText('ended (forced)').waitFor();
    await queue.getByText(`held with token ${barrier + 1}`).waitFor();
    const { json } = await client.get(`${base}/v1/audit?revision=${barrier}&limit=1`);
    const said = { asked_by: 'me@desk', reason: 'worker-7 hangs', fencing_token: token };
    t.match(json.events, [{ type: 'ended', cause: 'forced', ...said }]);

    await admin('disable', { prefix: 'jobs/' }, 'disable');
    await queue
      .getByText(/No new acquires of every lock under 'jobs\/'.*ops@bastion: restore/)
      .waitFor();
    await page.locator('#events .serious').getByText('disabled').waitFor();
    await page.locator('#events').getByText('jobs/*').waitFor();
    await admin('enable', { prefix: 'jobs/' }, 'enable');

    await queue.getByText('close').click();
    await acquire('jobs/other', { ttl_ms: 600_000 }, 'o1');
    await page.locator('#locks').getByText('jobs/other').click();
    await page.locator('#force').click();
    await admin('locks/jobs%2Fother/force-release', { any: true }, 'meanwhile');
    await acquire('jobs/other', { ttl_ms: 600_000, metadata: 'worker-9' }, 'o2');
    await page.locator('input[name=actor]').fill('me@desk');
    await page.locator('input[name=reason]').fill('late');
    t.same(problems, [], 'no error in the console');
    await page.getByRole('button', { name: /^Release token/ }).click();
    await page
      .locator('#problem')
      .getByText(/^CONFLICT/)
      .waitFor();
    await queue.getByText('worker-9').waitFor();
    await page.close();
  });

  await t.test('without --dashboard-admin the page shows the command instead', async (t) => {
    const { page, problems } = await open(browser, cluster.httpUrl(readOnly), {});
    await page.locator('#locks').getByText('worker-8').waitFor();
    await page.locator('#locks').getByText('jobs/nightly').click();
    const hint = await page.locator('#read-only').textContent();
    t.match(hint, /read-only.*holdfast admin force-release 'jobs\/nightly' --token \d+/s);
    t.equal(await page.locator('#force').count(), 0);
    t.same(problems, []);
    await page.close();
  });

  await t.test(
    'an answer that was asked for before a lock was opened does not close it',
    async (t) => {
      const { page } = await open(browser, base, { viewport: SIZES[0] });
      await page.locator('#locks').getByText('jobs/nightly').waitFor();
      const lists = '**/v1/locks?*';
      let [isHeld, letGo] = [false, (): void => undefined];
      await page.route(lists, async (route) => {
        if (!isHeld) {
          const released = new Promise<void>((resolve) => {
            letGo = resolve;
          });
          isHeld = true;
          await released;
        }
        await route.continue();
      });
      await waitFor('a list to be held up', () => isHeld);
      await page.locator('#locks').getByText('jobs/nightly').click();
      await page.locator('#queue').waitFor();
      await page.evaluate(`window.queueClosed = 0; new MutationObserver((changes) => {
      for (const { removedNodes } of changes)
        for (const node of removedNodes) if (node.id === 'queue') window.queueClosed += 1;
    }).observe(document.body, { childList: true, subtree: true })`);
      const late = page.waitForResponse(lists);
      letGo();
      await late;
      await page.waitForResponse(lists);
      t.equal(await page.evaluate('window.queueClosed'), 0);
      await page.unrouteAll({ behavior: 'wait' });
      await page.close();
    },
  );

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

import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import t from 'tap';
import { Cluster } from './harness.js';
import { HttpClient } from './http-client.js';
import { waitFor } from './wait-for.js';

const CHROMIUM = '/usr/bin/chromium';
const skip = existsSync(CHROMIUM) ? false : 'needs the Debian package chromium';
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
const SIZES = [
  { width: 1_280, height: 900 },
  { width: 400, height: 800 },
];

/** Relative luminance of `rgb(r, g, b)`. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  const linear = [red, green, blue].map((part) => {
    const share = part / 255;
    return share <= 0.039_28 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.212_6 * (linear[0] ?? 0) + 0.715_2 * (linear[1] ?? 0) + 0.072_2 * (linear[2] ?? 0);
}

function contrast(left: string, right: string): number {
  const [dark, light] = [luminance(left), luminance(right)].sort((a, b) => a - b) as [
    number,
    number,
  ];
  return (light + 0.05) / (dark + 0.05);
}

interface Opened {
  readonly page: Page;
  readonly problems: string[];
  readonly hosts: Set<string>;
}

async function open(browser: Browser, url: string, options: object): Promise<Opened> {
  const page = await browser.newPage(options);
  const problems: string[] = [];
  const hosts = new Set<string>();
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  await page.goto(url);
  return { page, problems, hosts };
}

t.test('the dashboard in headless Chromium', { skip }, async (t) => {
  const cluster = await Cluster.start({ test: t });
  const client = new HttpClient();
  t.teardown(() => client.close());
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  t.teardown(() => browser.close());
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
        const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
        t.ok(width <= viewport.width, `${label}: ${width} columns, nothing to the side`);
        const colours = (await page.evaluate(`['body', 'h2', 'th', '#live', '.link'].map((each) => {
          let place = document.querySelector(each);
          const ink = getComputedStyle(place).color;
          const clear = 'rgba(0, 0, 0, 0)';
          while (getComputedStyle(place).backgroundColor === clear) place = place.parentElement;
          return [each, ink, getComputedStyle(place).backgroundColor];
        })`)) as [string, string, string][];
        for (const [place, ink, ground] of colours) {
          t.ok(contrast(ink, ground) >= 4.5, `${label} ${place}: ${contrast(ink, ground)}`);
        }
        await page.close();
      }
    }
  });
  t.equal(held.status, 200);
});

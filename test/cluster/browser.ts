/**
 * Headless Chromium for tests of pages: one browser a test, and what every page is held to.
 *
 * Owns: the browser it starts. The only file that knows playwright. Never: a page's content.
 * Used by: dashboard.test.ts, lock-page.test.ts.
 */
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { Test } from 'tap';

const CHROMIUM = '/usr/bin/chromium';
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
/** WCAG 2, level AA, for text of any size. */
const CONTRAST_LEAST = 4.5;

/** Why tests with a browser are left out, or false. */
export const skipsBrowser = existsSync(CHROMIUM) ? false : 'needs the Debian package chromium';

export const SIZES = [
  { width: 1_280, height: 900 },
  { width: 400, height: 800 },
];

export interface Opened {
  readonly page: Page;
  /** What went wrong in the page: errors that it threw, errors in its console. */
  readonly problems: string[];
  /** Hosts that the page asked. */
  readonly hosts: Set<string>;
}

/** Ends with the test. */
export async function launchBrowser(t: Test): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  t.teardown(() => browser.close());
  return browser;
}

export async function open(browser: Browser, url: string, options: object): Promise<Opened> {
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
  const [dark = 0, light = 0] = [luminance(left), luminance(right)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** Each of these places that cannot be read well on its ground, and a page that is too wide. */
export async function colourProblems(page: Page, places: readonly string[]): Promise<string[]> {
  const problems: string[] = [];
  const [width, view] = (await page.evaluate(
    '[document.documentElement.scrollWidth, innerWidth]',
  )) as [number, number];
  if (width > view) problems.push(`${width} columns, there are ${view}`);
  const colours = (await page.evaluate(`${JSON.stringify(places)}.map((each) => {
    let place = document.querySelector(each);
    const ink = getComputedStyle(place).color;
    const clear = 'rgba(0, 0, 0, 0)';
    while (getComputedStyle(place).backgroundColor === clear) place = place.parentElement;
    return [each, ink, getComputedStyle(place).backgroundColor];
  })`)) as [string, string, string][];
  for (const [place, ink, ground] of colours) {
    const found = contrast(ink, ground);
    if (found < CONTRAST_LEAST) problems.push(`${place}: contrast ${found.toFixed(2)}`);
  }
  return problems;
}

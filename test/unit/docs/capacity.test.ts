/** The arithmetic of docs/CAPACITY.md: every product in it comes out, and units fit its limits. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import { LOG_WINDOW_BYTES, PENDING_REQUESTS_MAX } from '../../../src/limits.js';
import { projectFile } from '../../gate/paths.js';
import { codeSpans } from './markdown.js';

const page = readFileSync(projectFile('docs/CAPACITY.md'), 'utf8');

/** `6,000 /s × 70 B = 420,000 B/s`: words are units, the rest is arithmetic. */
function sides(span: string): { left: number; right: number } {
  const plain = span.replaceAll(',', '').replaceAll('×', '*');
  const bare = plain.replace(/\/\s*s\b/g, '').replace(/[a-zµ]+(\/s)?/gi, '');
  const [left = '', right = ''] = bare.split('=');
  return { left: amount(left), right: amount(right) };
}

/** Sums of products and quotients, from left to right as they are written. */
function amount(text: string): number {
  return text.split('+').reduce((sum, term) => {
    const words = term.trim().split(/\s+/);
    let value = Number(words[0]);
    for (let at = 1; at + 1 < words.length; at += 2) {
      const operand = Number(words[at + 1]);
      value = words[at] === '*' ? value * operand : value / operand;
    }
    return sum + value;
  }, 0);
}

t.test('every product comes out, to half of its last unit', async (t) => {
  const spans = codeSpans(page).filter((span) => span.includes('='));
  t.ok(spans.length >= 25, `${spans.length} products`);
  for (const span of spans) {
    const { left, right } = sides(span);
    const isRight = Math.abs(left - right) <= 0.5;
    t.ok(isRight && Number.isFinite(left), `${span}: ${left}`);
  }
});

t.test('a product that does not come out would be seen', async (t) => {
  const { left, right } = sides('6,000 /s × 70 B = 430,000 B/s');
  t.equal(left, 420_000);
  t.equal(right, 430_000);
  const mixed = sides('7,000 B/s + 4 × 500 B/s = 9,000 B/s');
  t.equal(mixed.left, mixed.right);
});

t.test('the bounds that the page counts with are the code’s', async (t) => {
  const settings = defaultSettings();
  const said = (count: number): string => count.toString().replace(/\B(?=(\d{3})+$)/g, ',');
  t.match(page, `at most ${said(settings.idleLocksMax)}`);
  t.match(page, `at most ${said(settings.endedLeasesMax)}`);
  t.match(page, `more than ${said(PENDING_REQUESTS_MAX)} requests`);
  t.equal(LOG_WINDOW_BYTES, 32 * 1_048_576);
});

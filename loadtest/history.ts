/**
 * Reports that were kept, one a line, and the page that is written from them.
 *
 * Owns: loadtest/history.jsonl and docs/BENCHMARKS.md between its first line and its last: no
 * figure on that page is typed by hand. Never: a measurement. Used by: main.ts, a test that the
 * page is the one that the history gives.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { projectFile } from '../test/gate/paths.js';
import { PROFILES } from './options.js';
import type { PeerFigure } from './peers/peer.js';
import type { Report } from './report.js';

export const HISTORY_FILE = 'loadtest/history.jsonl';
export const PAGE_FILE = 'docs/BENCHMARKS.md';

/** A report and why it was kept. */
export interface Kept extends Report {
  readonly note: string;
}

/** What is not worth a line in the history: the seconds of a run and the like. */
const LEFT_OUT = new Set(['seconds', 'failovers_ms']);

export function readHistory(): Kept[] {
  const file = projectFile(HISTORY_FILE);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Kept);
}

/** Adds a report at the end. */
export function keep(report: Report, note: string): void {
  const fields = Object.entries(report).filter(([name]) => !LEFT_OUT.has(name));
  const line = JSON.stringify({ note, ...Object.fromEntries(fields) });
  appendFileSync(projectFile(HISTORY_FILE), `${line}\n`);
}

export function writePage(): void {
  writeFileSync(projectFile(PAGE_FILE), benchmarksPage(readHistory()));
}

/** Every floor and goal, as they are worded where the product promises them. */
const TARGETS: Readonly<Record<string, string>> = {
  headline: '100,000 ops/s with p99 ≤ 25 ms; goal 200,000',
  saturated: '150,000 ops/s with p99 ≤ 100 ms; goal 250,000 with p99 ≤ 60 ms',
  'inflight-1024': '100,000 ops/s; goal 150,000, and 1.5 times Redlock in the same run',
  'open-loop': '50,000/s with p99 ≤ 15 ms; goal 100,000/s',
  latency: 'p50 ≤ 1.0 ms; goal 0.7 ms',
  unpipelined: '30,000 ops/s; goal 40,000',
  interview: 'acquire p99 ≤ 200 ms; goal 20 ms',
  burst: 'no lease lost, refusals typed, p99 back in 5 s',
  zipf: '70 % of headline in the same run; goal 90 %',
  hot: '1,000 hand-overs/s; goal 3,000',
  expiry: 'freed within 5 s, others’ p99 ≤ 100 ms, p99 ≤ 500 ms late; goal 2 s, 150 ms',
  failover: 'p50 ≤ 1 s, p99 ≤ 1.5 s; goal p99 0.7 s',
  peers: '6 times etcd, 20 times ZooKeeper; goal 10 and 40 times',
};

const HEAD = [
  '# Benchmarks',
  '',
  `This page is written by \`npm run bench -- --report\` from \`${HISTORY_FILE}\`, to which`,
  "`npm run bench -- --profile NAME --keep 'what changed'` adds a line; no figure in it was typed.",
  'How to run them and what each profile does is in [TESTING](TESTING.md#load). Every row was',
  'measured with five durable nodes and the load generator on one machine, and only rows against',
  'which nothing spoke are here: digests equal, every reply looked at, every operation counted in',
  'the log. To compare figures of different days, look at the last two columns: how many appends a',
  'second this disk flushed one after another at that moment, and the load average before the run.',
  '',
];

function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

function ms(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
}

type Fields = Readonly<Record<string, unknown>>;

function field(row: Fields, ...path: string[]): unknown {
  let at: unknown = row;
  for (const name of path) at = (at as Fields | undefined)?.[name];
  return at;
}

function numberAt(row: Fields, ...path: string[]): number {
  const value = field(row, ...path);
  return typeof value === 'number' ? value : Number.NaN;
}

/** A field as a count or as ms, by a name such as `burst.rate`. */
function countAt(row: Kept, name: string): string {
  return count(numberAt(row, ...name.split('.')));
}

function msAt(row: Kept, name: string): string {
  return `${ms(numberAt(row, ...name.split('.')))} ms`;
}

/** What a profile shows beside rate and latency. */
function particulars(row: Kept): string {
  const lost = `${countAt(row, 'renewals.lost_leases')} leases lost`;
  switch (row.profile) {
    case 'interview': {
      const renewals = `${countAt(row, 'renewals.per_second')} renewals/s`;
      return `acquire p99 ${msAt(row, 'acquire_p99_ms')}; ${renewals}; ${lost}`;
    }
    case 'burst': {
      const during = `${countAt(row, 'burst.ops_per_second')} ops/s during it`;
      const tail = `p99 ${msAt(row, 'burst.p99_ms_during')}`;
      const back = `back after ${countAt(row, 'burst.p99_back_after_s')} s`;
      return `${during}, ${tail}; ${back}; ${count(row.refusals)} refused; ${lost}`;
    }
    case 'zipf': {
      const share = (100 * numberAt(row, 'ratio_to_headline')).toFixed(0);
      return `${share} % of headline; ${countAt(row, 'waits_timed_out')} waits timed out`;
    }
    case 'hot':
      return `${countAt(row, 'hand_overs_per_second')} hand-overs/s`;
    case 'expiry': {
      const of = `of ${countAt(row, 'expiry.leases')} leases`;
      const size = `${countAt(row, 'expiry.within_one_second')} ${of} within a second`;
      const late = `p99 ${msAt(row, 'expiry.lateness_ms.p99')} late`;
      const last = `the last ${msAt(row, 'expiry.last_freed_late_ms')}`;
      return `${size}; ${late}, ${last}; others’ p99 ${msAt(row, 'expiry.others_p99_ms')}`;
    }
    case 'failover': {
      const deaths = `${countAt(row, 'failover_ms.count')} deaths`;
      const tail = `p99 ${msAt(row, 'failover_ms.p99')}, longest ${msAt(row, 'failover_ms.max')}`;
      return `${deaths}: p50 ${msAt(row, 'failover_ms.p50')}, ${tail}`;
    }
    default:
      return '';
  }
}

function spread(row: Kept): string {
  const repeats = row['repeats'] as Fields | undefined;
  const runs = numberAt(row, 'repeats', 'count');
  if (repeats === undefined || !(runs > 1)) return '1 run';
  const least = count(numberAt(row, 'repeats', 'ops_per_second', 'min'));
  const most = count(numberAt(row, 'repeats', 'ops_per_second', 'max'));
  return `${runs} runs, ${least} to ${most}`;
}

/** In flight or a second, and for how long. */
function askedFor({ load }: Kept): string {
  const { inflight, rate } = load;
  const much = rate === null ? `${count(inflight ?? 0)} in flight` : `${count(rate)}/s`;
  return `${much}, ${count(load.duration_s)} s`;
}

const COLUMNS = 'ops/s | runs | p50 ms | p99 ms | p99.9 ms | CPU µs/op | ops a commit';

function profileTable(rows: readonly Kept[]): string[] {
  const hasMore = rows.some((row) => particulars(row) !== '');
  const more = hasMore ? ' | of this profile' : '';
  const head = `| commit | what changed | asked for | ${COLUMNS}${more} | appends/s | load |`;
  const lines = [head, head.replace(/[^|]+/g, '---')];
  for (const row of rows) {
    const { latency_ms: latency } = row;
    const cells = [
      `\`${row.commit}\``,
      row.note,
      askedFor(row),
      `**${count(row.ops_per_second)}**`,
      spread(row),
      ms(latency.p50),
      ms(latency.p99),
      ms(latency.p999),
      row.cpu_us_per_op.total === null ? '—' : row.cpu_us_per_op.total.toFixed(1),
      row.ops_per_commit.toFixed(0),
      ...(hasMore ? [particulars(row)] : []),
      countAt(row, 'baseline.append_fdatasync_per_second'),
      String(row.machine_load.split(' ')[0]),
    ];
    lines.push(`| ${cells.join(' | ')} |`);
  }
  return lines;
}

function peerRow(peer: PeerFigure): string {
  const best = peer.is_best ? ' at its best' : '';
  const isOwn = peer.name === 'Holdfast';
  const cells = [
    peer.name,
    count(peer.inflight),
    `**${count(peer.ops_per_second)}**`,
    `${count(peer.min)} to ${count(peer.max)}`,
    ms(peer.p50_ms),
    ms(peer.p99_ms),
    peer.ratio === null || isOwn ? best.trim() : `${peer.ratio.toFixed(2)} times${best}`,
    peer.own_loader === null ? '' : `${count(peer.own_loader)}/s`,
  ];
  return `| ${cells.join(' | ')} |`;
}

/** One comparison: figures, then what each peer is, then where Holdfast loses. */
function peerTable(row: Kept): string[] {
  const peers = (row['comparison'] ?? []) as readonly PeerFigure[];
  const losses = (row['losses'] ?? []) as readonly string[];
  const head = '| who | in flight | ops/s | least to most | p50 ms | p99 ms | Holdfast does |';
  const whole = `${head} its own loader |`;
  const lines = [whole, whole.replace(/[^|]+/g, '---'), ...peers.map(peerRow), ''];
  for (const { name, version, settings, durability, own_loader_note } of peers.filter(
    (peer) => peer.is_best,
  )) {
    const loader = name === 'Holdfast' ? '' : `; own loader: ${own_loader_note}`;
    lines.push(`- ${name}: ${version}; ${settings}; ${durability}${loader}.`);
  }
  return [...lines, '', ...losses.map((loss) => `- ${loss}`)];
}

function machines(rows: readonly Kept[]): string[] {
  const found = new Map<string, Set<string>>();
  for (const { machine, commit, cluster } of rows) {
    const cores = `${machine.cpu}, ${machine.cores} cores, ${machine.memory_gib} GiB`;
    const system = `Linux ${machine.kernel}, Node ${machine.node}`;
    const text = `${cores}, ${system}; nodes with \`${cluster.settings}\``;
    found.set(text, (found.get(text) ?? new Set()).add(commit));
  }
  return [...found].map(([text, commits]) => `- ${text}: ${[...commits].join(', ')}`);
}

/** The whole page. */
export function benchmarksPage(history: readonly Kept[]): string {
  const lines = [...HEAD];
  if (history.length > 0) lines.push('## Machines', ...machines(history), '');
  for (const [profile, { says }] of Object.entries(PROFILES)) {
    const rows = history.filter((row) => row.profile === profile);
    if (rows.length === 0) continue;
    lines.push(`## ${profile}`, `${says[0]?.toUpperCase()}${says.slice(1)}.`, '');
    lines.push(`Wanted: ${TARGETS[profile] ?? 'no figure was set'}.`, '');
    if (profile !== 'peers') lines.push(...profileTable(rows), '');
    else
      for (const row of rows)
        lines.push(`At \`${row.commit}\`, ${row.note}:`, '', ...peerTable(row), '');
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

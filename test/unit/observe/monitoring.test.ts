/** What operators are given: alerts, board, degradation table; held against what a node says. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { metricsText as deliveryText } from '../../../src/cli/audit/metrics-file.js';
import { FaultKind } from '../../../src/io/scrub/fault.js';
import { DEGRADATION, degradationTable } from '../../../src/observe/degradation.js';
import { Metrics } from '../../../src/observe/metrics.js';
import { Meters } from '../../../src/replica/meters.js';
import { figuresOf } from '../../../src/server/figures.js';
import { projectFile } from '../../gate/paths.js';

const PAGE = projectFile('docs/OPERATIONS.md');
const ALERTS = projectFile('docs/monitoring/alerts.yml');
const METRICS = projectFile('docs/METRICS.md');
const BOARD = projectFile('docs/monitoring/grafana.json');
const METRIC_TABLE = /<!-- metrics: .*? -->\n([\s\S]*?)\n<!-- end of metrics -->/;
const TABLE = /<!-- degradation: .*? -->\n([\s\S]*?)\n<!-- end of degradation -->/;

/** The metrics of a node in which everything has happened once. */
async function nodeText(): Promise<string> {
  const meters = new Meters();
  meters.onApplied(36, 0);
  meters.onApplied(36, 10);
  meters.onEntry(3);
  meters.onRefused(44);
  meters.ended[2] = 1;
  meters.fencingRefusals = 3;
  meters.holds.observe(1_500);
  meters.waits.observe(20);
  meters.onOrdered(1, 1_000);
  meters.onDurable(1, 4_000);
  const status = {
    nodeId: 1,
    role: 'leader',
    term: 2,
    leaderId: 1,
    appliedIndex: 3,
    commitIndex: 3,
    revision: 4,
    clusterTime: 5,
    digest: '',
    featureLevel: 1,
    members: [],
    counters: { match_index_2: 3, last_index: 3, disabled: 2 },
  } as const;
  const replica = { meters, pendingAgeMs: 7, status: () => status };
  const scrub = {
    isEnabled: true,
    isRunning: false,
    isPaused: false,
    passes: 3,
    passesFailed: 1,
    failure: '',
    bytes: 7,
    ageMs: 8_000,
    segments: 9,
    snapshots: 1,
    faults: [{ kind: FaultKind.Log, file: 'x', index: 2, found: 'y' }],
  };
  const around = {
    freeMib: 5,
    historyBytes: 6,
    isHistoryGivenUp: true,
    spans: { sent: 7, failed: 8, dropped: 9, isFailing: true },
    silencesMs: new Map([[2, 250]]),
    version: '1.2.3',
    scrub,
  };
  const metrics = new Metrics(() => figuresOf(replica, around));
  t.teardown(() => metrics.close());
  metrics.onAnswered('get', 200, 0.01);
  return (await metrics.read({ calls: 0, streams: 0, sockets: 0 })).text;
}

/** The metrics of a node, and those of a delivery of audit events. */
async function metricsText(): Promise<string> {
  const figures = { delivered: 5, dead: 1, lag: 2, isSinkAway: true };
  return (await nodeText()) + deliveryText(figures);
}

/** Names of series: of a histogram also those with its endings. */
function seriesIn(text: string): Set<string> {
  const names = new Set<string>();
  for (const [, name = '', kind] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name);
    if (kind !== 'histogram') continue;
    for (const ending of ['_bucket', '_count', '_sum']) names.add(name + ending);
  }
  return names;
}

function namesIn(text: string): Set<string> {
  return new Set(text.match(/\b(?:holdfast|process)_[a-z0-9_]+/g) ?? []);
}

function anchorsIn(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of page.matchAll(/^#+ (.+)$/gm)) {
    const words = heading.toLowerCase().replace(/[^a-z0-9 -]/g, '');
    anchors.add(words.trim().replace(/ /g, '-'));
  }
  return anchors;
}

t.test('operations and histograms are counted, by operation and code', async (t) => {
  const text = await metricsText();
  t.match(text, /^holdfast_operations_total\{operation="acquire",code="OK"\} 1$/m);
  t.match(text, /^holdfast_operations_total\{operation="acquire",code="LOCK_BUSY"\} 1$/m);
  t.match(text, /^holdfast_operation_duration_seconds_count\{operation="acquire"\} 2$/m);
  t.match(
    text,
    /^holdfast_operation_duration_seconds_bucket\{operation="acquire",le="0.0025"\} 0$/m,
  );
  t.match(
    text,
    /^holdfast_operation_duration_seconds_bucket\{operation="acquire",le="0.005"\} 2$/m,
  );
  t.match(
    text,
    /^holdfast_operation_duration_seconds_bucket\{operation="acquire",le="\+Inf"\} 2$/m,
  );
  t.match(text, /^holdfast_operation_duration_seconds_sum\{operation="acquire"\} 0.006$/m);
  t.match(text, /^holdfast_leases_ended_total\{cause="expired"\} 1$/m);
  t.match(text, /^holdfast_leases_ended_total\{cause="forced"\} 0$/m, 'so that the first rises');
  t.match(text, /^holdfast_fencing_refusals_total 3$/m);
  t.match(text, /^holdfast_disabled_rules 2$/m);
  t.match(text, /^holdfast_log_append_duration_seconds_sum 0.003$/m);
  t.match(text, /^holdfast_lease_hold_seconds_sum 1.5$/m);
  t.match(text, /^holdfast_pending_age_seconds 0.007$/m);
  t.match(text, /^holdfast_scrub_faults 1$/m);
  t.match(text, /^holdfast_scrub_age_seconds 8$/m);
  t.match(text, /^holdfast_scrub_passes_failed_total 1$/m);
});

t.test('peers, circuits, spans and the build are told', async (t) => {
  const text = await metricsText();
  t.match(text, /^holdfast_peer_last_contact_seconds\{peer="2"\} 0.25$/m);
  t.match(text, /^holdfast_spans_total\{state="sent"\} 7$/m);
  t.match(text, /^holdfast_spans_total\{state="failed"\} 8$/m);
  t.match(text, /^holdfast_spans_total\{state="dropped"\} 9$/m);
  t.match(text, /^holdfast_circuit_open\{dependency="majority"\} 0$/m, 'somebody leads');
  t.match(text, /^holdfast_circuit_open\{dependency="event history"\} 1$/m);
  t.match(text, /^holdfast_circuit_open\{dependency="span collector"\} 1$/m);
  t.match(text, /^holdfast_build_info\{version="1.2.3",node_version="v\d+\.\d+\.\d+"\} 1$/m);
  t.match(text, /^holdfast_heap_limit_bytes \d{8,}$/m);
  t.match(text, /^process_start_time_seconds \d{10}/m);
  t.match(text, /^holdfast_audit_sink_away 1$/m);
  t.match(text, /^holdfast_audit_lag_revisions 2$/m);
  const rows = new Set(DEGRADATION.map(({ dependency }) => dependency));
  for (const [, dependency = ''] of text.matchAll(/^holdfast_circuit_open\{dependency="(.*?)"/gm)) {
    t.ok(rows.has(dependency), `${dependency} is a row of the degradation table`);
  }
});

t.test(
  'what took place before a leader, and in another’s entry, is not counted as a decision',
  async (t) => {
    const meters = new Meters();
    meters.onApplied(38, 0);
    meters.onEntry(-1);
    t.same(meters.decisions.filter(Boolean), []);
    meters.onApplied(38, 0);
    meters.onEntry(1);
    t.equal(meters.decisions[38]?.count, 1, 'the first one is not counted later either');
  },
);

t.test('alerts and board name only metrics that a node has, alerts their runbook', async (t) => {
  const series = seriesIn(await metricsText());
  const anchors = anchorsIn(readFileSync(PAGE, 'utf8'));
  const alerts = readFileSync(ALERTS, 'utf8');
  const board = readFileSync(BOARD, 'utf8');
  t.ok(JSON.parse(board).panels.length > 10);
  for (const name of [...namesIn(alerts), ...namesIn(board)]) t.ok(series.has(name), name);
  const count = (alerts.match(/- alert: /g) ?? []).length;
  t.ok(count > 10);
  const runbooks = [...alerts.matchAll(/runbook: docs\/OPERATIONS\.md#(\S+)/g)];
  t.equal(runbooks.length, count, 'each has one');
  for (const [, anchor = ''] of runbooks) t.ok(anchors.has(anchor), anchor);
});

/** Name, kind, labels and help of each metric, as the page has them. */
function tableOf(text: string): string {
  const lines = ['| metric | kind | labels | meaning |', '|---|---|---|---|'];
  const helps = new Map(
    [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map((each) => [each[1], each[2]]),
  );
  for (const [, name = '', kind] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    const labels = new Set<string>();
    for (const [, inside = ''] of text.matchAll(
      new RegExp(`^${name}(?:_bucket)?\\{(.*?)\\}`, 'gm'),
    )) {
      for (const [, label = ''] of inside.matchAll(/(\w+)="/g))
        if (label !== 'le') labels.add(label);
    }
    const words = [...labels].map((label) => `\`${label}\``).join(' ');
    lines.push(`| \`${name}\` | ${kind} | ${words} | ${helps.get(name)} |`);
  }
  return lines.join('\n');
}

t.test('the page of metrics has each metric of a node and of a delivery', async (t) => {
  const wanted = tableOf(await metricsText());
  const page = readFileSync(METRICS, 'utf8');
  if (process.env['HOLDFAST_WRITE_DOCS'] === '1') {
    const text = page.replace(METRIC_TABLE, (whole, old: string) => whole.replace(old, wanted));
    writeFileSync(METRICS, text);
  }
  t.equal(METRIC_TABLE.exec(readFileSync(METRICS, 'utf8'))?.[1], wanted);
});

t.test('the degradation table of the page is that of the code', async (t) => {
  const page = readFileSync(PAGE, 'utf8');
  if (process.env['HOLDFAST_WRITE_DOCS'] === '1') {
    const text = page.replace(TABLE, (whole, old: string) =>
      whole.replace(old, degradationTable()),
    );
    writeFileSync(PAGE, text);
  }
  t.equal(TABLE.exec(readFileSync(PAGE, 'utf8'))?.[1], degradationTable());
  const series = seriesIn(await metricsText());
  for (const { dependency, metric, code, test } of DEGRADATION) {
    if (metric !== '') t.ok(series.has(metric), `${dependency}: ${metric}`);
    t.ok(existsSync(projectFile(code)), code);
    t.ok(existsSync(projectFile(test)), `${dependency} is brought about by ${test}`);
  }
});

const PROMTOOL = process.env['HOLDFAST_PROMTOOL'] ?? '/usr/bin/promtool';
const skip = existsSync(PROMTOOL) ? false : 'needs the Debian package prometheus for promtool';

t.test('promtool has nothing to say against metrics and rules', { skip }, async (t) => {
  const input = await metricsText();
  t.equal(execFileSync(PROMTOOL, ['check', 'metrics'], { input, encoding: 'utf8' }), '');
  const output = execFileSync(PROMTOOL, ['check', 'rules', ALERTS], { encoding: 'utf8' });
  t.match(output, /SUCCESS: \d+ rules found/);
});

/** What nodes say of their disks over HTTP, and what is said when they do not. */

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { clusterJson, clusterLines, unprovenOf } from '../../../src/cli/verify/cluster-check.js';
import { Check, Findings } from '../../../src/cli/verify/finding.js';
import { readScrubs, type ScrubAnswer } from '../../../src/cli/verify/scrub-reports.js';
import type { Endpoint } from '../../../src/server/options.js';

const SOUND: ScrubAnswer = {
  node: 2,
  enabled: true,
  running: false,
  paused: false,
  passes: 3,
  bytes: 0,
  failure: null,
  age_ms: 5_000,
  segments: 4,
  snapshots: 1,
  faults: [],
  asked_pass: null,
};

/** A node that answers so; null: 503. */
async function nodeThat(
  t: Test,
  answer: (method: string, asked: number) => ScrubAnswer | null,
): Promise<Endpoint> {
  let asked = 0;
  const server = http.createServer((request, response) => {
    asked += 1;
    const body = answer(request.method ?? '', asked);
    response.writeHead(body === null ? 503 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

async function read(endpoints: Endpoint[], isPassWanted = false, timeoutMs = 2_000) {
  const findings = new Findings();
  const reports = await readScrubs(endpoints, isPassWanted, timeoutMs, findings);
  return { reports, findings: findings.told };
}

const DIGESTS = { compared: [1, 2], alone: [], silent: [], index: 9, digest: 'abc' };

t.test('damage that a node knows of is a finding with its place', async (t) => {
  const faults = [
    { kind: 'log', file: '/data/log/segment-1', index: 7, found: 'a wrong checksum' },
    { kind: 'log', file: '/data/log/segment-9', index: 0, found: 'data.mdb is missing' },
  ];
  const node = await nodeThat(t, () => ({ ...SOUND, faults }));
  const { findings, reports } = await read([node]);
  t.match(findings, [
    { check: 'scrub', where: 'node 2: /data/log/segment-1, index 7', found: 'a wrong checksum' },
    { where: 'node 2: /data/log/segment-9', found: 'data.mdb is missing' },
  ]);
  t.strictSame(unprovenOf(DIGESTS, reports, []), []);
});

t.test('a pass that is asked for is waited for', async (t) => {
  const asks: string[] = [];
  const node = await nodeThat(t, (method, asked) => {
    asks.push(method);
    if (method === 'POST') return { ...SOUND, running: true, asked_pass: 4 };
    return asked < 4 ? { ...SOUND, running: true, bytes: asked } : { ...SOUND, passes: 4 };
  });
  const { reports } = await read([node], true);
  t.strictSame(asks, ['POST', 'GET', 'GET', 'GET']);
  t.equal(reports[0]?.answer?.passes, 4);
});

t.test('what is not known of a disk is said, and is never called sound', async (t) => {
  const still = { ...SOUND, running: true, paused: true };
  const nodes = [
    await nodeThat(t, () => ({ ...SOUND, enabled: false, passes: 0 })),
    await nodeThat(t, () => ({ ...SOUND, failure: 'ENOTDIR' })),
    await nodeThat(t, () => ({ ...SOUND, passes: 0 })),
    await nodeThat(t, () => null),
    { host: '127.0.0.1', port: 1 },
  ];
  const { reports } = await read(nodes);
  t.match(unprovenOf(DIGESTS, reports, []), [
    /node 2 does not check its disk/,
    /node 2 could not check its disk: ENOTDIR/,
    /node 2 has not checked its disk yet/,
    /its disk is not known: it answers 503/,
    /127\.0\.0\.1:1: its disk is not known: (ECONNREFUSED|bad port)/,
  ]);
  const paused = await nodeThat(t, () => ({ ...still, asked_pass: 9 }));
  const stuck = await nodeThat(t, () => ({ ...SOUND, running: true, asked_pass: 9 }));
  const late = await read([paused, stuck], true, 250);
  t.match(unprovenOf(DIGESTS, late.reports, []), [
    /its check stands still: the node is behind/,
    /it does not get on/,
  ]);
});

t.test('the report has every finding and every doubt, for people and programs', async (t) => {
  const findings = new Findings();
  for (let at = 0; at <= Findings.MAX; at += 1) findings.add(Check.State, `lock ${at}`, 'differs');
  const digests = { ...DIGESTS, alone: [4], silent: [5] };
  const streams = [{ nodeId: 3, report: null, reason: 'no longer kept' }];
  const unproven = unprovenOf(digests, null, streams);
  const report = { digests, scrubs: null, streams, findings, unproven };
  const lines = clusterLines(report).join('\n');
  t.match(lines, /^state: lock 0: differs\n {2}means: .*\n {2}do: /m);
  t.match(lines, /and 1 more/);
  t.match(lines, /not verified: node 5 does not answer/);
  t.match(lines, /not verified: node 4 was never seen at an index of another/);
  t.match(lines, /not verified: node 3, audit stream: no longer kept/);
  t.match(lines, new RegExp(`\n${Findings.MAX + 1} faults$`));
  t.match(clusterJson(report), { sound: false, findings_left_out: 1, scrubs: null });
  const doubt = clusterLines({ ...report, findings: new Findings() });
  t.equal(doubt.at(-1), 'no fault in what could be verified');
  const none = { ...DIGESTS, compared: [] };
  t.match(clusterLines({ ...report, digests: none })[0], /none could be compared/);
});

/**
 * The dashboard: cluster, locks with their queues, hot locks, live events, latency.
 *
 * Owns: what is shown and how often it is asked for. Read only, but for the form of force.ts where
 * the node takes it. Never: the network beyond the node that serves it. Loaded by: index.html.
 */

import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { browser, type Element } from './browser.js';
import { type Figure, figureBetween } from './figures.js';
import { ForceRelease } from './force.js';
import { html } from './markup.js';
import {
  type LiveEvent,
  LiveEvents,
  type Lock,
  type LockRow,
  type Rule,
  readLock,
  readLocks,
  readMetrics,
  readStatus,
  type Status,
} from './node.js';
import { Plot } from './plot.js';

const REFRESH_MS = 2_000;
const LOCKS_SHOWN = 50;
const EVENTS_SHOWN = 40;
const HOT_SHOWN = 8;
/** Hot locks are those with the most events among so many of the last ones. */
const HOT_EVENTS = 2_000;
const FIGURES_KEPT = 150;
const MS_PER_S = 1_000;
/** Causes and types of events that somebody should see. */
const SERIOUS: ReadonlySet<string> = new Set([
  ...['expired', 'session_expired', 'forced'],
  ...['disabled', 'refused', 'fenced', 'expelled'],
]);
const place = browser.document.getElementById('app');
const IS_ADMIN = place?.getAttribute('data-admin') === 'yes';

function secondsOf(ms: number): string {
  return `${(ms / MS_PER_S).toFixed(1)} s`;
}

function Header({ status, isLive }: { status: Status | null; isLive: boolean }) {
  const leader = status?.leader ?? null;
  const word = isLive ? 'live' : 'reconnecting';
  return html`<header>
    <h1>Holdfast</h1>
    <p>
      <span class=${isLive ? 'pill good' : 'pill bad'} id="live">${word}</span>
      <span class=${leader ? 'pill good' : 'pill bad'} id="leader">
        ${leader ? `node ${leader.node_id} leads` : 'no leader'}
      </span>
      <span class="pill">served by node ${status?.node ?? '…'}</span>
    </p>
  </header>`;
}

function Cards({ status }: { status: Status | null }) {
  const counters = status?.counters ?? {};
  const cards: [string, number | undefined][] = [
    ['leases', counters['leases']],
    ['waiting', counters['waits']],
    ['sessions', counters['sessions']],
    ['watches', counters['watches']],
    ['connections', counters['connections']],
    ['revision', status?.revision],
    ['term', status?.term],
    ['applied', status?.applied_index],
  ];
  return html`<section class="cards" aria-label="Counts">
    ${cards.map(
      ([name, value]) => html`<div class="card"><b>${value ?? '…'}</b><span>${name}</span></div>`,
    )}
  </section>`;
}

function Members({ status }: { status: Status | null }) {
  const members = status?.members ?? [];
  return html`<section>
    <h2>Nodes</h2>
    <table>
      <tr><th>node</th><th>address</th><th>role</th></tr>
      ${members.map(
        (each) => html`<tr>
          <td>${each.node_id}</td>
          <td>${each.address}</td>
          <td>${each.node_id === status?.leader?.node_id ? 'leader' : each.role}</td>
        </tr>`,
      )}
    </table>
  </section>`;
}

function LockLine({ lock, onOpen }: { lock: LockRow; onOpen: () => void }) {
  const { holder } = lock;
  return html`<tr>
    <td><button class="link" onClick=${onOpen}>${lock.name}</button></td>
    <td>${holder ? (holder.metadata ?? 'held') : 'free'}</td>
    <td class="number">${holder ? holder.fencing_token : ''}</td>
    <td class="number">${holder ? secondsOf(holder.expires_in_ms) : ''}</td>
    <td class="number">${lock.waiters}</td>
  </tr>`;
}

function Disabled({ rule }: { rule: Rule }) {
  const which = rule.is_prefix ? `every lock under '${rule.name}'` : 'this lock';
  return html`<p class="serious" id="disabled">
    No new acquires of ${which} since revision ${rule.revision}, by ${rule.asked_by}: ${rule.reason}
  </p>`;
}

function Queue({ lock, onClose }: { lock: Lock; onClose: () => void }) {
  const { holder, queue, disabled, cluster_time: now } = lock;
  return html`<aside id="queue">
    <h3>${lock.name} <button class="link" onClick=${onClose}>close</button></h3>
    <p>
      ${
        holder
          ? `held with token ${holder.fencing_token} for ${secondsOf(now - holder.since)}` +
            `${holder.metadata ? ` by ${holder.metadata}` : ''}`
          : 'free'
      }
    </p>
    ${disabled === null ? '' : html`<${Disabled} rule=${disabled} />`}
    <${ForceRelease} key=${lock.name} lock=${lock} isAdmin=${IS_ADMIN} />
    <ol>
      ${queue.map(
        (waiter) => html`<li>
          ${waiter.metadata ?? `place ${waiter.place}`}: waits for ${secondsOf(now - waiter.since)},
          at most ${secondsOf(waiter.until - now)} more
        </li>`,
      )}
    </ol>
    ${queue.length === 0 ? html`<p class="quiet">Nobody waits.</p>` : ''}
  </aside>`;
}

function Locks() {
  const [prefix, setPrefix] = useState('');
  const [rows, setRows] = useState<readonly LockRow[]>([]);
  const [hasMore, setHasMore] = useState(false);
  const [open, setOpen] = useState('');
  const [lock, setLock] = useState<Lock | null>(null);
  useEffect(() => {
    const look = async (isWanted: () => boolean): Promise<void> => {
      const page = await readLocks(prefix, LOCKS_SHOWN);
      const opened = open === '' ? null : await readLock(open);
      if (!isWanted()) return;
      setRows(page.locks);
      setHasMore(page.next_cursor !== null);
      setLock(opened);
    };
    return repeated(look);
  }, [prefix, open]);
  const onInput = (event: { currentTarget: { value: string } }): void => {
    setPrefix(event.currentTarget.value);
  };
  return html`<section class="wide">
    <h2>Locks</h2>
    <label>prefix <input id="prefix" value=${prefix} onInput=${onInput} /></label>
    <div class="scroll">
      <table id="locks">
        <tr><th>name</th><th>holder</th><th>token</th><th>ends in</th><th>waiting</th></tr>
        ${rows.map(
          (row) =>
            html`<${LockLine} lock=${row} key=${row.name} onOpen=${() => setOpen(row.name)} />`,
        )}
      </table>
    </div>
    ${rows.length === 0 ? html`<p class="quiet">No lock is held or waited for.</p>` : ''}
    ${hasMore ? html`<p class="quiet">There are more: give a longer prefix.</p>` : ''}
    ${lock ? html`<${Queue} lock=${lock} onClose=${() => setOpen('')} />` : ''}
  </section>`;
}

const LOCK_EVENTS: ReadonlySet<string> = new Set(['granted', 'ended', 'queued', 'left']);

/** The lock, or `jobs/*` where it is a prefix. */
function subjectOf({ name, type, place: isPrefix }: LiveEvent): string {
  return isPrefix === 1 && (type === 'disabled' || type === 'enabled') ? `${name}*` : name;
}

function isSerious({ type, cause }: LiveEvent): boolean {
  return SERIOUS.has(type) || SERIOUS.has(cause ?? '');
}

function HotLocks({ events }: { events: readonly LiveEvent[] }) {
  const counts = new Map<string, number>();
  for (const { name, type } of events) {
    if (LOCK_EVENTS.has(type)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const hot = [...counts].sort((left, right) => right[1] - left[1]).slice(0, HOT_SHOWN);
  return html`<section>
    <h2>Hot locks</h2>
    <table id="hot">
      <tr><th>name</th><th>events</th></tr>
      ${hot.map(([name, count]) => html`<tr><td>${name}</td><td class="number">${count}</td></tr>`)}
    </table>
  </section>`;
}

function Events({ events }: { events: readonly LiveEvent[] }) {
  return html`<section>
    <h2>Live events</h2>
    <ul id="events">
      ${events.slice(0, EVENTS_SHOWN).map(
        (event) => html`<li key=${event.revision}>
          <span class="quiet">${event.revision}</span>
          <span class=${isSerious(event) ? 'serious' : ''}>
            ${event.type}${event.cause ? ` (${event.cause})` : ''}
          </span>
          ${subjectOf(event)}
        </li>`,
      )}
    </ul>
  </section>`;
}

function Plots({ figures }: { figures: readonly Figure[] }) {
  const latency = useRef<Element>(null);
  const rate = useRef<Element>(null);
  const plots = useRef<{ latency: Plot; rate: Plot } | null>(null);
  useEffect(() => {
    if (latency.current === null || rate.current === null) return;
    plots.current ??= {
      latency: new Plot(latency.current, 'HTTP answers on this node, ms', [
        { label: 'p50', colour: '#2f81d7' },
        { label: 'p99', colour: '#d9822b' },
      ]),
      rate: new Plot(rate.current, 'operations applied, a second', [
        { label: 'ops/s', colour: '#2e9e6b' },
      ]),
    };
    const at = figures.map((figure) => figure.atS);
    const p50 = figures.map((figure) => figure.p50Ms);
    const p99 = figures.map((figure) => figure.p99Ms);
    plots.current.latency.show([at, p50, p99]);
    plots.current.rate.show([at, figures.map((figure) => figure.opsPerSecond)]);
  }, [figures]);
  return html`<section class="wide plots">
    <div ref=${latency} id="latency"></div>
    <div ref=${rate} id="rate"></div>
  </section>`;
}

/**
 * Calls `look` now and again and again; returns how to stop. What fails is asked again. A look that
 * ends after the stop is not wanted any more: it would show what was asked for before.
 */
function repeated(look: (isWanted: () => boolean) => Promise<void>): () => void {
  let isOver = false;
  const go = async (): Promise<void> => {
    try {
      await look(() => !isOver);
    } catch {
      // The node is away or has no leader: the header says so, the next look may succeed.
    }
    if (!isOver) setTimeout(() => void go(), REFRESH_MS);
  };
  void go();
  return () => {
    isOver = true;
  };
}

function App() {
  const [status, setStatus] = useState<Status | null>(null);
  const [isLive, setIsLive] = useState(false);
  const [events, setEvents] = useState<readonly LiveEvent[]>([]);
  const [figures, setFigures] = useState<readonly Figure[]>([]);
  useEffect(() => repeated(async () => setStatus(await readStatus())), []);
  useEffect(() => {
    const onEvent = (event: LiveEvent): void => {
      setEvents((known) => [event, ...known].slice(0, HOT_EVENTS));
    };
    const live = new LiveEvents(onEvent, setIsLive);
    return () => live.close();
  }, []);
  useEffect(() => {
    let before: Map<string, number> | null = null;
    let beforeMs = 0;
    return repeated(async () => {
      const after = await readMetrics();
      const nowMs = Date.now();
      if (before !== null) {
        const seconds = (nowMs - beforeMs) / MS_PER_S;
        const figure = figureBetween(before, after, seconds, nowMs / MS_PER_S);
        setFigures((known) => [...known, figure].slice(-FIGURES_KEPT));
      }
      before = after;
      beforeMs = nowMs;
    });
  }, []);
  return html`<${Header} status=${status} isLive=${isLive} />
    <main>
      <${Cards} status=${status} />
      <${Locks} />
      <${Members} status=${status} />
      <${HotLocks} events=${events} />
      <${Events} events=${events} />
      <${Plots} figures=${figures} />
    </main>`;
}

if (place !== null) render(html`<${App} />`, place as unknown as Parameters<typeof render>[1]);

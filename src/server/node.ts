/**
 * One node, put together: log, peer port, founding, replica, client port.
 *
 * Owns: the order in which the parts start and stop, and the wires between them. Never: what a part
 * does. The peer port opens before founding, since founding happens on it; the client port opens
 * last, when the replica can answer. Used by: server/main.ts.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { OPERATION_VERSION, PRINCIPAL_BUILT_IN } from '../core/locks/command.js';
import type { SettingName } from '../core/locks/settings.js';
import type { Message } from '../core/raft/message.js';
import type { ConnectionHandlers } from '../io/client-socket.js';
import { MonotonicClock } from '../io/clock.js';
import { SystemEntropy } from '../io/entropy.js';
import { type DoorReplica, HttpDoor } from '../io/http/http-door.js';
import { type OpenedLogPort, openLog } from '../io/log/log.js';
import { PeerLinks } from '../io/peers/peer-links.js';
import { PeerServer } from '../io/peers/peer-server.js';
import { SnapshotLender } from '../io/snapshots/lender.js';
import { TcpServer } from '../io/tcp-server.js';
import { TurnScheduler } from '../io/turn.js';
import { READY_AGE_MS_MAX, SCRUB_BEHIND_ENTRIES, SCRUB_BEHIND_MS, TICK_MS } from '../limits.js';
import type { Logger } from '../observe/logger.js';
import { Metrics } from '../observe/metrics.js';
import { DEFAULT_POLICY } from '../replica/compaction-state.js';
import type { FetchedSnapshot } from '../replica/ports.js';
import { Replica } from '../replica/replica.js';
import { encodeFounding, type FoundingRecord } from '../wire/founding.js';
import { WorkerPool } from '../workers/pool.js';
import { dashboardAssets } from './dashboard.js';
import { figuresOf, type Surroundings } from './figures.js';
import { Founding, FoundingRefused, type FoundingStore, hexOf } from './founding.js';
import { PeerFounding, readRecord } from './founding-peers.js';
import { NodeHistory } from './history.js';
import { formatEndpoint, type MemberAddress, type ServeOptions } from './options.js';
import { PeerContacts } from './peer-contacts.js';
import { NodeScrub } from './scrub.js';
import { NodeSnapshots } from './snapshots.js';
import type { SpanExport } from './span-export.js';
import { restoreStart } from './start-state.js';
import { TracedReplica, tracedLog } from './traced-replica.js';
import { TracedRequests } from './traced-requests.js';
import { readVersion } from './version.js';

/** A leader that is told to end gets this long to hand over before its clients are let go. */
const HAND_OVER_MS_MAX = 2_000;
const HAND_OVER_LOOK_MS = 10;
const SEED_MAX = 2 ** 31;

export interface RunningNode {
  /** 16 bytes. */
  readonly clusterId: Uint8Array;
  /** Hands leadership over, ends connections, closes the log. Idempotent. */
  close(): Promise<void>;
}

/** Parts that are open, closed in the reverse order. */
class OpenParts {
  private readonly closers: (() => Promise<void> | void)[] = [];

  add(close: () => Promise<void> | void): void {
    this.closers.push(close);
  }

  async close(): Promise<void> {
    for (let close = this.closers.pop(); close !== undefined; close = this.closers.pop()) {
      await close();
    }
  }
}

/**
 * Starts a node; resolves when it serves clients. Rejects with LogError, FoundingRefused, the
 * system's error of a port, or the reason of `stop`; what was opened is closed again.
 */
export async function startNode(
  options: ServeOptions,
  logger: Logger,
  stop: AbortSignal,
): Promise<RunningNode> {
  const parts = new OpenParts();
  try {
    const opened = await openNodeLog(options, logger);
    parts.add(() => opened.log.close());
    const { founding, server } = await openPeerPort(options, opened, logger, stop);
    parts.add(() => server.close());
    const record = await founding.run();
    stop.throwIfAborted();
    warnOfSettings(options, record, logger);
    const { dataFolder } = options;
    const { firstIndex } = opened.state;
    const from = { dataFolder, snapshot: opened.snapshot, firstIndex, hashSeeds: drawSeeds() };
    const start = restoreStart(from, logger);
    const spans = await openSpans(options, record, logger);
    if (spans !== null) parts.add(() => spans.close());
    const node = new Node(options, { opened, record, server, start, spans, logger });
    parts.add(() => node.close());
    await node.open();
    return { clusterId: record.clusterId, close: () => parts.close() };
  } catch (error) {
    await parts.close();
    throw error;
  }
}

function openNodeLog(options: ServeOptions, logger: Logger): Promise<OpenedLogPort> {
  // Stays the last line when a damaged file makes LMDB abort the process.
  logger.info({ data: options.dataFolder }, 'opening the log');
  return openLog({
    folder: options.dataFolder,
    nodeId: options.nodeId,
    onFatal: (reason) => logger.fatal({ reason }, 'the log has failed; this node ends'),
    onNote: (text) => logger.info({}, text),
  });
}

/** Where spans go; null when nobody takes them: then the SDK is not even loaded. */
async function openSpans(
  { spansUrl: url, nodeId }: ServeOptions,
  { clusterId }: FoundingRecord,
  logger: Logger,
): Promise<SpanExport | null> {
  if (url === null) return null;
  const { SpanExport: Export } = await import('./span-export.js');
  return new Export({ url, nodeId, clusterId: hexOf(clusterId), version: readVersion(), logger });
}

/** Two u32 that place records in this life's indexes. */
function drawSeeds(): Uint32Array {
  return Uint32Array.of(randomInt(SEED_MAX), randomInt(SEED_MAX));
}

/** Opens the peer port, on which this node is asked who it is, and prepares its founding. */
async function openPeerPort(
  options: ServeOptions,
  opened: OpenedLogPort,
  logger: Logger,
  stop: AbortSignal,
): Promise<{ founding: Founding; server: PeerServer }> {
  const { log, identity } = opened;
  const store: FoundingStore = {
    nodeId: options.nodeId,
    diskId: identity.diskId,
    record: identity.founding === null ? null : readRecord(identity.founding),
    store: (record) => log.storeFounding(encodeFounding(record)),
  };
  const founding = new Founding(store, new PeerFounding(), {
    members: options.members,
    bootstrap: options.bootstrap,
    settings: options.settings,
    drawClusterId: () => randomBytes(16),
    pause: (ms) => delay(ms, undefined, { signal: stop }),
    logger,
  });
  const server = new PeerServer({
    ...options.peer,
    nodeId: options.nodeId,
    founding: {
      identity: () => {
        const { record } = founding;
        const { nodeId } = options;
        return { nodeId, diskId: identity.diskId, founding: record && encodeFounding(record) };
      },
      accept: (bytes) => founding.accept(readRecord(bytes)),
    },
    onNote: (text) => logger.warn({}, text),
  });
  await server.listen();
  return { founding, server };
}

/** Settings that were asked for and are not those of the founding do nothing: say so. */
function warnOfSettings(options: ServeOptions, record: FoundingRecord, logger: Logger): void {
  for (const [name, wanted] of Object.entries(options.settings)) {
    const founded = record.settings[name as SettingName];
    if (founded === wanted) continue;
    logger.warn({ name, wanted, founded }, 'the setting was fixed at the founding');
  }
}

/** The addresses of the founded members, by node id. */
function joinAddresses(record: FoundingRecord, options: ServeOptions): MemberAddress[] {
  return record.members.map(({ nodeId }) => {
    const address = options.members.find((member) => member.nodeId === nodeId);
    if (address !== undefined) return address;
    throw new FoundingRefused(`Node ${nodeId} is a member and --peers does not name it.`);
  });
}

/** What a node is made of beside its options. */
interface NodeParts {
  readonly opened: OpenedLogPort;
  readonly record: FoundingRecord;
  readonly server: PeerServer;
  readonly start: FetchedSnapshot | null;
  readonly spans: SpanExport | null;
  readonly logger: Logger;
}

/** What connections are handed to; `traced` looks on where spans are made. */
function handlersOf(asked: DoorReplica, traced: TracedRequests | null): ConnectionHandlers {
  return {
    onOpen: (connection) => asked.connectionOpened(connection),
    onFrame: (connection, bytes, start, end) => asked.receive(connection, bytes, start, end),
    ...(traced === null ? {} : { onFlush: (connection) => traced.onFlush(connection) }),
    onClose: (connection) => asked.connectionClosed(connection),
  };
}

/** The parts of a founded node and the wires between them. */
class Node {
  private readonly replica: Replica;
  private readonly turn = new TurnScheduler(() => this.runTurn());
  private readonly links: PeerLinks;
  private readonly clients: TcpServer;
  private readonly history: NodeHistory;
  private readonly snapshots: NodeSnapshots;
  private readonly scrub: NodeScrub;
  private readonly metrics = new Metrics(() => figuresOf(this.replica, this.surroundings()));
  private readonly contacts = new PeerContacts(() => performance.now());
  private readonly door: HttpDoor | null;
  /** Null when this node sends spans nowhere. */
  private readonly traced: TracedRequests | null;
  private ticker: NodeJS.Timeout | null = null;
  private readonly nodeId: number;
  private readonly version = readVersion();
  private readonly opened: OpenedLogPort;
  private readonly server: PeerServer;
  private readonly spans: SpanExport | null;

  constructor(options: ServeOptions, parts: NodeParts) {
    const { nodeId } = options;
    const { opened, record, server, start, spans, logger } = parts;
    this.nodeId = nodeId;
    this.opened = opened;
    this.server = server;
    this.spans = spans;
    const nowMs = (): number => performance.now();
    const traced = spans === null ? null : new TracedRequests({ sink: spans, nowMs });
    this.traced = traced;
    const { clusterId, settings } = record;
    const addresses = joinAddresses(record, options);
    this.links = new PeerLinks({
      nodeId,
      diskId: opened.identity.diskId,
      clusterId,
      featureLevel: OPERATION_VERSION,
      members: record.members.map((member, at) => ({ ...member, ...addresses[at]!.peer })),
      server,
      onMessage: (message) => this.onMessage(message),
      onNote: (text) => logger.info({}, text),
    });
    server.lender = new SnapshotLender(options.dataFolder, start?.index ?? 0);
    server.onSnapshotWanted = (leastIndex) => this.replica.wantSnapshot(leastIndex);
    const pool = new WorkerPool();
    const { dataFolder } = options;
    this.history = this.openHistory(options, record, pool, logger);
    this.snapshots = new NodeSnapshots(
      {
        dataFolder,
        clusterId,
        settings,
        hashSeeds: drawSeeds(),
        log: opened.log,
        pool,
        lender: server.lender,
        history: this.history,
        hello: this.links.hello,
        addressOf: (peer) => addresses.find((member) => member.nodeId === peer)?.peer ?? null,
        logger,
      },
      {
        onDraft: (draft) => this.replica.onDraft(draft),
        onKept: (index, firstIndex) => this.replica.onKept(index, firstIndex),
        onDiscarded: () => this.replica.onDiscarded(),
        onFetched: (snapshot) => this.replica.onFetched(snapshot),
      },
    );
    this.replica = new Replica({
      shard: 0,
      nodeId,
      clusterId,
      members: addresses.map((member) => ({
        nodeId: member.nodeId,
        client: formatEndpoint(member.client),
      })),
      settings,
      featureLevel: OPERATION_VERSION,
      seed: randomInt(SEED_MAX),
      log: traced === null ? opened.log : tracedLog(opened.log, traced),
      logState: opened.state,
      snapshots: this.snapshots,
      history: this.history,
      compaction: { ...DEFAULT_POLICY, ...options.compaction },
      start,
      peers: this.links,
      clock: new MonotonicClock(),
      entropy: new SystemEntropy(),
      turn: this.turn,
    });
    opened.log.setEvents(this.replica);
    const asked = traced === null ? this.replica : new TracedReplica(this.replica, traced);
    const handlers = handlersOf(asked, traced);
    this.clients = new TcpServer({ ...options.client, principal: PRINCIPAL_BUILT_IN, handlers });
    this.scrub = this.openScrub(options, logger);
    this.door = this.openDoor(options, asked, handlers);
  }

  private onMessage(message: Message): void {
    this.contacts.onHeard(message.from);
    this.replica.onMessage(message);
  }

  private runTurn(): void {
    this.traced?.onTurn();
    this.replica.turn();
  }

  private onTick(): void {
    this.traced?.onTurn();
    this.replica.onTick();
  }

  private surroundings(): Surroundings {
    const { opened, history, scrub, spans, traced, contacts, version } = this;
    const counts = spans?.counts ?? null;
    return {
      freeMib: opened.log.freeMiB(),
      historyBytes: history.bytes,
      isHistoryGivenUp: history.isGivenUp,
      spans: counts && { ...counts, dropped: counts.dropped + (traced?.unfollowed ?? 0) },
      silencesMs: contacts.silencesMs(),
      version,
      scrub: scrub.status,
    };
  }

  private openScrub({ dataFolder, scrub }: ServeOptions, logger: Logger): NodeScrub {
    return new NodeScrub({
      dataFolder,
      ...scrub,
      seal: () => this.opened.log.seal(),
      isBehind: () => this.isBehind(),
      logger,
    });
  }

  /** True while this node has work that its disk and processor should not be taken from. */
  private isBehind(): boolean {
    const { replica, snapshots } = this;
    const { isServing, leaderId, ageMs } = replica.health();
    if (!isServing && (leaderId === 0 || ageMs > READY_AGE_MS_MAX)) return true;
    if (snapshots.isBusy || replica.pendingAgeMs > SCRUB_BEHIND_MS) return true;
    const { commitIndex, appliedIndex } = replica.status();
    return commitIndex - appliedIndex > SCRUB_BEHIND_ENTRIES;
  }

  private openHistory(
    { dataFolder, historyBytesMax: bytesMax }: ServeOptions,
    { clusterId, settings }: FoundingRecord,
    pool: WorkerPool,
    logger: Logger,
  ): NodeHistory {
    const { log } = this.opened;
    return new NodeHistory(
      { dataFolder, clusterId, settings, log, pool, bytesMax, logger },
      { onHistory: (readId, page) => this.replica.onHistory(readId, page) },
    );
  }

  private openDoor(
    options: ServeOptions,
    replica: DoorReplica,
    handlers: ConnectionHandlers,
  ): HttpDoor | null {
    if (options.http === null) return null;
    return new HttpDoor({
      ...options.http,
      nodeId: options.nodeId,
      version: this.version,
      names: [options.http.host, ...options.httpNames],
      replica,
      handlers,
      meter: this.metrics,
      scrub: this.scrub,
      assets: dashboardAssets(options.dashboardAdmin),
    });
  }

  async open(): Promise<void> {
    await this.clients.listen();
    await this.door?.listen();
    this.links.start();
    this.ticker = setInterval(() => this.onTick(), TICK_MS);
    this.turn.soon();
    this.scrub.start();
  }

  async close(): Promise<void> {
    if (this.ticker !== null) await this.handOver();
    this.door?.close();
    this.metrics.close();
    await this.clients.close();
    if (this.ticker !== null) clearInterval(this.ticker);
    this.turn.close();
    this.links.close();
    this.server.lender = null;
    this.history.close();
    this.scrub.close();
    await this.snapshots.close();
  }

  /** Lets another node lead before this one goes, so that clients see no election time-out. */
  private async handOver(): Promise<void> {
    this.replica.beginShutdown();
    const started = performance.now();
    while (this.replica.leaderId === this.nodeId) {
      if (performance.now() - started > HAND_OVER_MS_MAX) return;
      await delay(HAND_OVER_LOOK_MS);
    }
  }
}

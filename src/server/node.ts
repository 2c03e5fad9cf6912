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
import type { ConnectionHandlers } from '../io/client-socket.js';
import { MonotonicClock } from '../io/clock.js';
import { SystemEntropy } from '../io/entropy.js';
import { HttpDoor } from '../io/http/http-door.js';
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
import { type DiskFigures, figuresOf } from './figures.js';
import { Founding, FoundingRefused, type FoundingStore } from './founding.js';
import { PeerFounding, readRecord } from './founding-peers.js';
import { NodeHistory } from './history.js';
import { formatEndpoint, type MemberAddress, type ServeOptions } from './options.js';
import { NodeScrub } from './scrub.js';
import { NodeSnapshots } from './snapshots.js';
import { restoreStart } from './start-state.js';
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
    const node = new Node(options, opened, record, server, start, logger);
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

/** The parts of a founded node and the wires between them. */
class Node {
  private readonly replica: Replica;
  private readonly turn = new TurnScheduler(() => this.replica.turn());
  private readonly links: PeerLinks;
  private readonly clients: TcpServer;
  private readonly history: NodeHistory;
  private readonly snapshots: NodeSnapshots;
  private readonly scrub: NodeScrub;
  private readonly metrics = new Metrics(() => figuresOf(this.replica, this.disk()));
  private readonly door: HttpDoor | null;
  private ticker: NodeJS.Timeout | null = null;
  private readonly nodeId: number;

  constructor(
    options: ServeOptions,
    private readonly opened: OpenedLogPort,
    record: FoundingRecord,
    private readonly server: PeerServer,
    start: FetchedSnapshot | null,
    logger: Logger,
  ) {
    const { nodeId } = options;
    this.nodeId = nodeId;
    const { clusterId, settings } = record;
    const addresses = joinAddresses(record, options);
    this.links = new PeerLinks({
      nodeId,
      diskId: opened.identity.diskId,
      clusterId,
      featureLevel: OPERATION_VERSION,
      members: record.members.map((member, at) => ({ ...member, ...addresses[at]!.peer })),
      server,
      onMessage: (message) => this.replica.onMessage(message),
      onNote: (text) => logger.info({}, text),
    });
    server.lender = new SnapshotLender(options.dataFolder, start?.index ?? 0);
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
      log: opened.log,
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
    const handlers: ConnectionHandlers = {
      onOpen: (connection) => this.replica.connectionOpened(connection),
      onFrame: (connection, bytes, start, end) =>
        this.replica.receive(connection, bytes, start, end),
      onClose: (connection) => this.replica.connectionClosed(connection),
    };
    this.clients = new TcpServer({ ...options.client, principal: PRINCIPAL_BUILT_IN, handlers });
    this.scrub = new NodeScrub({
      dataFolder,
      ...options.scrub,
      seal: () => opened.log.seal(),
      isBehind: () => this.isBehind(),
      logger,
    });
    this.door = this.openDoor(options, handlers);
  }

  private disk(): DiskFigures {
    const { history, scrub } = this;
    return {
      freeMib: this.opened.log.freeMiB(),
      historyBytes: history.bytes,
      scrub: scrub.status,
    };
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

  private openDoor(options: ServeOptions, handlers: ConnectionHandlers): HttpDoor | null {
    if (options.http === null) return null;
    return new HttpDoor({
      ...options.http,
      nodeId: options.nodeId,
      version: readVersion(),
      names: [options.http.host, ...options.httpNames],
      replica: this.replica,
      handlers,
      meter: this.metrics,
      scrub: this.scrub,
      assets: dashboardAssets(),
    });
  }

  async open(): Promise<void> {
    await this.clients.listen();
    await this.door?.listen();
    this.links.start();
    this.ticker = setInterval(() => this.replica.onTick(), TICK_MS);
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

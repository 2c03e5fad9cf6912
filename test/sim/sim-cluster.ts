/**
 * The production replica, once for each node, over simulated devices.
 *
 * Owns: nodes that can crash, restart, pause, lose or damage their disk, and the gate at the hello.
 * Never: rules of the product; this is wiring. Used by: the scenarios of the simulator, its tests.
 */
import type { LockMachine } from '../../src/core/locks/lock-machine.js';
import { defaultSettings, type Settings } from '../../src/core/locks/settings.js';
import { Role } from '../../src/core/raft/effects.js';
import type { Entry, Message } from '../../src/core/raft/message.js';
import { FailedWrite } from '../../src/io/failed-write.js';
import { LogError } from '../../src/io/log/log-error.js';
import { judgeHello, type Membership } from '../../src/io/peers/membership.js';
import { openSnapshots } from '../../src/io/snapshots/snapshot-folder.js';
import { SNAPSHOT_CHUNK_BYTES, TICK_MS } from '../../src/limits.js';
import { type CompactionPolicy, DEFAULT_POLICY } from '../../src/replica/compaction-state.js';
import type { FetchedSnapshot, SnapshotEvents } from '../../src/replica/ports.js';
import { Replica } from '../../src/replica/replica.js';
import { restoreStart } from '../../src/server/start-state.js';
import { PEER_VERSION, PeerVerdict } from '../../src/wire/peer.js';
import { DeviceError, PowerCut } from './devices/media.js';
import { Ledger } from './ledger.js';
import { SimDisk } from './sim-disk.js';
import { SimLender } from './sim-lender.js';
import { type OpenedSimLog, openSimLog, type SimLog } from './sim-log.js';
import { SimNetwork } from './sim-network.js';
import { SimSnapshots } from './sim-snapshots.js';
import type { World } from './world.js';

const US_PER_MS = 1_000;
const TURN_COST_US = 5;
/** The lender's clock: its bound on how long a snapshot stays is longer than a run. */
const LENDER_MS_PER_US = 0.02;
const CLUSTER_ID = new Uint8Array(16).fill(7);

/** The private parts of a replica that the simulator listens to. */
interface ReplicaParts {
  readonly machine: LockMachine;
  readonly raft: {
    readonly role: number;
    readonly term: number;
    readonly commitIndex: number;
    entryAt(index: number): Entry | undefined;
  };
}

/** One node: a disk that stays, and a replica that lives until it crashes. */
export class SimNode {
  readonly disk = new SimDisk();
  replica: Replica | null = null;
  log: SimLog | null = null;
  snapshots: SimSnapshots | null = null;
  lender: SimLender | null = null;
  /** Index of the snapshot that its last start went on from, 0 for none. */
  startedFrom = 0;
  /** Rises with each start: what was asked by an earlier life is not done. */
  life = 0;
  isPaused = false;
  /** What came while it was paused, in order. */
  readonly inbox: (() => void)[] = [];
  /** Rate of this node's clock: 1 is true time. */
  clockRate = 1;
  /** Of the disk that it has now. */
  diskId: Uint8Array = new Uint8Array(0);
  /** The disk was replaced by an empty one, or damaged: it is out of the cluster for good. */
  isWiped = false;
  isDamaged = false;
  /** What it lends of its snapshot is changed, with checksums that fit. */
  isRotten = false;
  /** Why it did not start, '' when it did. */
  refusal = '';

  parts: ReplicaParts | null = null;
  /** What it led and had committed after its last turn. */
  private ledBefore = 0;
  private committedBefore = 0;

  constructor(readonly nodeId: number) {}

  /** The parts of the replica that it has now. */
  adopt(replica: Replica): ReplicaParts {
    this.replica = replica;
    this.parts = Reflect.get(replica, 'state') as ReplicaParts;
    return this.parts;
  }

  /** The term that it leads now, serving already or not; 0 when it leads none. */
  get ledTerm(): number {
    const { parts } = this;
    if (this.replica === null || parts === null) return 0;
    return parts.raft.role === Role.Leader ? parts.raft.term : 0;
  }

  /**
   * Called after each turn. False: it leads, and committed up to an entry of another term than its
   * own, which Raft forbids even where a majority has that entry (§5.4.2, figure 8).
   */
  isCommitOwn(): boolean {
    const { ledTerm, ledBefore, committedBefore } = this;
    const committed = this.parts?.raft.commitIndex ?? 0;
    this.ledBefore = ledTerm;
    this.committedBefore = committed;
    if (ledTerm === 0 || ledTerm !== ledBefore || committed === committedBefore) return true;
    const entry = this.parts?.raft.entryAt(committed);
    return entry === undefined || entry.term === ledTerm;
  }

  get isRuined(): boolean {
    return this.isWiped || this.isDamaged;
  }
}

export interface SimClusterOptions {
  readonly nodes?: number;
  readonly settings?: Partial<Settings>;
  readonly segmentBytesMax?: number;
  readonly compaction?: CompactionPolicy;
  /** Bytes after which a chunk of a snapshot is closed. */
  readonly chunkBytes?: number;
}

interface OpenedNode extends OpenedSimLog {
  readonly start: FetchedSnapshot | null;
}

export class SimCluster {
  readonly nodes: SimNode[] = [];
  readonly network: SimNetwork;
  readonly ledger: Ledger;
  readonly settings: Settings;
  readonly problems: string[] = [];
  /** Snapshots that came to count, made and fetched, fetches that failed, and failed syncs. */
  readonly counts = { kept: 0, fetched: 0, cut: 0, 'failed syncs': 0 };
  /** Told of what happens to nodes, for traces. */
  onNote: (text: string) => void = () => undefined;
  /** A node begins a step of a snapshot's job. */
  onSnapshotStep: (node: SimNode, kind: string) => void = () => undefined;
  /** Disk ids of the founding record. */
  private readonly foundingDisks = new Map<number, Uint8Array>();
  private readonly verdicts = new Map<string, boolean>();

  constructor(
    readonly world: World,
    private readonly options: SimClusterOptions = {},
  ) {
    this.settings = { ...defaultSettings(), ...options.settings };
    const count = options.nodes ?? 5;
    this.ledger = new Ledger(Math.floor(count / 2) + 1, () => world.nowUs);
    this.network = new SimNetwork(world, {
      isWelcome: (from, to) => this.isWelcome(this.node(from), this.node(to)),
      deliver: (message) => this.deliver(message),
    });
    for (let id = 1; id <= count; id += 1) this.nodes.push(new SimNode(id));
    for (const node of this.nodes) {
      node.disk.segmentBytesMax = options.segmentBytesMax ?? node.disk.segmentBytesMax;
      node.disk.media.onDeviceError = () => this.onDeviceError(node);
      this.start(node);
      this.foundingDisks.set(node.nodeId, node.diskId);
    }
  }

  node(nodeId: number): SimNode {
    return this.nodes[nodeId - 1] as SimNode;
  }

  /** The node that serves now, or undefined. */
  serving(): SimNode | undefined {
    return this.nodes.find((node) => node.replica?.isServing === true && !node.isPaused);
  }

  /** Nodes with the disk that the cluster was founded with, whole. */
  get sound(): SimNode[] {
    return this.nodes.filter((node) => !node.isRuined);
  }

  /** Starts a node that does not run. It refuses to, and stays down, when its disk is damaged. */
  start(node: SimNode): void {
    if (node.replica !== null) return;
    const opened = this.open(node);
    if (opened === null) return;
    node.life += 1;
    node.diskId = opened.diskId;
    this.run(node, opened);
  }

  /** The node ends at once, at whatever it is doing: its process alone, or the power is gone. */
  crash(node: SimNode, isPowerLost = this.world.chance(0.5)): void {
    if (node.replica === null) return;
    node.log?.crash();
    node.snapshots?.crash();
    if (isPowerLost) node.disk.media.losePower(this.world.prng);
    node.log = null;
    node.snapshots = null;
    node.lender = null;
    node.replica = null;
    node.isPaused = false;
    node.inbox.length = 0;
  }

  /** Stops a node's process; what comes to it waits. */
  pause(node: SimNode): void {
    if (node.replica !== null) node.isPaused = true;
  }

  /** Lets it go on: it sees all that has waited at once. */
  resume(node: SimNode): void {
    if (!node.isPaused) return;
    node.isPaused = false;
    for (const handle of node.inbox.splice(0)) handle();
  }

  /** Carries out `handle` in this life of the node, as soon as the node is not paused. */
  whenAwake(node: SimNode, handle: () => void): void {
    if (node.replica === null) return;
    if (node.isPaused) node.inbox.push(handle);
    else handle();
  }

  /** Forgets what the simulated disks hold. */
  close(): void {
    for (const node of this.nodes) node.disk.media.forget();
  }

  /** I10: a node whose device refused a write or a sync ends; a paused one when it goes on. */
  private onDeviceError(node: SimNode): void {
    const { life } = node;
    this.counts['failed syncs'] += 1;
    // Not from within: it is in the middle of what has failed. A start is judged by open.
    this.world.after(0, () => {
      this.whenAwake(node, () => {
        if (node.life !== life) return;
        this.problems.push(`I10: node ${node.nodeId} goes on after a write of it has failed`);
      });
    });
  }

  private open(node: SimNode): OpenedNode | null {
    const { media } = node.disk;
    const { deviceErrors } = media;
    node.refusal = '';
    try {
      const opened = this.openDisk(node);
      if (media.deviceErrors > deviceErrors) {
        this.problems.push(`I10: node ${node.nodeId} starts though a write of it has failed`);
      }
      return opened;
    } catch (error) {
      // Its process has ended at once.
      if (error instanceof DeviceError || error instanceof FailedWrite) return null;
      if (error instanceof PowerCut) return null;
      if (!(error instanceof LogError)) throw error;
      node.refusal = error.message;
      if (!node.isDamaged) {
        this.problems.push(`storage: node ${node.nodeId} refused a sound disk: ${error.message}`);
      }
      return null;
    }
  }

  /** In the order of server/node.ts: snapshots, log, then the state that both give. */
  private openDisk(node: SimNode): OpenedNode {
    const { world } = this;
    const { folder } = node.disk;
    const note = (text: string): void => this.onNote(`node ${node.nodeId}: ${text}`);
    const snapshot = openSnapshots(folder, note);
    const opened = openSimLog(world, node.disk, node.nodeId, snapshot);
    const { firstIndex } = opened.state;
    const from = { dataFolder: folder, snapshot, firstIndex, hashSeeds: this.drawSeeds() };
    const start = restoreStart(from, { info: () => undefined }, () => 0);
    node.startedFrom = start?.index ?? 0;
    return { ...opened, start };
  }

  private drawSeeds(): Uint32Array {
    return Uint32Array.of(this.world.prng.nextU32(), this.world.prng.nextU32());
  }

  private run(node: SimNode, opened: OpenedNode): void {
    const { world } = this;
    const { life } = node;
    const { log, state: logState, start } = opened;
    const isAlive = (): boolean => node.life === life && node.replica !== null;
    let isTurnWished = false;
    const runTurn = (): void => {
      if (!isAlive()) return;
      this.whenAwake(node, () => {
        isTurnWished = false;
        node.replica?.turn();
        if (!node.isCommitOwn()) {
          this.problems.push(`raft: node ${node.nodeId} committed another's term by counting`);
        }
      });
    };
    const soon = (): void => {
      if (isTurnWished) return;
      isTurnWished = true;
      world.after(TURN_COST_US, runTurn);
    };
    const snapshots = this.openSnapshots(node, log, isAlive, start);
    const replica = new Replica({
      shard: 0,
      nodeId: node.nodeId,
      clusterId: CLUSTER_ID,
      members: this.nodes.map((each) => ({ nodeId: each.nodeId, client: `sim:${each.nodeId}` })),
      settings: this.settings,
      featureLevel: 1,
      seed: world.prng.nextU32(),
      log: this.listened(node, log),
      logState,
      snapshots,
      compaction: this.options.compaction ?? DEFAULT_POLICY,
      start,
      peers: { send: (message) => this.network.send(message), flush: () => undefined },
      clock: { nowUs: () => world.nowUs * node.clockRate },
      entropy: { fill16: (target, offset) => this.fillRandom(target, offset) },
      turn: { soon, after: (us) => world.after(us, () => isAlive() && soon()) },
    });
    const parts = node.adopt(replica);
    node.log = log;
    node.snapshots = snapshots;
    log.events = {
      onDurable: (id) => this.whenAwake(node, () => replica.onDurable(id)),
      onRead: (id, entries) => this.whenAwake(node, () => replica.onRead(id, entries)),
    };
    log.owner = {
      onFatal: (reason) => {
        this.onNote(`node ${node.nodeId} ends: ${reason}`);
        this.crash(node);
      },
      onStored: (from, to) => this.noteStored(node, from, to),
    };
    // What a write that ended badly left behind is seen now.
    this.noteStored(node, logState.firstIndex, logState.lastIndex);
    if (start !== null) this.ledger.checkSnapshot(node.nodeId, start.machine);
    this.attach(node, parts, parts.machine);
    this.tick(node, isAlive);
  }

  private attach(node: SimNode, { raft }: ReplicaParts, machine: LockMachine): void {
    // Entries that have left memory are applied as the log has them.
    this.ledger.attach(node.nodeId, machine, (index) => {
      return raft.entryAt(index) ?? node.disk.storedEntry(index);
    });
  }

  private openSnapshots(
    node: SimNode,
    log: SimLog,
    isAlive: () => boolean,
    start: FetchedSnapshot | null,
  ): SimSnapshots {
    const { world, settings } = this;
    const { disk, nodeId } = node;
    const nowMs = (): number => world.nowUs * LENDER_MS_PER_US;
    const lender = new SimLender(disk.folder, start?.index ?? 0, nowMs);
    lender.isRotten = () => node.isRotten;
    node.lender = lender;
    return new SimSnapshots({
      world,
      disk,
      log,
      clusterId: CLUSTER_ID,
      settings,
      hashSeeds: this.drawSeeds(),
      chunkBytes: this.options.chunkBytes ?? SNAPSHOT_CHUNK_BYTES,
      lender,
      events: this.snapshotEvents(node),
      ask: (to, frame, onAnswer) => this.ask(node, to, frame, onAnswer),
      isAlive,
      whenAwake: (handle) => this.whenAwake(node, handle),
      onFatal: (reason) => {
        this.onNote(`node ${nodeId} ends: ${reason}`);
        this.crash(node);
      },
      onProblem: (text) => {
        if (!node.isRuined) this.problems.push(`snapshots: node ${nodeId} ${text}`);
      },
      onStep: (kind) => this.onSnapshotStep(node, kind),
    });
  }

  private snapshotEvents(node: SimNode): SnapshotEvents {
    return {
      onDraft: (draft) => node.replica?.onDraft(draft),
      onKept: (index, firstIndex) => {
        this.counts.kept += 1;
        node.replica?.onKept(index, firstIndex);
      },
      onDiscarded: () => node.replica?.onDiscarded(),
      onFetched: (snapshot) => {
        if (snapshot !== null) {
          this.counts.fetched += 1;
          this.ledger.checkSnapshot(node.nodeId, snapshot.machine);
          this.attach(node, node.parts as ReplicaParts, snapshot.machine);
        } else this.counts.cut += 1;
        node.replica?.onFetched(snapshot);
        if (snapshot !== null) this.onSnapshotStep(node, 'installed');
      },
    };
  }

  /** A frame of a fetch to another node, and its answer back. */
  private ask(
    from: SimNode,
    to: number,
    frame: Uint8Array,
    onAnswer: (frame: Uint8Array) => void,
  ): void {
    const { network } = this;
    const { life } = from;
    const asked = this.node(to);
    network.carry(from.nodeId, to, frame, (question) => {
      this.whenAwake(asked, () => {
        const answer = asked.lender?.answer(asked.disk.media, question) ?? null;
        if (answer === null) return;
        network.carry(to, from.nodeId, answer, (bytes) => {
          if (from.life === life) this.whenAwake(from, () => onAnswer(bytes));
        });
      });
    });
  }

  private tick(node: SimNode, isAlive: () => boolean): void {
    if (!isAlive()) return;
    if (!node.isPaused) node.replica?.onTick();
    // A node's timer follows its own clock.
    this.world.after((TICK_MS * US_PER_MS) / node.clockRate, () => this.tick(node, isAlive));
  }

  /** The log, with an ear for what is handed to it. */
  private listened(node: SimNode, log: SimLog) {
    return {
      append: (order: Parameters<SimLog['append']>[0]) => {
        this.ledger.noteMade(node.nodeId, order.entries);
        log.append(order);
      },
      read: log.read.bind(log),
      close: log.close.bind(log),
    };
  }

  private noteStored(node: SimNode, from: number, to: number): void {
    if (node.isWiped) return; // another disk than the one that may be counted
    for (let index = from; index <= to; index += 1) {
      const term = node.disk.storedTerm(index);
      if (term > 0) this.ledger.noteStored(node.nodeId, index, term);
    }
  }

  /** The production check of a hello, once for each pair of disks. */
  private isWelcome(from: SimNode, to: SimNode): boolean {
    const key = `${from.nodeId}.${from.life}>${to.nodeId}.${to.life}`;
    let verdict = this.verdicts.get(key);
    if (verdict !== undefined) return verdict;
    const members = this.nodes.map(({ nodeId }) => {
      const diskId = this.foundingDisks.get(nodeId) ?? this.node(nodeId).diskId;
      return { nodeId, host: 'sim', port: nodeId, diskId };
    });
    const membership: Membership = {
      nodeId: to.nodeId,
      clusterId: CLUSTER_ID,
      members,
      clusterFeatureLevel: 1,
    };
    const hello = {
      version: PEER_VERSION,
      featureLevel: 1,
      nodeId: from.nodeId,
      clusterId: CLUSTER_ID,
      diskId: from.diskId,
    };
    verdict = judgeHello(hello, membership).verdict === PeerVerdict.Welcome;
    this.verdicts.set(key, verdict);
    return verdict;
  }

  private deliver(message: Message): void {
    const node = this.node(message.to);
    this.whenAwake(node, () => node.replica?.onMessage(message));
  }

  private fillRandom(target: Uint8Array, offset: number): void {
    for (let i = 0; i < 16; i += 1) target[offset + i] = this.world.prng.below(256);
  }
}

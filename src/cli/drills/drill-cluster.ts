/**
 * The cluster of one drill: five node processes of its own, with disks in a folder of its own.
 *
 * Owns: every process that it starts (ended by its id), the folder, and what is done to the nodes:
 * kill -9, SIGSTOP, a start again, disks set back to an earlier state. Never: another cluster;
 * nobody's nodes but its own are harmed. Used by: run-drill.ts, the scenarios.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Endpoint, formatEndpoint } from '../../server/options.js';
import { CliError } from '../exit-codes.js';
import { lastWordsIn } from '../last-words.js';
import {
  LOCAL_NODES,
  type LocalNode,
  NODE_ENVIRONMENT,
  NODE_FLAGS,
  serveWords,
} from '../local-cluster.js';
import { findLeader, type NodeStatus, readStatus } from '../node-status.js';
import { suspend } from './actor.js';
import { Hopeless, until } from './until.js';

/** What a drill wants of its nodes beside the defaults. */
export interface ClusterPlan {
  /** More words for `serve`, for each node. */
  readonly words?: (nodeId: number) => readonly string[];
  /** Where a node has its data; null: in a folder of the drill. */
  readonly dataFolder?: (nodeId: number) => string | null;
}

interface Running {
  readonly child: ChildProcess;
  readonly gone: Promise<void>;
}

const SCRIPT = fileURLToPath(new URL('../main.js', import.meta.url));
/** Somebody may take a port between the look for it and the start of a node. */
const START_ATTEMPTS = 4;
const STATUS_MS = 2_000;
const START_MS_MAX = 150_000;
const STOP_MS_MAX = 15_000;
const LOOPBACK = '127.0.0.1';

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, LOOPBACK, () => resolve(server));
  });
}

/** Ports that were free a moment ago, all different. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listen));
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  });
  const closed = servers.map(
    (server) => new Promise<void>((resolve) => server.close(() => resolve())),
  );
  await Promise.all(closed);
  return ports;
}

export class DrillCluster {
  private nodes: LocalNode[] = [];
  private readonly running = new Map<number, Running>();

  private constructor(
    private readonly folder: string,
    private readonly plan: ClusterPlan,
  ) {}

  /**
   * Founds a cluster below `folder`; resolves when a leader serves.
   *
   * @param onMade is told of it before its first process, so that it can be ended at any time.
   */
  static async start(
    folder: string,
    plan: ClusterPlan,
    onMade: (cluster: DrillCluster) => void,
  ): Promise<DrillCluster> {
    const cluster = new DrillCluster(folder, plan);
    onMade(cluster);
    mkdirSync(path.join(folder, 'logs'), { recursive: true });
    for (const nodeId of cluster.nodeIds) {
      mkdirSync(cluster.nodeFolder(nodeId), { recursive: true });
    }
    await cluster.found();
    return cluster;
  }

  get nodeIds(): number[] {
    return Array.from({ length: LOCAL_NODES }, (_, at) => at + 1);
  }

  /** Nodes whose process runs, a stopped one included. */
  get runningIds(): number[] {
    return this.nodeIds.filter((nodeId) => this.running.has(nodeId));
  }

  get endpoints(): Endpoint[] {
    return this.nodes.map((node) => node.client);
  }

  endpoint(nodeId: number): Endpoint {
    const node = this.nodes[nodeId - 1];
    if (node === undefined) throw new Error(`no node ${nodeId}`);
    return node.client;
  }

  address(nodeId: number): string {
    return formatEndpoint(this.endpoint(nodeId));
  }

  status(nodeId: number): Promise<NodeStatus> {
    return readStatus(this.endpoint(nodeId), STATUS_MS);
  }

  /** Waits until a node leads and takes operations. */
  leader(): Promise<number> {
    return until('a leader that serves', () => findLeader(this.endpoints));
  }

  /** Ends nodes by SIGKILL, all at once. */
  async kill(nodeIds: readonly number[]): Promise<void> {
    const killed = nodeIds.flatMap((nodeId) => this.running.get(nodeId) ?? []);
    for (const { child } of killed) child.kill('SIGKILL');
    await Promise.all(killed.map(({ gone }) => gone));
  }

  /** Stops a node by SIGSTOP; resolves when it stands still. */
  async suspend(nodeId: number): Promise<void> {
    const running = this.running.get(nodeId);
    if (running === undefined) throw new Error(`node ${nodeId} does not run`);
    await suspend(running.child);
  }

  /** Waits until a node's process has ended by itself. */
  async ended(nodeId: number): Promise<void> {
    await until(`node ${nodeId} to end`, () => !this.running.has(nodeId));
  }

  /** Everything that a node has written, over all its starts. */
  log(nodeId: number): string {
    return readFileSync(this.logFile(nodeId), 'utf8');
  }

  /** Starts nodes that do not run; resolves when each answers. */
  async restart(nodeIds: readonly number[]): Promise<void> {
    for (const nodeId of nodeIds) this.launch(nodeId, false);
    await Promise.all(
      nodeIds.map((nodeId) =>
        until(`node ${nodeId} to answer`, () => this.answer(nodeId), START_MS_MAX),
      ),
    );
  }

  /** Every node runs and none is stopped. */
  async repair(): Promise<void> {
    for (const { child } of this.running.values()) child.kill('SIGCONT');
    await this.restart(this.nodeIds.filter((nodeId) => !this.running.has(nodeId)));
  }

  /** Keeps a copy of every disk as it is now; the nodes are ended for it and started again. */
  async keepDisks(): Promise<void> {
    await this.stopAll();
    for (const nodeId of this.nodeIds) {
      cpSync(this.dataFolder(nodeId), this.keptFolder(nodeId), { recursive: true });
    }
    await this.restart(this.nodeIds);
    await this.leader();
  }

  /** Ends all nodes, puts the kept disks in the place of the present ones, starts all again. */
  async setDisksBack(): Promise<void> {
    await this.kill(this.nodeIds);
    for (const nodeId of this.nodeIds) {
      rmSync(this.dataFolder(nodeId), { recursive: true });
      cpSync(this.keptFolder(nodeId), this.dataFolder(nodeId), { recursive: true });
    }
    await this.restart(this.nodeIds);
  }

  /** Ends every process. Idempotent. */
  close(): Promise<void> {
    return this.kill(this.nodeIds);
  }

  /** The same without waiting, for a process that is about to end. */
  killNow(): void {
    for (const { child } of this.running.values()) child.kill('SIGKILL');
  }

  private async found(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      await this.place();
      for (const nodeId of this.nodeIds) this.launch(nodeId, nodeId === 1);
      try {
        await until('five nodes to found a cluster', () => this.lookAtStart(), START_MS_MAX);
        return;
      } catch (error) {
        const isTaken = this.nodeIds.some((nodeId) => this.log(nodeId).includes('EADDRINUSE'));
        if (!isTaken || attempt === START_ATTEMPTS) throw error;
        await this.close();
        for (const nodeId of this.nodeIds) {
          rmSync(this.dataFolder(nodeId), { recursive: true, force: true });
          rmSync(this.logFile(nodeId), { force: true });
        }
      }
    }
  }

  private lookAtStart(): Promise<number | null> {
    const missing = this.nodeIds.find((nodeId) => !this.running.has(nodeId));
    if (missing === undefined) return findLeader(this.endpoints);
    throw new Hopeless(`node ${missing} ended: ${lastWordsIn(this.logFile(missing), 0)}`);
  }

  private async answer(nodeId: number): Promise<NodeStatus> {
    if (this.running.has(nodeId)) return this.status(nodeId);
    throw new Hopeless(`node ${nodeId} ended: ${lastWordsIn(this.logFile(nodeId), 0)}`);
  }

  private async place(): Promise<void> {
    const ports = await freePorts(3 * LOCAL_NODES);
    const at = (index: number): Endpoint => ({ host: LOOPBACK, port: ports[index] ?? 0 });
    this.nodes = this.nodeIds.map((nodeId) => ({
      nodeId,
      dataFolder: this.dataFolder(nodeId),
      client: at(3 * nodeId - 3),
      http: at(3 * nodeId - 2),
      peer: at(3 * nodeId - 1),
    }));
  }

  private launch(nodeId: number, isBootstrap: boolean): void {
    const node = this.nodes[nodeId - 1];
    if (node === undefined || this.running.has(nodeId)) throw new Error(`node ${nodeId} runs`);
    const words = [
      ...serveWords(this.nodes, node, isBootstrap),
      ...(this.plan.words?.(nodeId) ?? []),
    ];
    const log = openSync(this.logFile(nodeId), 'a');
    // Each holds the other end of its standard input: it ends when the drill does, however.
    const child = spawn(process.execPath, [...NODE_FLAGS, SCRIPT, ...words], {
      stdio: ['pipe', log, log],
      env: { ...process.env, ...NODE_ENVIRONMENT },
    });
    closeSync(log);
    child.stdin?.on('error', () => undefined); // its end is told by 'exit'; nothing is written
    const gone = new Promise<void>((resolve) => {
      child.once('exit', () => {
        this.running.delete(nodeId);
        resolve();
      });
    });
    this.running.set(nodeId, { child, gone });
  }

  /** Ends every node in order, so that its disk is whole. */
  private async stopAll(): Promise<void> {
    const stopped = [...this.running.values()];
    for (const { child } of stopped) child.kill('SIGTERM');
    const late = setTimeout(() => this.killNow(), STOP_MS_MAX);
    await Promise.all(stopped.map(({ gone }) => gone));
    clearTimeout(late);
    if (this.running.size > 0) throw new CliError('DRILL_FAILED', 'nodes did not stop');
  }

  private nodeFolder(nodeId: number): string {
    return path.join(this.folder, `node-${nodeId}`);
  }

  private dataFolder(nodeId: number): string {
    return this.plan.dataFolder?.(nodeId) ?? path.join(this.nodeFolder(nodeId), 'data');
  }

  private keptFolder(nodeId: number): string {
    return path.join(this.nodeFolder(nodeId), 'kept');
  }

  private logFile(nodeId: number): string {
    return path.join(this.folder, 'logs', `node-${nodeId}.log`);
  }
}

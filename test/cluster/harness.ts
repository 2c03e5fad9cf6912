/**
 * Real nodes for tests: processes of their own, on free ports, with disks in a scratch folder.
 *
 * Owns: every process it starts (ended at close, by its id), their output (in files, printed when
 * the test failed) and the scratch folder. Never: sleeps; states are waited for through the status
 * request. Used by: test/cluster, load tests.
 *
 *     const cluster = await Cluster.start({ test: t });
 *     const leader = await cluster.leader();
 *     await cluster.kill(leader);
 *     await cluster.restart(leader);
 */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  clientAddresses,
  type LocalNode,
  NODE_ENVIRONMENT,
  NODE_FLAGS,
  serveWords,
} from '../../src/cli/local-cluster.js';
import { type NodeStatus, readStatus } from '../../src/cli/node-status.js';
import type { Settings } from '../../src/core/locks/settings.js';
import { formatEndpoint } from '../../src/server/options.js';
import { compiledFile } from '../gate/paths.js';
import { stateOf } from './process-state.js';
import { Hopeless, waitFor } from './wait-for.js';

/** What the harness uses of a tap test, to close the cluster and print logs if it failed. */
export interface HarnessTest {
  teardown(close: () => Promise<void>): unknown;
  passing(): boolean;
}

export interface ClusterOptions {
  /** How many nodes, 5 by default. */
  readonly nodes?: number;
  /** Replicated settings instead of the defaults, such as { leaseTtlMsLeast: 100 }. */
  readonly settings?: Partial<Settings>;
  /** More environment for one node, at each of its starts. */
  readonly nodeEnvironment?: (nodeId: number) => Record<string, string>;
  /** More words for `serve` for one node, at each of its starts. */
  readonly nodeWords?: (nodeId: number) => readonly string[];
  /** Closes the cluster at the end of this test, and prints the nodes' logs if it failed. */
  readonly test?: HarnessTest;
  /** Returns when a leader serves; false: as soon as the processes are started. */
  readonly waitsForLeader?: boolean;
  /** Address of a node, when it has one of its own (a network namespace); else loopback. */
  readonly nodeHost?: (nodeId: number) => string;
  /** Words before the command of a node, such as those that put it into its namespace. */
  readonly nodePrefix?: (nodeId: number) => readonly string[];
  /** Called with the folder of each node before its first start: a disk may be mounted there. */
  readonly prepareFolder?: (nodeId: number, folder: string) => void;
  /** Compiled program of a node instead of the product's: an image with some source changed. */
  readonly nodeProgram?: (nodeId: number) => string;
  /** Log level of the nodes, info by default. */
  readonly logLevel?: string;
}

/** How many times a cluster is started anew when somebody took a port in between. */
const START_ATTEMPTS = 4;
const STATUS_TIMEOUT_MS = 2_000;
/** Printed of each node's output when a test failed. */
const OUTPUT_TAIL_BYTES = 8_000;
/** A node answers this long after its start, on a machine that is busy with other things. */
const START_MS_MAX = 90_000;
/** An orderly stop takes at most this long in a test. */
const STOP_MS_MAX = 15_000;

function listenOnFreePort(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

/** Ports that were free a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listenOnFreePort));
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  });
  await Promise.all(
    servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
  );
  return ports;
}

/** One node: its place, and its process while it runs. */
class HarnessNode {
  child: ChildProcess | null = null;
  /** Exit status or signal of the last process, '' before the first ended. */
  lastEnd = '';

  constructor(
    readonly place: LocalNode,
    readonly outputFile: string,
  ) {}

  get isRunning(): boolean {
    return this.child !== null;
  }
}

export class Cluster {
  /** The cluster's folder: node-1 … and their output. */
  readonly folder: string;
  private nodes: HarnessNode[] = [];
  private isClosed = false;

  private constructor(private readonly options: ClusterOptions) {
    this.folder = mkdtempSync(path.join(tmpdir(), 'holdfast-test-'));
  }

  /** Starts and founds a cluster; resolves when a leader serves. */
  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const cluster = new Cluster(options);
    options.test?.teardown(() => cluster.close());
    try {
      await cluster.startAll();
    } catch (error) {
      cluster.printOutput();
      await cluster.close();
      throw error;
    }
    return cluster;
  }

  get nodeIds(): number[] {
    return this.nodes.map((node) => node.place.nodeId);
  }

  /** Ids of the nodes whose process runs (a stopped one included). */
  get runningIds(): number[] {
    return this.nodes.filter((node) => node.isRunning).map((node) => node.place.nodeId);
  }

  /** `host:port` of every client port, in order of node ids. */
  get endpoints(): string[] {
    return this.nodes.map((node) => formatEndpoint(node.place.client));
  }

  /** The same as one text, as HOLDFAST_ENDPOINTS and --endpoints take it. */
  get endpointList(): string {
    return clientAddresses(this.nodes.map((node) => node.place));
  }

  endpoint(nodeId: number): string {
    return formatEndpoint(this.node(nodeId).place.client);
  }

  /** `http://host:port` of a node's HTTP port. */
  httpUrl(nodeId: number): string {
    return `http://${formatEndpoint(this.node(nodeId).place.http)}`;
  }

  peerEndpoint(nodeId: number): string {
    return formatEndpoint(this.node(nodeId).place.peer);
  }

  dataFolder(nodeId: number): string {
    return this.node(nodeId).place.dataFolder;
  }

  /** Process id of a running node. */
  pid(nodeId: number): number {
    const pid = this.node(nodeId).child?.pid;
    if (pid === undefined) throw new Error(`node ${nodeId} does not run`);
    return pid;
  }

  /** Everything that a node has written so far, over all its starts. */
  output(nodeId: number): string {
    const { outputFile } = this.node(nodeId);
    return existsSync(outputFile) ? readFileSync(outputFile, 'utf8') : '';
  }

  /** How the last process of a node ended: 'status 78', 'SIGKILL', '' when none did. */
  lastEnd(nodeId: number): string {
    return this.node(nodeId).lastEnd;
  }

  /** What a node says of itself. Rejects when it does not answer within 2 s. */
  status(nodeId: number): Promise<NodeStatus> {
    return readStatus(this.node(nodeId).place.client, STATUS_TIMEOUT_MS);
  }

  /** Waits until a running node leads and a majority follows it; resolves with its id. */
  async leader(timeoutMs = 30_000): Promise<number> {
    const found = await waitFor('a leader that a majority follows', () => this.look(), timeoutMs);
    return found;
  }

  /** Waits until some node other than `nodeId` leads. */
  async leaderOtherThan(nodeId: number, timeoutMs = 30_000): Promise<number> {
    return waitFor(
      `a leader other than node ${nodeId}`,
      async () => {
        const leader = await this.look();
        return leader === nodeId ? null : leader;
      },
      timeoutMs,
    );
  }

  /** Waits until every running node has applied what the leader has, and says the same digest. */
  async settled(timeoutMs = 30_000): Promise<NodeStatus[]> {
    return waitFor(
      'all nodes to agree',
      async () => {
        const all = await Promise.all(this.runningIds.map((nodeId) => this.status(nodeId)));
        const first = all[0];
        const isSame = (status: NodeStatus): boolean =>
          status.appliedIndex === first?.appliedIndex && status.digest === first.digest;
        return all.every(isSame) ? all : null;
      },
      timeoutMs,
    );
  }

  /** Ends a node by SIGKILL; resolves when it is gone. */
  async kill(nodeId: number): Promise<void> {
    await this.endNode(this.node(nodeId), 'SIGKILL');
  }

  /** Ends a node in order, by SIGTERM; resolves with how it ended. */
  async terminate(nodeId: number): Promise<string> {
    await this.endNode(this.node(nodeId), 'SIGTERM');
    return this.lastEnd(nodeId);
  }

  /** Suspends a node (SIGSTOP); resolves when it stands still. */
  async stop(nodeId: number): Promise<void> {
    const pid = this.pid(nodeId);
    process.kill(pid, 'SIGSTOP');
    await waitFor(`node ${nodeId} to stop`, () => stateOf(pid) === 'T');
  }

  /** Lets a suspended node go on (SIGCONT). */
  async cont(nodeId: number): Promise<void> {
    const pid = this.pid(nodeId);
    process.kill(pid, 'SIGCONT');
    await waitFor(`node ${nodeId} to go on`, () => stateOf(pid) !== 'T');
  }

  /** Starts a node again (ends it first if it runs); resolves when it answers a status request. */
  async restart(nodeId: number): Promise<void> {
    const node = this.node(nodeId);
    if (node.isRunning) await this.endNode(node, 'SIGKILL');
    this.launch(node, false);
    const isUp = (): Promise<NodeStatus> => {
      if (!node.isRunning) throw new Hopeless(`node ${nodeId} ended: ${node.lastEnd}`);
      return this.status(nodeId);
    };
    await waitFor(`node ${nodeId} to answer`, isUp, START_MS_MAX);
  }

  /** Starts a node's process and does not wait for it. */
  launchOnly(nodeId: number, isBootstrap = false): void {
    this.launch(this.node(nodeId), isBootstrap);
  }

  /** Waits until a node's process has ended by itself; resolves with how. */
  async ended(nodeId: number): Promise<string> {
    const node = this.node(nodeId);
    await waitFor(`node ${nodeId} to end`, () => !node.isRunning);
    return node.lastEnd;
  }

  /** Ends every process and removes the folder. Idempotent. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    if (this.options.test !== undefined && !this.options.test.passing()) this.printOutput();
    await Promise.all(this.nodes.map((node) => this.endNode(node, 'SIGKILL')));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private node(nodeId: number): HarnessNode {
    const node = this.nodes.find((candidate) => candidate.place.nodeId === nodeId);
    if (node === undefined) throw new Error(`no node ${nodeId}, there are ${this.nodeIds}`);
    return node;
  }

  private async startAll(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      await this.place();
      for (const node of this.nodes) this.launch(node, node.place.nodeId === 1);
      if (this.options.waitsForLeader === false) return;
      try {
        await waitFor('the cluster to found itself and elect', () => this.lookAtStart(), 120_000);
        return;
      } catch (error) {
        const isPortTaken = this.nodeIds.some((id) => this.output(id).includes('EADDRINUSE'));
        if (!isPortTaken || attempt === START_ATTEMPTS) throw error;
        await Promise.all(this.nodes.map((node) => this.endNode(node, 'SIGKILL')));
        for (const node of this.nodes) rmSync(path.dirname(node.outputFile), { recursive: true });
      }
    }
  }

  /** Looks for a leader, and fails at once when a node has ended. */
  private async lookAtStart(): Promise<number | null> {
    const ended = this.nodes.find((node) => !node.isRunning);
    if (ended !== undefined) {
      throw new Hopeless(`node ${ended.place.nodeId} ended at the start: ${ended.lastEnd}`);
    }
    return this.look();
  }

  private async place(): Promise<void> {
    const count = this.options.nodes ?? 5;
    const ports = await freePorts(3 * count);
    this.nodes = Array.from({ length: count }, (_, at) => {
      const folder = path.join(this.folder, `node-${at + 1}`);
      mkdirSync(folder, { recursive: true });
      this.options.prepareFolder?.(at + 1, folder);
      const host = this.options.nodeHost?.(at + 1) ?? '127.0.0.1';
      const place: LocalNode = {
        nodeId: at + 1,
        dataFolder: path.join(folder, 'data'),
        client: { host, port: ports[3 * at] ?? 0 },
        http: { host, port: ports[3 * at + 1] ?? 0 },
        peer: { host, port: ports[3 * at + 2] ?? 0 },
      };
      return new HarnessNode(place, path.join(folder, 'output.log'));
    });
  }

  private launch(node: HarnessNode, isBootstrap: boolean): void {
    if (node.isRunning) throw new Error(`node ${node.place.nodeId} runs already`);
    const { nodeId } = node.place;
    const words = serveWords(
      this.nodes.map((each) => each.place),
      node.place,
      isBootstrap,
    );
    for (const [name, value] of Object.entries(this.options.settings ?? {})) {
      words.push('--setting', `${name}=${value}`);
    }
    words.push('--log-level', this.options.logLevel ?? 'info');
    words.push(...(this.options.nodeWords?.(nodeId) ?? []));
    const output = openSync(node.outputFile, 'a');
    const script = this.options.nodeProgram?.(nodeId) ?? compiledFile('src/cli/main.ts');
    const prefix = this.options.nodePrefix?.(nodeId) ?? [];
    const start = [process.execPath, ...NODE_FLAGS, '--enable-source-maps', script];
    const [command = '', ...rest] = [...prefix, ...start, ...words];
    const child = spawn(command, rest, {
      stdio: ['pipe', output, output],
      env: { ...process.env, ...NODE_ENVIRONMENT, ...this.options.nodeEnvironment?.(nodeId) },
    });
    closeSync(output);
    child.stdin?.on('error', () => undefined);
    child.once('exit', (status, signal) => {
      node.lastEnd = signal ?? `status ${status}`;
      node.child = null;
    });
    node.child = child;
  }

  private async endNode(node: HarnessNode, signal: NodeJS.Signals): Promise<void> {
    const { child } = node;
    if (child === null) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill(signal);
    if (signal !== 'SIGKILL') {
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
      await gone;
      clearTimeout(late);
    }
    await gone;
  }

  /** The leader's id when a majority of all nodes says the same one, in its term. */
  private async look(): Promise<number | null> {
    const running = this.nodes.filter((node) => node.isRunning);
    const answers = await Promise.allSettled(running.map((node) => this.status(node.place.nodeId)));
    const statuses: NodeStatus[] = [];
    for (const answer of answers) if (answer.status === 'fulfilled') statuses.push(answer.value);
    const leaders = statuses.filter((status) => status.role === 'leader');
    leaders.sort((left, right) => right.term - left.term);
    const leader = leaders[0];
    if (leader === undefined) return null;
    const followers = statuses.filter(
      (status) => status.term === leader.term && status.leaderId === leader.nodeId,
    );
    return followers.length * 2 > this.nodes.length ? leader.nodeId : null;
  }

  private printOutput(): void {
    for (const node of this.nodes) {
      const tail = this.output(node.place.nodeId).slice(-OUTPUT_TAIL_BYTES);
      const end = node.lastEnd === '' ? '' : ` (last end: ${node.lastEnd})`;
      console.error(`--- output of node ${node.place.nodeId}${end}\n${tail}`);
    }
  }
}

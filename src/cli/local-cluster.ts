/**
 * Five nodes on one machine: their ports, folders and command lines.
 *
 * Owns: the fixed surface (clients 7400 + i, HTTP 7500 + i, peers 7600 + i, folders node-1 to
 * node-5) and the flags that keep many processes on two cores apart. Never: starts one.
 * Used by: commands/dev.ts, test/cluster/harness.ts, load tests.
 */
import path from 'node:path';
import { type Endpoint, formatEndpoint } from '../server/options.js';

/** Client ports of a local cluster are this plus the node id; HTTP and peers are further on. */
export const BASE_PORT_DEFAULT = 7_400;
export const HTTP_OFFSET = 100;
export const PEER_OFFSET = 200;
export const LOCAL_NODES = 5;
const LOOPBACK = '127.0.0.1';

/** For node processes that share two cores; see docs/OPERATIONS for a machine of their own. */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=64', '--v8-pool-size=1'];
export const NODE_ENVIRONMENT: Readonly<Record<string, string>> = { UV_THREADPOOL_SIZE: '2' };

export interface LocalNode {
  readonly nodeId: number;
  readonly dataFolder: string;
  readonly client: Endpoint;
  readonly http: Endpoint;
  readonly peer: Endpoint;
}

/** The nodes 1 … 5 under `folder`, with ports counted from `basePort`. */
export function localNodes(folder: string, basePort: number): LocalNode[] {
  const nodes: LocalNode[] = [];
  for (let nodeId = 1; nodeId <= LOCAL_NODES; nodeId += 1) {
    nodes.push({
      nodeId,
      dataFolder: path.join(folder, `node-${nodeId}`),
      client: { host: LOOPBACK, port: basePort + nodeId },
      http: { host: LOOPBACK, port: basePort + HTTP_OFFSET + nodeId },
      peer: { host: LOOPBACK, port: basePort + PEER_OFFSET + nodeId },
    });
  }
  return nodes;
}

function listOf(nodes: readonly LocalNode[], pick: (node: LocalNode) => Endpoint): string {
  return nodes.map((node) => `${node.nodeId}=${formatEndpoint(pick(node))}`).join(',');
}

/** `host:port,…` of every client port. */
export function clientAddresses(nodes: readonly LocalNode[]): string {
  return nodes.map((node) => formatEndpoint(node.client)).join(',');
}

/** `http://host:port` of every HTTP port, separated by commas. */
export function httpAddresses(nodes: readonly LocalNode[]): string {
  return nodes.map((node) => `http://${formatEndpoint(node.http)}`).join(',');
}

/** The words of `holdfast serve` for one of `nodes`; ends when its standard input does. */
export function serveWords(
  nodes: readonly LocalNode[],
  node: LocalNode,
  isBootstrap: boolean,
): string[] {
  const words = ['serve', '--node-id', String(node.nodeId), '--data', node.dataFolder];
  words.push('--client', formatEndpoint(node.client), '--peer', formatEndpoint(node.peer));
  words.push('--http', formatEndpoint(node.http));
  words.push(
    '--peers',
    listOf(nodes, (each) => each.peer),
  );
  words.push(
    '--clients',
    listOf(nodes, (each) => each.client),
  );
  words.push('--until-stdin-ends');
  if (isBootstrap) words.push('--bootstrap');
  return words;
}

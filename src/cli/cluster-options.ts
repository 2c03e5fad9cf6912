/**
 * The options that every command which talks to a cluster shares, read and checked.
 *
 * Owns: where the endpoints come from: --endpoints, then HOLDFAST_ENDPOINTS, then a local cluster.
 * Never: a connection. Used by: the commands.
 */
import { type Endpoint, OptionError, parseEndpoint, parseWhole } from '../server/options.js';
import type { CommandInput } from './command.js';
import { parseDuration } from './duration.js';
import { BASE_PORT_DEFAULT, LOCAL_NODES } from './local-cluster.js';

const TIMEOUT_DEFAULT = '10s';
const TIMEOUT_MS_MAX = 60_000;

export interface ClusterOptions {
  readonly endpoints: readonly Endpoint[];
  /** How long to try, 1 ms to 60 s. */
  readonly timeoutMs: number;
  /** False: nobody asked for so long, so what is hopeless may be given up sooner. */
  readonly isTimeoutGiven: boolean;
}

function localEndpoints(): string {
  const addresses: string[] = [];
  for (let nodeId = 1; nodeId <= LOCAL_NODES; nodeId += 1) {
    addresses.push(`127.0.0.1:${BASE_PORT_DEFAULT + nodeId}`);
  }
  return addresses.join(',');
}

/** Reads --endpoints and --timeout. Throws OptionError. */
export function readClusterOptions(
  input: CommandInput,
  environment: NodeJS.ProcessEnv = process.env,
): ClusterOptions {
  const option = input.text('endpoints');
  // An empty one is refused below: whoever set it does not mean the local cluster.
  const variable = environment['HOLDFAST_ENDPOINTS'];
  const name =
    option === undefined && variable !== undefined ? 'HOLDFAST_ENDPOINTS' : '--endpoints';
  const text = option ?? variable ?? localEndpoints();
  const endpoints = text.split(',').map((word) => parseEndpoint(name, word.trim()));
  const timeoutMs = parseDuration('--timeout', input.text('timeout') ?? TIMEOUT_DEFAULT);
  if (timeoutMs < 1 || timeoutMs > TIMEOUT_MS_MAX) {
    throw new OptionError('--timeout', `give 1ms to 60s, not '${input.text('timeout')}'`);
  }
  return { endpoints, timeoutMs, isTimeoutGiven: input.text('timeout') !== undefined };
}

/** Reads a node id. Throws OptionError. */
export function readNodeId(name: string, text: string): number {
  return parseWhole(name, text, 1, 65_535);
}

/** Reads 32 hexadecimal digits into 16 bytes. Throws OptionError; the text may be a secret. */
export function readId(name: string, text: string): Uint8Array {
  if (!/^[0-9a-fA-F]{32}$/.test(text)) {
    throw new OptionError(name, `give 32 hexadecimal digits, not ${text.length} characters`);
  }
  return Uint8Array.from(Buffer.from(text, 'hex'));
}

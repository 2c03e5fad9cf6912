/**
 * One node as a process: from its options to its exit status.
 *
 * Owns: signals, the log's first and last lines, and the bound on how long an orderly end may take.
 * Never: the parts of a node (node.ts). A fault ends the process by SIGKILL, since process.exit
 * would wait for a log thread that may be blocked in the kernel. Used by: cli/commands/serve.ts.
 */
import { writeSync } from 'node:fs';
import { LogError } from '../io/log/log-error.js';
import { createLogger, type Logger } from '../observe/logger.js';
import { FoundingRefused, hexOf } from './founding.js';
import { type RunningNode, startNode } from './node.js';
import { doubtsOf, formatEndpoint, type ServeOptions } from './options.js';

/** An orderly end takes at most this long; then the process ends as it is. */
export const SHUTDOWN_MS_MAX = 8_000;

/** Why serve could not go on, as the CLI maps it to a status. */
export type ServeEnd = 'stopped' | 'refused' | 'disk' | 'fault';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Errors of listen() that an operator repairs. */
const ADDRESS_ERRORS = new Set(['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES', 'ENOTFOUND']);
/** Errors of openLog that say the disk's contents are damaged. */
const DISK_ERRORS = new Set(['STATE_CORRUPT', 'LOG_CORRUPT']);

/** Asks the node to end, for whatever reason, once. */
class StopDesk {
  private readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  reason = '';
  private readonly onStdinEnd = (): void => this.stop('standard input ended');

  constructor(private readonly isStdinWatched: boolean) {
    for (const signal of STOP_SIGNALS) process.on(signal, () => this.stop(signal));
    if (!isStdinWatched) return;
    process.stdin.on('end', this.onStdinEnd).on('error', this.onStdinEnd);
    process.stdin.resume();
  }

  stop(reason: string): void {
    if (this.signal.aborted) return;
    this.reason = reason;
    this.controller.abort(new Error(`told to stop: ${reason}`));
  }

  /** Resolves when the node is told to stop. */
  get stopped(): Promise<void> {
    if (this.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  close(): void {
    if (this.isStdinWatched) process.stdin.destroy();
  }
}

/**
 * Serves until a signal, the end of standard input (when asked for) or a failure.
 *
 * @returns why it ended. A fault or a failed log does not return: the process is gone.
 */
export async function serve(options: ServeOptions): Promise<ServeEnd> {
  const logger = createLogger(options.logLevel, logFields(options));
  process.on('uncaughtException', (error) => endByFault(logger, error));
  process.on('unhandledRejection', (error) => endByFault(logger, error));
  for (const doubt of doubtsOf(options)) logger.warn({}, doubt);
  const desk = new StopDesk(options.untilStdinEnds);
  let node: RunningNode;
  try {
    node = await startNode(options, logger, desk.signal);
  } catch (error) {
    desk.close();
    return explainStart(error, logger, desk);
  }
  logger.info(servingFields(options, node), 'serving');
  await desk.stopped;
  logger.info({ reason: desk.reason }, 'stopping');
  const deadline = setTimeout(() => {
    logger.error({ afterMs: SHUTDOWN_MS_MAX }, 'stopping took too long; ending as it is');
    process.kill(process.pid, 'SIGKILL');
  }, SHUTDOWN_MS_MAX);
  await node.close();
  clearTimeout(deadline);
  desk.close();
  logger.info({}, 'stopped');
  return 'stopped';
}

function logFields(options: ServeOptions): Record<string, unknown> {
  const fields: Record<string, unknown> = { node: options.nodeId, pid: process.pid };
  if (options.zone !== '') fields['zone'] = options.zone;
  return fields;
}

function servingFields(options: ServeOptions, node: RunningNode): Record<string, unknown> {
  return {
    cluster: hexOf(node.clusterId),
    client: formatEndpoint(options.client),
    ...(options.http === null ? {} : { http: formatEndpoint(options.http) }),
    peer: formatEndpoint(options.peer),
    data: options.dataFolder,
    durable: true,
  };
}

/** Says why the node did not start; rethrows what is a fault of the program. */
function explainStart(error: unknown, logger: Logger, desk: StopDesk): ServeEnd {
  if (desk.signal.aborted) {
    logger.info({ reason: desk.reason }, 'stopped before serving');
    return 'stopped';
  }
  if (error instanceof FoundingRefused) {
    logger.fatal({}, error.message);
    return 'refused';
  }
  if (error instanceof LogError) {
    logger.fatal({ code: error.code }, error.message);
    return DISK_ERRORS.has(error.code) ? 'disk' : 'refused';
  }
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (!ADDRESS_ERRORS.has(code)) throw error;
  logger.fatal({ code }, `cannot listen: ${(error as Error).message}`);
  return 'refused';
}

function endByFault(logger: Logger, error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  try {
    logger.fatal({}, `a fault ends this node: ${text}`);
    writeSync(2, `holdfast: a fault ends this node: ${text}\n`);
  } finally {
    process.kill(process.pid, 'SIGKILL');
  }
}

/**
 * What a node has to be told to serve, and how the words of a command line become that.
 *
 * Owns: every check that can be made before a file or a socket is opened; each refusal names the
 * option, what was given and what is wanted. Never: defaults that depend on the machine.
 * Used by: cli/commands/serve.ts, server/main.ts, tests.
 */
import {
  defaultSettings,
  isSettingValid,
  SETTING_RANGES,
  type SettingName,
  type Settings,
} from '../core/locks/settings.js';

export type { SettingName } from '../core/locks/settings.js';

import {
  HISTORY_BYTES_KEPT,
  LOG_TAIL_ENTRIES,
  MEMBERS_MAX,
  SCRUB_BYTES_PER_SECOND,
  SCRUB_PAUSE_MS,
  SNAPSHOT_ENTRIES,
} from '../limits.js';
import { isLogLevel, LOG_LEVELS, type LogLevel } from '../observe/logger.js';
import type { CompactionPolicy } from '../replica/compaction-state.js';

/** A TCP address; `host` without the brackets of an IPv6 address. */
export interface Endpoint {
  readonly host: string;
  /** 1 … 65535. */
  readonly port: number;
}

/** One member of the cluster as the command line names it. */
export interface MemberAddress {
  readonly nodeId: number;
  readonly peer: Endpoint;
  readonly client: Endpoint;
}

export interface ServeOptions {
  /** 1 … NODE_ID_MAX, and among `members`. */
  readonly nodeId: number;
  /** Folder of this node's log and identity; made when missing. */
  readonly dataFolder: string;
  /** Where this node listens. */
  readonly client: Endpoint;
  readonly peer: Endpoint;
  /** HTTP and WebSocket port; null: none. */
  readonly http: Endpoint | null;
  /** Names by which the HTTP port may be asked, beside addresses and localhost. */
  readonly httpNames: readonly string[];
  /** True when the dashboard of this node may free a lock by force. */
  readonly dashboardAdmin: boolean;
  /** Every member, this node included, by ascending node id. */
  readonly members: readonly MemberAddress[];
  /** True when this node founds the cluster if nobody has. */
  readonly bootstrap: boolean;
  /** A label for the failure domain, '' when none. */
  readonly zone: string;
  /** Settings that the founding record takes instead of the defaults. */
  readonly settings: Partial<Settings>;
  readonly logLevel: LogLevel;
  /** When this node makes a snapshot and how much log it keeps; the limits where absent. */
  readonly compaction: Partial<Pick<CompactionPolicy, 'entries' | 'tailEntries'>>;
  /** Bytes of log and snapshots kept behind the newest snapshot, for the audit stream; 0: none. */
  readonly historyBytesMax: number;
  /** The background check of the disk: bytes a second (0: none), and the pause between passes. */
  readonly scrub: { readonly bytesPerSecond: number; readonly pauseMs: number };
  /** Whole address to which spans are sent by OTLP over HTTP; null: none are made. */
  readonly spansUrl: string | null;
  /** True when the end of standard input ends the node (a supervisor holds the other end). */
  readonly untilStdinEnds: boolean;
}

/** The same, as text from a command line; absent where the option was not given. */
export interface ServeWords {
  readonly nodeId?: string | undefined;
  readonly data?: string | undefined;
  readonly client?: string | undefined;
  readonly peer?: string | undefined;
  readonly http?: string | undefined;
  readonly httpName?: readonly string[] | undefined;
  readonly dashboardAdmin?: boolean | undefined;
  readonly peers?: string | undefined;
  readonly clients?: string | undefined;
  readonly bootstrap?: boolean | undefined;
  readonly zone?: string | undefined;
  readonly setting?: readonly string[] | undefined;
  readonly logLevel?: string | undefined;
  readonly snapshotEntries?: string | undefined;
  readonly logTailEntries?: string | undefined;
  readonly otlpEndpoint?: string | undefined;
  /** Variables that stand for absent options. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  readonly historyMib?: string | undefined;
  readonly scrubMib?: string | undefined;
  readonly scrubPauseS?: string | undefined;
  readonly untilStdinEnds?: boolean | undefined;
}

/** Node ids are small numbers that people type. */
export const NODE_ID_MAX = 65_535;
const PORT_MAX = 65_535;
const ENTRIES_GREATEST = 1_000_000_000;
const MIB = 1 << 20;
const HISTORY_MIB_GREATEST = 1_000_000;
const SCRUB_MIB_GREATEST = 1_000;
const SCRUB_PAUSE_S_GREATEST = 1_000_000;
const MS_PER_S = 1_000;
const HOST_NAME_PATTERN = /^[A-Za-z0-9._-]{1,253}$/;
const ZONE_PATTERN = /^[A-Za-z0-9._-]{0,64}$/;

/** A command line that cannot be served; `option` is the one to look at. */
export class OptionError extends Error {
  override readonly name = 'OptionError';
  readonly code = 'USAGE';

  constructor(
    readonly option: string,
    message: string,
  ) {
    super(`${option}: ${message}`);
  }
}

/** Reads a whole number in [least, greatest], written in decimal digits only. */
export function parseWhole(option: string, text: string, least: number, greatest: number): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= greatest)) {
    throw new OptionError(option, `give a whole number ${least} to ${greatest}, not '${text}'`);
  }
  return value;
}

/** Reads `host:port` or `[ipv6]:port`. */
export function parseEndpoint(option: string, text: string): Endpoint {
  const match = /^(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^\s:[\],=]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || !(port >= 1 && port <= PORT_MAX)) {
    throw new OptionError(option, `give HOST:PORT with a port 1 to ${PORT_MAX}, not '${text}'`);
  }
  return { host, port };
}

/** `host:port`, with the brackets that an IPv6 address needs. */
export function formatEndpoint(endpoint: Endpoint): string {
  const host = endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host;
  return `${host}:${endpoint.port}`;
}

/** Reads `1=host:port,2=host:port,…`: at least one member, no id and no address twice. */
export function parseMemberList(option: string, text: string): Map<number, Endpoint> {
  const members = new Map<number, Endpoint>();
  const addresses = new Set<string>();
  for (const word of text.split(',')) {
    const split = word.indexOf('=');
    if (split < 0) throw new OptionError(option, `give ID=HOST:PORT, not '${word}'`);
    const nodeId = parseWhole(option, word.slice(0, split).trim(), 1, NODE_ID_MAX);
    const endpoint = parseEndpoint(option, word.slice(split + 1).trim());
    const address = formatEndpoint(endpoint);
    if (members.has(nodeId)) throw new OptionError(option, `node ${nodeId} is named twice`);
    if (addresses.has(address)) throw new OptionError(option, `${address} is named twice`);
    members.set(nodeId, endpoint);
    addresses.add(address);
  }
  if (members.size > MEMBERS_MAX) {
    throw new OptionError(option, `name at most ${MEMBERS_MAX} members, not ${members.size}`);
  }
  return members;
}

/** Reads `name=value` pairs of replicated settings, such as `leaseTtlMsLeast=100`. */
export function parseSettings(option: string, words: readonly string[]): Partial<Settings> {
  const settings: Partial<Settings> = {};
  for (const word of words) {
    const split = word.indexOf('=');
    const name = word.slice(0, Math.max(split, 0)).trim();
    if (!isSettingName(name)) {
      const names = Object.keys(SETTING_RANGES).join(', ');
      throw new OptionError(option, `give NAME=VALUE, not '${word}'. Names: ${names}`);
    }
    const range = SETTING_RANGES[name];
    const text = word.slice(split + 1).trim();
    const value = parseWhole(`${option} ${name}`, text, range.least, range.greatest);
    if (!isSettingValid(name, value)) throw new OptionError(option, `${name} refuses ${value}`);
    if (settings[name] !== undefined) throw new OptionError(option, `${name} is given twice`);
    settings[name] = value;
  }
  checkRelations(option, { ...defaultSettings(), ...settings });
  return settings;
}

/** A default outside its own bounds would refuse every acquire that names no TTL. */
function checkRelations(option: string, settings: Settings): void {
  for (const kind of ['leaseTtlMs', 'sessionTtlMs'] as const) {
    const least = settings[`${kind}Least`];
    const middle = settings[`${kind}Default`];
    const greatest = settings[`${kind}Greatest`];
    if (least <= middle && middle <= greatest) continue;
    throw new OptionError(
      option,
      `${kind}Least ${least}, ${kind}Default ${middle} and ${kind}Greatest ${greatest} ` +
        'must not fall in this order',
    );
  }
}

/** What a setting in ms is unless the founding record has another value. */
export function defaultSettingMs(name: SettingName): number {
  return defaultSettings()[name];
}

function isSettingName(text: string): text is SettingName {
  return Object.hasOwn(SETTING_RANGES, text);
}

/** Reads host names, without ports. */
function parseHttpNames(words: readonly string[]): readonly string[] {
  for (const word of words) {
    if (HOST_NAME_PATTERN.test(word)) continue;
    throw new OptionError('--http-name', `give a host name without a port, not '${word}'`);
  }
  return words;
}

function parseDashboardAdmin({ dashboardAdmin = false, http }: ServeWords): boolean {
  if (!dashboardAdmin || http !== undefined) return dashboardAdmin;
  throw new OptionError('--dashboard-admin', 'give --http too: the dashboard is served there');
}

const TRACES_VARIABLE = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
const OTLP_VARIABLE = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const TRACES_PATH = 'v1/traces';

function parseHttpUrl(option: string, text: string, path: string): string {
  const whole = path === '' ? text : `${text}${text.endsWith('/') ? '' : '/'}${path}`;
  const url = URL.canParse(whole) ? new URL(whole) : null;
  if (url !== null && /^https?:$/.test(url.protocol)) return url.href;
  throw new OptionError(option, `give an http or https address, not '${text}'`);
}

/** Where spans go: the option, else the variables that OpenTelemetry has for it; null: nowhere. */
function parseSpansUrl({ otlpEndpoint, environment = {} }: ServeWords): string | null {
  if (otlpEndpoint !== undefined) {
    return parseHttpUrl('--otlp-endpoint', otlpEndpoint, TRACES_PATH);
  }
  const isOff =
    environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' ||
    environment['OTEL_TRACES_EXPORTER'] === 'none';
  if (isOff) return null;
  const whole = environment[TRACES_VARIABLE] ?? '';
  if (whole !== '') return parseHttpUrl(TRACES_VARIABLE, whole, '');
  const base = environment[OTLP_VARIABLE] ?? '';
  return base === '' ? null : parseHttpUrl(OTLP_VARIABLE, base, TRACES_PATH);
}

function required(option: string, text: string | undefined): string {
  if (text === undefined || text === '') throw new OptionError(option, 'is required');
  return text;
}

function joinMembers(
  peers: ReadonlyMap<number, Endpoint>,
  clients: ReadonlyMap<number, Endpoint>,
): MemberAddress[] {
  const members: MemberAddress[] = [];
  for (const [nodeId, peer] of peers) {
    const client = clients.get(nodeId);
    if (client === undefined) throw new OptionError('--clients', `node ${nodeId} is missing`);
    members.push({ nodeId, peer, client });
  }
  for (const nodeId of clients.keys()) {
    if (!peers.has(nodeId)) throw new OptionError('--peers', `node ${nodeId} is missing`);
  }
  return members.sort((left, right) => left.nodeId - right.nodeId);
}

/** A node may compact more often than the limits say, or keep less log than it compacts. */
function parseCompaction(words: ServeWords): ServeOptions['compaction'] {
  const { snapshotEntries, logTailEntries } = words;
  const entries =
    snapshotEntries === undefined
      ? SNAPSHOT_ENTRIES
      : parseWhole('--snapshot-entries', snapshotEntries, 1, ENTRIES_GREATEST);
  const tailEntries =
    logTailEntries === undefined
      ? Math.min(LOG_TAIL_ENTRIES, entries)
      : parseWhole('--log-tail-entries', logTailEntries, 0, ENTRIES_GREATEST);
  if (tailEntries > entries) {
    const text = `give at most --snapshot-entries, ${entries}, not ${tailEntries}`;
    throw new OptionError('--log-tail-entries', text);
  }
  return { entries, tailEntries };
}

function parseHistory(text: string | undefined): number {
  if (text === undefined) return HISTORY_BYTES_KEPT;
  return parseWhole('--history-mib', text, 0, HISTORY_MIB_GREATEST) * MIB;
}

function parseScrub({ scrubMib, scrubPauseS }: ServeWords): ServeOptions['scrub'] {
  const bytesPerSecond =
    scrubMib === undefined
      ? SCRUB_BYTES_PER_SECOND
      : parseWhole('--scrub-mib', scrubMib, 0, SCRUB_MIB_GREATEST) * MIB;
  const pauseMs =
    scrubPauseS === undefined
      ? SCRUB_PAUSE_MS
      : parseWhole('--scrub-pause-s', scrubPauseS, 1, SCRUB_PAUSE_S_GREATEST) * MS_PER_S;
  return { bytesPerSecond, pauseMs };
}

/**
 * What may be a slip in options that can be served: one sentence each. Ports that differ are right
 * where something forwards them, and founding would write the wrong ones down for ever otherwise.
 */
export function doubtsOf(options: ServeOptions): string[] {
  const self = options.members.find((member) => member.nodeId === options.nodeId);
  const doubts: string[] = [];
  for (const port of ['peer', 'client'] as const) {
    const [here, there] = [options[port], self?.[port] ?? options[port]];
    if (here.port === there.port) continue;
    const listed = `--${port}s says ${formatEndpoint(there)} for node ${options.nodeId}`;
    doubts.push(`--${port} is ${formatEndpoint(here)}, and ${listed}: right only if forwarded`);
  }
  return doubts;
}

/**
 * Checks the words of `holdfast serve`. Throws OptionError for the first that cannot be served.
 */
export function parseServeOptions(words: ServeWords): ServeOptions {
  const nodeId = parseWhole('--node-id', required('--node-id', words.nodeId), 1, NODE_ID_MAX);
  const dataFolder = required('--data', words.data);
  const client = parseEndpoint('--client', required('--client', words.client));
  const peer = parseEndpoint('--peer', required('--peer', words.peer));
  const http = words.http === undefined ? null : parseEndpoint('--http', words.http);
  const members = joinMembers(
    parseMemberList('--peers', required('--peers', words.peers)),
    parseMemberList('--clients', required('--clients', words.clients)),
  );
  if (!members.some((member) => member.nodeId === nodeId)) {
    const named = members.map((member) => member.nodeId).join(', ');
    throw new OptionError('--node-id', `${nodeId} is not in --peers, which names ${named}`);
  }
  const zone = words.zone ?? '';
  if (!ZONE_PATTERN.test(zone)) {
    throw new OptionError('--zone', `give at most 64 of A-Z a-z 0-9 . _ -, not '${zone}'`);
  }
  const logLevel = words.logLevel ?? 'info';
  if (!isLogLevel(logLevel)) {
    throw new OptionError('--log-level', `give one of ${LOG_LEVELS.join(', ')}, not '${logLevel}'`);
  }
  return {
    nodeId,
    dataFolder,
    client,
    peer,
    http,
    httpNames: parseHttpNames(words.httpName ?? []),
    dashboardAdmin: parseDashboardAdmin(words),
    members,
    bootstrap: words.bootstrap ?? false,
    zone,
    settings: parseSettings('--setting', words.setting ?? []),
    logLevel,
    compaction: parseCompaction(words),
    historyBytesMax: parseHistory(words.historyMib),
    scrub: parseScrub(words),
    spansUrl: parseSpansUrl(words),
    untilStdinEnds: words.untilStdinEnds ?? false,
  };
}

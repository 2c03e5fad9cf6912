/**
 * The command line of `npm run bench`: profiles, their defaults, options.
 *
 * Owns: the names of profiles and options, which scripts rely on. Never: runs anything.
 * Used by: main.ts.
 */
import { parseArgs } from 'node:util';

/** Wrong options, as sysexits.h numbers it. */
export const EXIT_USAGE = 64;
/** Not in this build, or not on this machine. */
export const EXIT_UNAVAILABLE = 69;

export interface ProfileDefaults {
  readonly says: string;
  readonly connections: number;
  /** Requests in flight over all connections; null in an open loop. */
  readonly inflight: number | null;
  /** Operations a second that a schedule asks for; null in a closed loop. */
  readonly rate: number | null;
  readonly durationS: number;
  /** False: has its name, comes later. */
  readonly isBuilt: boolean;
}

function closed(says: string, connections: number, inflight: number): ProfileDefaults {
  return { says, connections, inflight, rate: null, durationS: 10, isBuilt: true };
}

function open(says: string, rate: number, durationS: number): ProfileDefaults {
  return { says, connections: 8, inflight: null, rate, durationS, isBuilt: true };
}

function later(says: string): ProfileDefaults {
  return { says, connections: 1, inflight: null, rate: null, durationS: 10, isBuilt: false };
}

/** The profiles, in the order of the help. */
export const PROFILES: Readonly<Record<string, ProfileDefaults>> = {
  headline: closed('closed loop, acquire and release, 100,000 names, 2,048 in flight', 8, 2_048),
  saturated: closed('the same with 8,192 in flight', 16, 8_192),
  'inflight-1024': closed('the same with 1,024 in flight', 8, 1_024),
  'open-loop': open('a fixed schedule of 50,000/s, latency from the moment due', 50_000, 10),
  latency: closed('one connection, one in flight', 1, 1),
  unpipelined: closed('256 connections, one in flight each', 256, 256),
  interview: open(
    '20,000 leases renewed every 10 s, 2,000 acquires/s, 2,000 releases/s, one replica down',
    6_000,
    30,
  ),
  burst: open('the interview load to 60,000/s at once, and back', 60_000, 60),
  zipf: closed('names by Zipf 0.99, contended acquires wait; beside headline', 8, 2_048),
  hot: closed('one lock, 1,000 waiters: hand-overs a second', 8, 1_000),
  expiry: closed('100,000 leases end within a second, under the headline load', 8, 2_048),
  failover: { ...closed('the leader is killed again and again', 1, 16), durationS: 60 },
  peers: closed('etcd, ZooKeeper and Redlock over five Redis, beside Holdfast', 8, 1_024),
  'watch-fanout': {
    ...open('5,000 watchers, 50 on each of 100 prefixes; 2,000 events/s to all of them', 2_000, 10),
    connections: 100,
  },
  snapshot: later('a million leases: restart, memory, pauses'),
  http: closed('HTTP/JSON by autocannon: 64 keep-alive connections, each in a session', 64, 64),
};

export interface BenchOptions {
  readonly profile: string;
  readonly durationS: number;
  readonly connections: number;
  readonly inflight: number | null;
  readonly rate: number | null;
  readonly leases: number;
  readonly repeats: number;
  readonly json: string | null;
  readonly hgrm: string | null;
  readonly plot: string | null;
  readonly endpoints: string | null;
  /** Words to keep the report under in loadtest/history.jsonl; null: not kept. */
  readonly keep: string | null;
}

/** What the command line asks for beside a run. */
export type BenchWish =
  | { readonly kind: 'run'; readonly options: BenchOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'report' };

export class UsageError extends Error {
  constructor(
    message: string,
    readonly status: number = EXIT_USAGE,
  ) {
    super(message);
  }
}

const LEASES_DEFAULT = 100_000;
/** Profiles that start and end what they measure. */
const OWN_NODES = ['failover', 'peers'];

export function helpText(): string {
  const lines = Object.entries(PROFILES).map(([name, { says, isBuilt }]) => {
    return `  ${name.padEnd(14)}${says}${isBuilt ? '' : ' (not in this build yet)'}`;
  });
  return `usage: npm run bench -- --profile NAME [options]

Drives five nodes of its own in a scratch folder, or those of --endpoints, with real operations.
The figures go to the standard output as JSON, everything else to the standard error.

Profiles:
${lines.join('\n')}

Options:
  --duration S      seconds that are measured, after a warm-up
  --rate R          operations a second, in an open loop
  --connections C   connections to the leader
  --inflight I      requests in flight over all of them, in a closed loop
  --leases N        leases that end together (expiry: ${LEASES_DEFAULT})
  --repeats N       runs, each on nodes of its own; reported is the one in the middle
  --json FILE       the report, also as a file
  --hgrm FILE       the whole latency distribution
  --plot FILE       the same and every second of the run, as a page for a browser
  --endpoints LIST  host:port,… of a running cluster, instead of five nodes of its own
  --keep NOTE       adds the report to loadtest/history.jsonl and writes docs/BENCHMARKS.md
  --report          writes docs/BENCHMARKS.md from the history, and runs nothing

Ends with 0 when the figure may be believed: no error, no wrong or missing reply, equal digests,
every operation found in the log. 1: it may not. ${EXIT_USAGE}: wrong options.
${EXIT_UNAVAILABLE}: not in this build.`;
}

const WORDS = {
  profile: { type: 'string', default: 'headline' },
  duration: { type: 'string' },
  rate: { type: 'string' },
  connections: { type: 'string' },
  inflight: { type: 'string' },
  leases: { type: 'string' },
  repeats: { type: 'string' },
  json: { type: 'string' },
  hgrm: { type: 'string' },
  plot: { type: 'string' },
  endpoints: { type: 'string' },
  keep: { type: 'string' },
  report: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** Throws UsageError. */
export function parseBench(words: readonly string[]): BenchWish {
  const values = parseWords(words);
  if (values.help) return { kind: 'help' };
  if (values.report) return { kind: 'report' };
  const profile = values.profile;
  const defaults = PROFILES[profile];
  if (defaults === undefined) {
    throw new UsageError(`--profile ${profile}: one of ${Object.keys(PROFILES).join(', ')}`);
  }
  if (!defaults.isBuilt) {
    throw new UsageError(`profile ${profile}: not in this build yet`, EXIT_UNAVAILABLE);
  }
  const number = (name: string, text: string | undefined, otherwise: number | null) =>
    text === undefined ? otherwise : positive(name, text);
  if (values.rate !== undefined && defaults.rate === null) {
    throw new UsageError(`--rate: ${profile} is a closed loop, use --inflight`);
  }
  if (values.inflight !== undefined && defaults.inflight === null) {
    throw new UsageError(`--inflight: ${profile} is an open loop, use --rate`);
  }
  if (values.endpoints !== undefined && OWN_NODES.includes(profile)) {
    throw new UsageError(`--endpoints: ${profile} ends nodes, it wants nodes of its own`);
  }
  return {
    kind: 'run',
    options: {
      profile,
      durationS: number('duration', values.duration, defaults.durationS) ?? 0,
      connections: number('connections', values.connections, defaults.connections) ?? 0,
      inflight: number('inflight', values.inflight, defaults.inflight),
      rate: number('rate', values.rate, defaults.rate),
      leases: number('leases', values.leases, LEASES_DEFAULT) ?? 0,
      repeats: number('repeats', values.repeats, 1) ?? 1,
      json: values.json ?? null,
      hgrm: values.hgrm ?? null,
      plot: values.plot ?? null,
      endpoints: values.endpoints ?? null,
      keep: values.keep ?? null,
    },
  };
}

function parseWords(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options: WORDS }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function positive(name: string, text: string): number {
  const value = Number(text);
  const isWhole = Number.isInteger(value) || name === 'duration';
  if (!(value > 0) || !isWhole) throw new UsageError(`--${name} ${text}: wanted a number above 0`);
  return value;
}

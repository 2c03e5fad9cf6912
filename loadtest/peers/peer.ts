/**
 * What the comparison asks of another lock service, and what it reports of it.
 *
 * Owns: the shape of a peer, the tally of one slice, processes that a peer starts (ended at stop,
 * each by its own id) and their scratch folder. Never: a protocol. Used by: compare.ts, each peer.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Latency } from '../latency.js';

/** What one slice counted. */
export class Tally {
  isRecording = false;
  ops = 0;
  errors = 0;
  readonly latency = new Latency();

  /** One acquire or one release was answered. */
  onDone(isGood: boolean, latencyMs: number): void {
    if (!isGood) this.errors += 1;
    else if (this.isRecording) {
      this.ops += 1;
      this.latency.record(latencyMs);
    }
  }
}

export interface OwnLoader {
  /** Operations a second that its own public loader reaches here; null when there is none. */
  readonly perSecond: number | null;
  /** What was run, or why nothing was. */
  readonly note: string;
}

export interface Peer {
  readonly name: string;
  /** What an acknowledged operation is worth. */
  readonly durability: string;
  readonly settings: string;
  /** In-flight counts to try beside the common one. */
  readonly inflights: readonly number[];
  /** Its version, null when it is not installed here. */
  version(): string | null;
  /** Starts five members and connects. */
  start(): Promise<void>;
  /** Acquires and releases with so many seats until `stopDriving`. */
  drive(inflight: number, tally: Tally): void;
  /** Resolves when nothing is out. */
  stopDriving(): Promise<void>;
  /** Runs its own public loader for about so long, against the members that run. */
  runOwnLoader(seconds: number): Promise<OwnLoader>;
  stop(): Promise<void>;
}

/** One row of the report. */
export interface PeerFigure {
  readonly name: string;
  readonly version: string;
  readonly durability: string;
  readonly settings: string;
  readonly inflight: number;
  readonly ops_per_second: number;
  readonly min: number;
  readonly max: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly is_best: boolean;
  /** Holdfast's figure over this one: at its best when this is its best, else at the same count. */
  readonly ratio: number | null;
  readonly own_loader: number | null;
  readonly own_loader_note: string;
}

/** The first line that a program prints of its version, null when there is no such program. */
export function firstLine(program: string, ...words: string[]): string | null {
  const ran = spawnSync(program, words, { encoding: 'utf8' });
  if (ran.error !== undefined || ran.status !== 0) return null;
  return ran.stdout.trim().split('\n')[0] ?? null;
}

export const MEMBERS = 5;
export const LOOPBACK = '127.0.0.1';

/** The processes of a peer's members. */
export class Members {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'holdfast-peer-'));
  private readonly children: ChildProcess[] = [];

  /** A folder for one member. */
  folderOf(member: number): string {
    const folder = path.join(this.folder, `member-${member}`);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  spawn(member: number, program: string, words: readonly string[]): void {
    const output = openSync(this.outputFile(member), 'a');
    const child = spawn(program, words, {
      stdio: ['ignore', output, output],
      cwd: this.folderOf(member),
    });
    closeSync(output);
    child.on('error', () => undefined); // a member that is not there is seen by who connects
    this.children.push(child);
  }

  /** The end of what a member said, for an error. */
  tail(member: number): string {
    return readFileSync(this.outputFile(member), 'utf8').slice(-2_000);
  }

  async end(): Promise<void> {
    await Promise.all(this.children.map(endOf));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private outputFile(member: number): string {
    return path.join(this.folder, `output-${member}.log`);
  }
}

function endOf(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve();
  }
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGKILL');
  return gone;
}

/**
 * What a held lock costs in memory: its name, its lease, its place in every index.
 *
 * Owns: a lock machine filled with leases in sessions of equal size, by its own commands. The
 * process has been started with a collector that can be called. Used by: main.ts.
 */
import {
  Command,
  CommandKind,
  PRINCIPAL_BUILT_IN,
  RequestKind,
} from '../src/core/locks/command.js';
import { LockMachine } from '../src/core/locks/lock-machine.js';
import { Outcome, OutcomeCode } from '../src/core/locks/outcome.js';
import { defaultSettings } from '../src/core/locks/settings.js';
import { cost, type Figure } from './figure.js';

const SESSIONS = 1_000;
const OPERATIONS_AN_ENTRY = 500;
const COUNTS = [100_000, 1_000_000];
const SESSION_TTL_MS = 3_600_000;
const LEASE_TTL_MS = 3_600_000;

class Filler {
  readonly machine = new LockMachine(defaultSettings(), new Uint32Array(4).fill(7));
  leases = 0;
  private readonly command = new Command();
  private readonly outcome = new Outcome();
  private readonly ids = new Int32Array(4 * SESSIONS);
  private index = 0;

  constructor() {
    this.begin();
    for (let at = 0; at < SESSIONS; at += 1) this.openSession(at);
    this.machine.endEntry();
  }

  fillTo(count: number): void {
    while (this.leases < count) {
      this.begin();
      for (let i = 0; i < OPERATIONS_AN_ENTRY; i += 1) this.acquire();
      this.machine.endEntry();
    }
  }

  private begin(): void {
    this.index += 1;
    this.machine.beginEntry(this.index, this.index, this.index, 2, 3, 4);
  }

  private apply(bytes: Uint8Array): void {
    const { command, outcome } = this;
    command.bytes = bytes;
    command.principal = PRINCIPAL_BUILT_IN;
    this.machine.apply(command, outcome);
    if (outcome.code !== OutcomeCode.Ok) throw new Error(`answered ${outcome.code}`);
  }

  private openSession(at: number): void {
    const { command, outcome, ids } = this;
    const request = Buffer.from(`open-${at}`);
    command.reset();
    command.kind = CommandKind.SessionOpen;
    command.requestKind = RequestKind.Free;
    command.requestOffset = 0;
    command.requestBytes = request.length;
    command.ttlMs = SESSION_TTL_MS;
    this.apply(request);
    ids.set([outcome.id0, outcome.id1, outcome.id2, outcome.id3], 4 * at);
  }

  private acquire(): void {
    const { command, ids } = this;
    const at = 4 * (this.leases % SESSIONS);
    const name = Buffer.from(`load/${this.leases}`);
    command.reset();
    command.kind = CommandKind.Acquire;
    command.requestKind = RequestKind.Sequence;
    command.sequence = Math.floor(this.leases / SESSIONS) + 1;
    command.acknowledgedMark = command.sequence - 1;
    command.hasSession = true;
    command.session0 = ids[at] as number;
    command.session1 = ids[at + 1] as number;
    command.session2 = ids[at + 2] as number;
    command.session3 = ids[at + 3] as number;
    command.nameOffset = 0;
    command.nameBytes = name.length;
    command.ttlMs = LEASE_TTL_MS;
    this.apply(name);
    this.leases += 1;
  }
}

function bytesNow(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

export async function measure(): Promise<Figure[]> {
  const before = bytesNow();
  const filler = new Filler();
  return COUNTS.map((count) => {
    filler.fillTo(count);
    const bytes = (bytesNow() - before) / count;
    return cost(`memory of a held lock, ${count / 1_000} thousand of them`, 'B', bytes);
  });
}

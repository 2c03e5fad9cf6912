/**
 * The production lock machine behind the plain forms of the model.
 *
 * Owns: which 128 bits stand for a symbolic lease or session, learnt from the answers, and the
 * check that one symbol never has two ids nor one id two symbols. Never: rules. Used by: the
 * property test and the unit tests of the lock machine.
 */

import { Command, CommandKind } from '../../src/core/locks/command.js';
import { LockMachine, type MachineCounts } from '../../src/core/locks/lock-machine.js';
import { Outcome, OutcomeCode } from '../../src/core/locks/outcome.js';
import type { LockPage } from '../../src/core/locks/readings.js';
import type { RestoreTerms } from '../../src/core/locks/restored-state.js';
import type { Settings } from '../../src/core/locks/settings.js';
import { MachineRestorer } from '../../src/core/locks/snapshot-restorer.js';
import { fillCommand, type Id } from './command-bytes.js';
import type {
  ModelCommand,
  ModelCompletion,
  ModelEvent,
  ModelLock,
  ModelLookup,
  ModelOutcome,
  ModelStep,
} from './model-types.js';

const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();
const DIGEST_KEY = Uint32Array.of(0x01234567, 0x89abcdef, 0xfedcba98, 0x76543210);
/** Stands for every session and lease that was never issued. */
const UNKNOWN: Id = [0xdead, 0xbeef, 1, 2];

function hexOf(id: Id): string {
  return id.map((word) => word.toString(16).padStart(8, '0')).join('');
}

/** Symbols and their ids, each the other's only partner. */
class Symbols {
  private readonly ids = new Map<string, Id>();
  private readonly symbols = new Map<string, string>();

  /** Says that `symbol` has `id`, for ever. */
  learn(symbol: string, id: Id): void {
    const known = this.symbols.get(hexOf(id));
    if (known !== undefined || this.ids.has(symbol)) {
      throw new Error(`id ${hexOf(id)} given to ${symbol}, which is that of ${known}`);
    }
    this.ids.set(symbol, id);
    this.symbols.set(hexOf(id), symbol);
  }

  idOf(symbol: string): Id {
    return this.ids.get(symbol) ?? UNKNOWN;
  }

  symbolOf(id: Id): string | undefined {
    return this.symbols.get(hexOf(id));
  }
}

/** One production machine that applies one log. */
export class ProductionMachine {
  private machine: LockMachine;
  private readonly symbols = new Symbols();
  private readonly command = new Command();
  private readonly outcome = new Outcome();
  private sessionsOpened = 0;
  private index = 0;

  constructor(
    settings: Settings,
    private readonly digestKey: Uint32Array = DIGEST_KEY,
  ) {
    this.machine = new LockMachine(settings, digestKey);
  }

  /**
   * Goes on with a machine that was restored from this one's snapshot, with other hash seeds.
   * Returns the chunks. Throws when the rows are refused or the digest differs.
   */
  restart(chunkBytes: number, rowsAtOnce: number): Uint8Array[] {
    const chunks = this.snapshot(chunkBytes);
    const restorer = new MachineRestorer(this.digestKey, Uint32Array.of(this.index, chunkBytes));
    for (const chunk of chunks) {
      restorer.add(chunk);
      while (!restorer.step(rowsAtOnce));
    }
    const restored = restorer.finish();
    if (restored === null) throw new Error(`the snapshot is refused: ${restorer.fault}`);
    const digests = [this.machine.digest(), restored.digest()];
    if (digests[0] !== digests[1]) throw new Error(`digest ${digests[1]}, wanted ${digests[0]}`);
    if (JSON.stringify(this.machine.counts) !== JSON.stringify(restored.counts)) {
      throw new Error(`counts ${JSON.stringify(restored.counts)}`);
    }
    this.machine = restored;
    return chunks;
  }

  /** Goes on with the state that a restore makes of this one. */
  restore(terms: RestoreTerms): void {
    this.machine = this.machine.restored(terms, this.digestKey);
  }

  /** The machine that a cluster of this key begins with. */
  restored(terms: RestoreTerms, key: number): LockMachine {
    return this.machine.restored(terms, new Uint32Array(4).fill(key));
  }

  get grantsFrom(): number {
    return this.machine.grantsFrom;
  }

  /** What a restorer says of these chunks, '' when it takes them. */
  faultOf(chunks: readonly Uint8Array[]): string {
    const restorer = new MachineRestorer(this.digestKey, new Uint32Array(2));
    for (const chunk of chunks) {
      restorer.add(chunk);
      while (!restorer.step(100));
      if (restorer.fault !== '') return restorer.fault;
    }
    restorer.finish();
    return restorer.fault;
  }

  snapshot(chunkBytes: number): Uint8Array[] {
    const chunks: Uint8Array[] = [];
    this.machine.writeSnapshot(chunkBytes, (chunk) => chunks.push(chunk.slice()));
    return chunks;
  }

  /** Applies one entry at `stamp` (cluster time, ms, never falling) and says all that it gave. */
  apply(stamp: number, commands: readonly ModelCommand[]): ModelStep {
    this.beginEntry(stamp);
    const outcomes = commands.map((command) => this.applyCommand(command));
    return this.endEntry(outcomes);
  }

  /** The first part of an entry. Its 128 bits follow from its index, as if the leader drew them. */
  beginEntry(stamp: number): void {
    this.index += 1;
    const { index } = this;
    const bits = [1, 2, 3, 4].map((lane) => Math.imul(index * 8 + lane, 0x9e3779b1) >>> 0);
    const [bits0 = 0, bits1 = 0, bits2 = 0, bits3 = 0] = bits;
    this.machine.beginEntry(index, stamp, bits0, bits1, bits2, bits3);
  }

  /** One command of the entry. */
  applyCommand(command: ModelCommand): ModelOutcome {
    const { session, lease, targetSession } = command;
    const named = targetSession === undefined ? `lease ${lease}` : `session ${targetSession}`;
    const isNamed = lease !== undefined || targetSession !== undefined;
    this.learnLeases();
    fillCommand(
      this.command,
      command,
      session === undefined ? null : this.symbols.idOf(`session ${session}`),
      isNamed ? this.symbols.idOf(named) : null,
    );
    this.machine.apply(this.command, this.outcome);
    this.learnLeases();
    return this.plainOutcome(this.outcome);
  }

  /** Ends the entry that answered `outcomes`. */
  endEntry(outcomes: ModelOutcome[]): ModelStep {
    this.machine.endEntry();
    return { outcomes, completions: this.takeCompletions(), events: this.takeEvents() };
  }

  /** What a read of `name` shows. */
  get(name: string): ModelLock {
    const bytes = encoder.encode(name);
    const reading = this.machine.get(bytes, 0, bytes.length, 1_000);
    return {
      token: reading?.holder?.token ?? 0,
      since: reading?.holder?.since ?? 0,
      deadline: reading?.holder?.deadline ?? 0,
      places: reading?.queue.map(({ place }) => place) ?? [],
    };
  }

  /** What became of the request id of `command`, in the words of the machine, and its outcome. */
  lookup(command: ModelCommand): ModelLookup {
    this.outcome.reset();
    const state = this.lookupState(command);
    // Whoever asks says so: the record of a wait that stands has no code of its own.
    if (state === 'queued') this.outcome.code = OutcomeCode.Queued;
    return { state, outcome: this.plainOutcome(this.outcome) };
  }

  private lookupState({ request, principal, session }: ModelCommand): ModelLookup['state'] {
    const { machine, outcome } = this;
    if (request.kind === 'none') return 'unknown';
    if (request.kind === 'free') {
      return machine.lookupFree(principal, encoder.encode(request.id), outcome);
    }
    const reading = machine.findSession(principal, ...this.symbols.idOf(`session ${session}`));
    if (reading === null) return 'unknown';
    return machine.lookupSequence(reading.slot, request.sequence, outcome);
  }

  digest(): string {
    return this.machine.digest();
  }

  get counts(): MachineCounts {
    return this.machine.counts;
  }

  /** The names of locks under `prefix` in the order of the list, page by page of `limit`. */
  list(prefix: string, limit: number): string[] {
    const names: string[] = [];
    let cursor: Uint8Array | null = null;
    do {
      const page: LockPage = this.machine.list(encoder.encode(prefix), cursor, limit, 2);
      names.push(...page.locks.map(({ name }) => decoder.decode(name)));
      cursor = page.cursor;
    } while (cursor !== null);
    return names;
  }

  /** `lease 17`, `session 3`; a new id is learnt where it may be new. */
  private subjectOf(outcome: Outcome): string {
    const id: Id = [outcome.id0, outcome.id1, outcome.id2, outcome.id3];
    if (id.every((word) => word === 0)) return '';
    const known = this.symbols.symbolOf(id);
    if (known !== undefined) return known;
    if (outcome.code !== OutcomeCode.Ok || outcome.replay)
      throw new Error(`id from nowhere: ${id}`);
    const isSession = outcome.kind === CommandKind.SessionOpen;
    if (isSession) this.sessionsOpened += 1;
    const symbol = isSession ? `session ${this.sessionsOpened}` : `lease ${outcome.token}`;
    this.symbols.learn(symbol, id);
    return symbol;
  }

  private plainOutcome(outcome: Outcome): ModelOutcome {
    return {
      code: outcome.code,
      kind: outcome.kind,
      replay: outcome.replay,
      entryTime: outcome.entryTime,
      subject: this.subjectOf(outcome),
      token: outcome.token,
      revision: outcome.revision,
      deadline: outcome.deadline,
      ttlMs: outcome.ttlMs,
      ahead: outcome.ahead,
      cause: outcome.cause,
      holderSince: outcome.holderSince,
      holderPrincipal: outcome.holderPrincipal,
      blob: decoder.decode(outcome.blob),
    };
  }

  /** A wait that was granted in this entry tells its lease's id, which a replay may repeat. */
  private learnLeases(): void {
    const { completions } = this.machine;
    for (let i = 0; i < completions.count; i += 1) this.subjectOf(completions.at(i).outcome);
  }

  private takeCompletions(): ModelCompletion[] {
    const { completions } = this.machine;
    const taken: ModelCompletion[] = [];
    for (let i = 0; i < completions.count; i += 1) {
      const { place, outcome } = completions.at(i);
      taken.push({ place, outcome: this.plainOutcome(outcome) });
    }
    return taken;
  }

  private takeEvents(): ModelEvent[] {
    const { events } = this.machine;
    const taken: ModelEvent[] = [];
    for (let i = 0; i < events.count; i += 1) {
      const event = events.at(i);
      const { kind, revision, token, place, cause, principal } = event;
      const name = decoder.decode(this.machine.eventName(event));
      taken.push({ kind, revision, name, token, place, cause, principal });
    }
    return taken;
  }
}

/**
 * The test's end of a holder process: starts it, stops it, tells it to write.
 *
 * Owns: the process, ended by its id. Used by: story.ts, postgres-cases.ts.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { stateOf } from '../cluster/process-state.js';
import { Hopeless, waitFor } from '../cluster/wait-for.js';
import { compiledFile } from '../gate/paths.js';
import type { HolderMessage, HolderPlan } from './holder-process.js';

/** It may have connected, and waited for its lock, for as long as PATIENCE lets it. */
const TELL_MS_MAX = 180_000;

export class Holder {
  /** Fencing token of its lease. */
  token = 0;
  private readonly child: ChildProcess;
  private readonly told: HolderMessage[] = [];

  private constructor(plan: HolderPlan, signal: AbortSignal | undefined) {
    const options = { killSignal: 'SIGKILL', ...(signal && { signal }) } as const;
    const file = compiledFile('test/guards/holder-process.ts');
    this.child = fork(file, [JSON.stringify(plan)], options);
    this.child.on('error', () => undefined); // the signal; next() tells that it has ended
    this.child.on('message', (message: HolderMessage) => this.told.push(message));
  }

  /** Resolves when it holds the lock. The signal ends it, also while it is stopped. */
  static async start(plan: HolderPlan, signal?: AbortSignal): Promise<Holder> {
    const holder = new Holder(plan, signal);
    const message = await holder.next();
    if (message.type !== 'holds') throw new Error(`holder said ${message.type}`);
    holder.token = message.token;
    return holder;
  }

  /** Has it write; what became of that comes by next(), once it runs. */
  write(value: string): void {
    this.child.send(value);
  }

  /** What it tells next. */
  async next(): Promise<HolderMessage> {
    const look = () => {
      const ended = this.child.exitCode ?? this.child.signalCode;
      if (this.told.length === 0 && ended !== null) throw new Hopeless(`holder ended: ${ended}`);
      return this.told.shift();
    };
    return waitFor('the holder to tell', look, TELL_MS_MAX);
  }

  /** Stops it by SIGSTOP; resolves when it stands still. */
  async stop(): Promise<void> {
    this.child.kill('SIGSTOP');
    await waitFor('the holder to stop', () => stateOf(this.child.pid ?? 0) === 'T');
  }

  cont(): void {
    this.child.kill('SIGCONT');
  }

  end(): void {
    this.child.kill('SIGKILL');
  }
}

/**
 * The drill's end of a program that holds a lock: starts it, stops it, tells it what to do.
 *
 * Owns: the process, ended by its id, and what it told. Never: what is made of that.
 * Used by: the scenarios.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CliError } from '../exit-codes.js';
import { Hopeless, until } from './until.js';

/** What the process is to hold and write; given as JSON. */
export interface ActorPlan {
  readonly endpoints: readonly string[];
  readonly lock: string;
  readonly ttlMs: number;
  /** Its acquire in the audit stream. */
  readonly requestId: string;
  /** The resource. */
  readonly file: string;
  readonly isGuarded: boolean;
  /** Address of the one node that its client can reach; null: all of them. */
  readonly onlyNode: string | null;
}

/** What it is told to do; one order at a time. */
export type ActorOrder =
  | { readonly type: 'write'; readonly writer: string }
  | { readonly type: 'renew'; readonly deadlineMs: number }
  | { readonly type: 'release' }
  | { readonly type: 'cut' };

/** What it tells. `state` is what its lease said of itself right after the write. */
export type ActorMessage =
  | { readonly type: 'holds'; readonly token: number; readonly revision: number }
  | { readonly type: 'wrote'; readonly state: string }
  | {
      readonly type: 'refused';
      readonly offered: number;
      readonly seen: number;
      readonly state: string;
    }
  | { readonly type: 'renewed'; readonly token: number }
  | { readonly type: 'released'; readonly revision: number }
  | { readonly type: 'cut' }
  | { readonly type: 'failed'; readonly code: string; readonly message: string }
  | { readonly type: 'lost'; readonly code: string; readonly atMs: number };

/** Why its lease was lost, and when its signal fired. */
export type Loss = Extract<ActorMessage, { type: 'lost' }>;

/** Between its start and its grant: it may stand in a queue. */
const START_MS_MAX = 60_000;
const SCRIPT = fileURLToPath(new URL('./actor-process.js', import.meta.url));

/** The state letter of /proc/PID/stat: T is stopped. '' when there is no such process. */
function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.charAt(stat.lastIndexOf(')') + 2);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}

/** Stops a process and resolves when it stands still. */
export async function suspend(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  await until(`process ${child.pid} to stand still`, () => stateOf(child.pid ?? 0) === 'T');
}

export class Actor {
  /** Fencing token and revision of its grant. */
  token = 0;
  revision = 0;
  /** Set once its lease was lost. */
  loss: Loss | null = null;
  private readonly child: ChildProcess;
  private readonly told: ActorMessage[] = [];

  private constructor(readonly plan: ActorPlan) {
    this.child = fork(SCRIPT, [JSON.stringify(plan)], { stdio: ['ignore', 'ignore', 2, 'ipc'] });
    this.child.on('message', (message: ActorMessage) => {
      if (message.type === 'lost') this.loss = message;
      else this.told.push(message);
    });
  }

  /** Resolves when it holds the lock. Throws CliError DRILL_FAILED when it does not get it. */
  static async start(plan: ActorPlan, onStarted: (actor: Actor) => void): Promise<Actor> {
    const actor = new Actor(plan);
    onStarted(actor);
    const message = await actor.next(START_MS_MAX);
    if (message.type !== 'holds') {
      const words = `a program could not take ${plan.lock}: ${JSON.stringify(message)}`;
      throw new CliError('DRILL_FAILED', words);
    }
    actor.token = message.token;
    actor.revision = message.revision;
    return actor;
  }

  /** Gives an order; what becomes of it is told by next(), once the process runs. */
  order(order: ActorOrder): void {
    this.child.send(order);
  }

  /** What it tells next, but for a loss. */
  async next(timeoutMs?: number): Promise<ActorMessage> {
    return until(
      'a program to tell what it did',
      () => {
        const ended = this.child.exitCode ?? this.child.signalCode;
        if (this.told.length === 0 && ended !== null) {
          throw new Hopeless(`the program ended: ${ended}`);
        }
        return this.told.shift() ?? null;
      },
      timeoutMs,
    );
  }

  /** Waits until its lease was lost. */
  lost(): Promise<Loss> {
    return until('a program to lose its lease', () => this.loss);
  }

  /** Stops it by SIGSTOP; resolves when it stands still. */
  stop(): Promise<void> {
    return suspend(this.child);
  }

  cont(): void {
    this.child.kill('SIGCONT');
  }

  /** Ends it at once, stopped or not. */
  end(): void {
    this.child.kill('SIGKILL');
  }
}

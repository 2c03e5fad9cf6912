/**
 * Fencing tokens checked by Redis: one script compares the token and carries out the commands.
 *
 * Owns: the call of the script, where the mark is kept, and what a Redis must be set to for the
 * mark to last. Never: the driver; it takes a function that sends one command. Used by: programs,
 * `holdfast guard`.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { badRequest } from '../../client/errors.js';
import { checkName } from '../../client/options.js';
import { checkFence, type Fence, type FenceKind, type Mark } from '../fence.js';
import type { Guard } from '../guard.js';
import { StaleTokenError, unknownWrite } from '../stale-token.js';
import { type GuardObserver, Tally } from '../tally.js';

/**
 * Sends one command and gives its reply. With @redis/client:
 * `(words) => client.sendCommand(words)`; with ioredis:
 * `([name, ...words]) => redis.call(name, ...words)`.
 */
export type RedisCall = (words: string[]) => Promise<unknown>;

export interface RedisGuardOptions {
  readonly observer?: GuardObserver;
  /**
   * What stands before the lock's name in the key of its mark. In a Redis Cluster give a hash tag
   * that the keys of the commands have too, such as `{orders}:mark:`. Default `holdfast:mark:`.
   */
  readonly prefix?: string;
}

/** What to do when the token is good: the commands as lists of words, and the keys they touch. */
export interface RedisWrite {
  readonly keys: readonly string[];
  readonly commands: readonly (readonly string[])[];
}

const RESOURCE = 'redis';
const PREFIX_DEFAULT = 'holdfast:mark:';

interface Script {
  readonly text: string;
  readonly digest: string;
}

function readScript(): Script {
  const text = readFileSync(new URL('./guard.lua', import.meta.url), 'utf8');
  return { text, digest: createHash('sha1').update(text).digest('hex') };
}

export class RedisGuard implements Guard {
  readonly tally: Tally;
  readonly #call: RedisCall;
  readonly #prefix: string;
  readonly #script = readScript();

  constructor(call: RedisCall, options: RedisGuardOptions = {}) {
    this.#call = call;
    this.#prefix = options.prefix ?? PREFIX_DEFAULT;
    this.tally = new Tally(RESOURCE, options.observer);
  }

  /**
   * Carries out the commands, all in one step with the check, and gives their replies. Rejects
   * StaleTokenError, and nothing was done; UNKNOWN_OUTCOME when the connection broke. A command
   * that fails leaves those before it done, as in every script of Redis.
   *
   * @example
   * await guard.write(fenceOf(lease), { keys: ['cursor'], commands: [['SET', 'cursor', '700']] });
   */
  async write(fence: Fence, { keys, commands }: RedisWrite): Promise<unknown[]> {
    const checked = checkFence(fence);
    const [isAccepted, mark, , ...replies] = await this.#run(checked, checked.kind, keys, commands);
    const seen = Number(mark);
    if (isAccepted !== 1) {
      this.tally.onRefused(checked, seen);
      throw new StaleTokenError(RESOURCE, checked, seen);
    }
    this.tally.onAccepted(checked, seen);
    return replies;
  }

  async raise(lock: string, token: number): Promise<Mark> {
    const fence = checkFence({ lock, token });
    await this.#run(fence, 'barrier', [], []);
    const mark = await this.mark(lock);
    this.tally.onRaised(fence, mark.token);
    return mark;
  }

  async mark(lock: string): Promise<Mark> {
    const key = this.#prefix + checkName(lock);
    const reply = await this.#call(['HMGET', key, 'token', 'refused']);
    const [token, refused] = reply as (string | null)[];
    return { lock, token: Number(token ?? 0), refused: Number(refused ?? 0) };
  }

  /**
   * What of this Redis's settings could make it forget a mark, one sentence each; empty when
   * nothing could. A forgotten mark lets a stale token in.
   */
  async weaknesses(): Promise<string[]> {
    const found: string[] = [];
    const wanted: [string, readonly string[], string][] = [
      ['maxmemory-policy', ['noeviction'], 'marks may be evicted'],
      ['appendonly', ['yes'], 'marks written since the last snapshot are lost in a crash'],
      ['appendfsync', ['always'], 'marks of the last second are lost in a crash'],
    ];
    for (const [name, good, harm] of wanted) {
      const value = settingIn(await this.#call(['CONFIG', 'GET', name]), name);
      if (!good.includes(value)) found.push(`${name} is ${value}, not ${good[0]}: ${harm}`);
    }
    return found;
  }

  async #run(
    fence: Required<Fence>,
    kind: FenceKind | 'barrier',
    keys: readonly string[],
    commands: readonly (readonly string[])[],
  ): Promise<unknown[]> {
    const all = [this.#prefix + fence.lock, ...keys];
    const words = [String(all.length), ...all, String(fence.token), kind];
    words.push(String(commands.length));
    for (const command of commands) {
      if (command.length === 0) throw badRequest('commands', 'a command has no words');
      words.push(String(command.length), ...command);
    }
    try {
      return await this.#evaluate(words);
    } catch (error) {
      if (isReply(error)) throw error;
      this.tally.onUnknown(fence);
      throw unknownWrite(RESOURCE, fence, error);
    }
  }

  async #evaluate(words: readonly string[]): Promise<unknown[]> {
    const { text, digest } = this.#script;
    try {
      return (await this.#call(['EVALSHA', digest, ...words])) as unknown[];
    } catch (error) {
      if (!/^NOSCRIPT/.test(messageOf(error))) throw error;
      return (await this.#call(['EVAL', text, ...words])) as unknown[];
    }
  }
}

/** CONFIG GET answers a list in RESP2, and in RESP3 what the driver makes of a map. */
function settingIn(reply: unknown, name: string): string {
  let value: unknown;
  if (Array.isArray(reply)) value = reply[1];
  else if (reply instanceof Map) value = reply.get(name);
  else value = Reflect.get(Object(reply), name);
  return String(value ?? 'unknown');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** An error that Redis itself answered, such as `WRONGTYPE …`; all others are of the connection. */
function isReply(error: unknown): boolean {
  return (
    /^[A-Z]{2,}( |$)/.test(messageOf(error)) && !/^(ECONN|EPIPE|ETIMED)/.test(messageOf(error))
  );
}

/**
 * What the guard suite asks of each resource, and how any process opens one.
 *
 * Owns: the shapes. A resource has cells, each a value guarded on its own, so that tests do not
 * meet; a door is one process's way to one cell, with our guard in it. Never: a store.
 * Used by: the resources in resources/, conformance, stories, paused clients.
 */
import type { Fence } from '../../src/guards/fence.js';
import type { Guard } from '../../src/guards/guard.js';
import { REQUEST_DEADLINE_MAX_MS } from '../../src/limits.js';

/** Calls in these tests are given the most: a machine that runs all of it may be busy. */
export const PATIENCE = { deadlineMs: REQUEST_DEADLINE_MAX_MS } as const;

export const KINDS = ['postgres', 'redis', 's3', 'sqlite', 'proxy'] as const;
export type Kind = (typeof KINDS)[number];

/** How to reach a resource; survives JSON, so that other processes reach it too. */
export interface Place {
  readonly kind: Kind;
  /** 0 for what has no port. A SQLite file with a port is written through a desk there. */
  readonly port: number;
  /** Folder of what has files. */
  readonly folder: string;
}

export interface Door {
  readonly guard: Guard;
  /** Replaces the value of the cell, under the token. Rejects StaleTokenError. */
  write(fence: Fence, value: string): Promise<void>;
  /** Shows the token and gives the value, which no older token can replace from then on. */
  claim(fence: Fence): Promise<string>;
  /** The value, '' when there is none; needs no token. */
  read(): Promise<string>;
  close(): Promise<void>;
}

/** A running server, or a file, with cells. */
export interface Resource {
  readonly place: Place;
  /** Name and version of what holds the mark. */
  readonly server: string;
  /** Bytes that stand in the part of a write that decides, where a relay holds it. */
  readonly decidingBytes: string;
  /** True when the resource itself counts what it refused. */
  readonly counts: boolean;
  /** True when one cell takes tokens of any lock, each with a mark of its own. */
  readonly hasMarkForEachLock: boolean;
  /**
   * Lets writers race on one condition, without a line of our guard. Gives how many won, for each
   * round: a store in which that is not one protects nothing.
   */
  race(writers: number): Promise<number[]>;
  close(): Promise<void>;
}

/**
 * On what a figure was measured: machine, system, commit, and the flags of the nodes.
 *
 * Owns: reading these. Never: a judgement; a busy machine is told, not corrected for.
 * Used by: reports, native-bench.
 */
import { spawnSync } from 'node:child_process';
import os from 'node:os';
import { NODE_ENVIRONMENT, NODE_FLAGS } from '../src/cli/local-cluster.js';
import { projectRoot } from '../test/gate/paths.js';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gib: number;
  readonly kernel: string;
  readonly node: string;
}

const BYTES_PER_GIB = 2 ** 30;

export function readMachine(): Machine {
  return {
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: os.availableParallelism(),
    memory_gib: Math.round(os.totalmem() / BYTES_PER_GIB),
    kernel: os.release(),
    node: process.version,
  };
}

/** Load averages of 1, 5 and 15 minutes: what else the machine was doing. */
export function readLoad(): string {
  return os
    .loadavg()
    .map((value) => value.toFixed(1))
    .join(' ');
}

function git(...words: string[]): string {
  const result = spawnSync('git', words, { cwd: projectRoot, encoding: 'utf8' });
  return result.status === 0 ? result.stdout.trim() : '';
}

/** The commit, with a `+` when files have changes; 'unknown' outside a clone. */
export function readCommit(): string {
  const commit = git('rev-parse', '--short', 'HEAD');
  if (commit === '') return 'unknown';
  return git('status', '--porcelain', '--untracked-files=no') === '' ? commit : `${commit}+`;
}

/** How the nodes are started beside each other on one machine. */
export function nodeSettings(): string {
  const environment = Object.entries(NODE_ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
  return [...environment, ...NODE_FLAGS].join(' ');
}

/**
 * What the operating system says about a process: running, stopped, gone.
 *
 * Owns: reading /proc. Never: signals. Used by: tests that start commands and watch them end.
 */
import { readFileSync } from 'node:fs';

/** The state letter of /proc/PID/stat (R, S, D, T, Z, …), '' when there is no such process. */
export function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.charAt(stat.lastIndexOf(')') + 2);
  } catch {
    return '';
  }
}

/** True while a process with this id lives; a zombie is gone. */
export function isAlive(pid: number): boolean {
  const state = stateOf(pid);
  return state !== '' && state !== 'Z' && state !== 'X';
}

/** Process ids of the running children of a process. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
  return text.split(' ').filter(Boolean).map(Number).filter(isAlive);
}

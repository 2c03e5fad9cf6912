/**
 * Signals to everything that runs in this process's session.
 *
 * Owns: finding it. The group gets the signal in one system call; on Linux, members of the session
 * that moved to a group of their own (a shell with job control does that) are found in /proc and
 * get it too. What opened a session of its own, as a daemon does, has left and is not followed.
 * Never: signals to another session. Used by: watchdog/main.ts, which leads its session.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Process group and session of a running process, as /proc/PID/stat has them. */
interface Place {
  readonly group: number;
  readonly session: number;
}

/** Reads the fields behind the name, which may hold blanks and brackets itself. */
export function parsePlace(stat: string): Place {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { group: Number(fields[2]), session: Number(fields[3]) };
}

/** Processes of the session that are not in the leader's own group; none where /proc is missing. */
function strayMembers(session: number): number[] {
  const members: number[] = [];
  let names: string[] = [];
  try {
    names = readdirSync('/proc');
  } catch {
    return members; // Not Linux: the group is all that can be found.
  }
  for (const name of names) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === session) continue;
    try {
      const place = parsePlace(readFileSync(`/proc/${name}/stat`, 'latin1'));
      if (place.session === session && place.group !== session) members.push(pid);
    } catch {
      // It ended while we looked.
    }
  }
  return members;
}

function signalOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
    process.stderr.write(`holdfast: cannot send ${signal} to ${pid}: ${String(error)}\n`);
  }
}

/** Everything in the session that this process leads, and whose group it leads. */
export class Session {
  private strays: readonly number[] = [];

  /** Sends `signal` to the group, then to those who left it. */
  signal(signal: NodeJS.Signals): void {
    signalOne(-process.pid, signal);
    this.look();
    for (const pid of this.strays) signalOne(pid, signal);
  }

  /**
   * Looks for members that left the group. Takes milliseconds, on a busy machine tens of them, so
   * it is done beforehand and not between a deadline and the SIGKILL that is due.
   */
  look(): void {
    this.strays = strayMembers(process.pid);
  }

  /** SIGKILL to the strays found last and to the group, which ends this process too. */
  kill(): void {
    for (const pid of this.strays) signalOne(pid, 'SIGKILL');
    signalOne(-process.pid, 'SIGKILL');
  }
}

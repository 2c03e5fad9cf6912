/**
 * What a drill has put up, and how each thing is taken down when there is no time to wait.
 *
 * Owns: the order: what came last goes first. Used when the drill is over, and by a signal that
 * ends it in the middle. Never: leaves a process, a mount or a folder behind, unless the folder is
 * to be kept. Used by: run-drill.ts, canary.ts, commands/drill.ts.
 */
export class Backstage {
  private readonly undos: (() => void)[] = [];

  /** `undo` takes one thing down, at once and whatever its state; it is called once. */
  add(undo: () => void): void {
    this.undos.push(undo);
  }

  /** Takes everything down. What cannot be taken down does not keep the rest. Idempotent. */
  strike(): unknown[] {
    const troubles: unknown[] = [];
    for (let undo = this.undos.pop(); undo !== undefined; undo = this.undos.pop()) {
      try {
        undo();
      } catch (error) {
        troubles.push(error);
      }
    }
    return troubles;
  }
}

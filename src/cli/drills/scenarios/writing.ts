/**
 * What programs write in a drill, and what they must be told.
 *
 * Owns: one write of a program, and the checks of its answer. Never: judges the table; verify.ts
 * does, when all is over. Used by: scenarios with a guarded resource.
 */
import type { Actor, ActorMessage } from '../actor.js';
import type { Stage } from '../drill.js';

/** Has a program write, and resolves with what became of that. */
export function writeAs(actor: Actor, writer: string): Promise<ActorMessage> {
  actor.order({ type: 'write', writer });
  return actor.next();
}

/** The write must have been done. */
export function demandWrote({ story }: Stage, writer: string, told: ActorMessage): void {
  const isDone = told.type === 'wrote';
  story.demand(`the write of the holder ${writer} is done`, isDone, JSON.stringify(told));
  if (isDone) story.tell(`${writer} has written`);
}

/** The write must have been refused by the guard, which has seen `newest`. */
export function demandRefused(
  { story, ledger }: Stage,
  actor: Actor,
  told: ActorMessage,
  newest: number,
): void {
  const isRefused = told.type === 'refused';
  if (isRefused) {
    const { offered, seen } = told;
    ledger.refusedWrites.push({ writer: 'A, late', offered, seen });
    story.tell(`the guard refuses A: STALE_TOKEN, ${offered} was shown, ${seen} was seen`, {
      token: offered,
    });
  } else {
    story.tell(`A was told: ${JSON.stringify(told)}`, { token: actor.token });
  }
  const isRight = isRefused && told.offered === actor.token && told.seen === newest;
  const what = 'the late write of A is refused, with the token that was seen';
  story.demand(what, isRight, JSON.stringify(told));
}

/**
 * One committed event in words, for people.
 *
 * Owns: the words, the same in a watch and in the audit stream. Never: JSON, which is the event as
 * it is. Used by: commands/watch.ts, audit/line.ts.
 */

/** What the words are made of. */
export interface ToldEvent {
  readonly type: string;
  readonly revision: number;
  readonly name: string;
  readonly token: number;
  readonly place: number;
  readonly cause: string | null;
}

function whatOf({ type, token, place, cause }: ToldEvent): string {
  switch (type) {
    case 'granted':
      return `granted with token ${token}`;
    case 'ended':
      return `token ${token} ended: ${cause}`;
    case 'queued':
      return `queued at ${place}`;
    case 'left':
      return `left its place ${place}: ${cause}`;
    case 'disabled':
      return 'disabled: no new acquires';
    case 'enabled':
      return 'enabled again';
    case 'refused':
      return `an operator's command was refused: ${cause}`;
    case 'fenced':
      return `a guard refused token ${token}, it had seen ${place}`;
    case 'expelled':
      return 'a session was ended by an operator';
    case 'restored':
      return 'the cluster was restored: every lease is gone';
    default:
      return type;
  }
}

/** The lock; `jobs/*` for a prefix, `-` for none. */
function subjectOf({ type, name, place }: ToldEvent): string {
  const isPrefix = (type === 'disabled' || type === 'enabled') && place === 1;
  if (isPrefix) return `${name}*`;
  return name === '' ? '-' : name;
}

/** `17  jobs/nightly  granted with token 17`. */
export function eventWords(event: ToldEvent): string {
  return `${event.revision}  ${subjectOf(event)}  ${whatOf(event)}`;
}

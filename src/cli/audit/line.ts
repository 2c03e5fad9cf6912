/**
 * One audit event as a line for people.
 *
 * Owns: the words of what caused it. Never: JSON, which is the event as it is.
 * Used by: commands/audit.ts, the drills.
 */
import type { Json } from '../../wire/event-json.js';
import { eventWords } from '../event-words.js';

/** Who asked, as they named themselves, and why; how often a guard refused. */
function saidIn(event: Json): string {
  const { asked_by: who, reason, refusals } = event;
  if (typeof refusals === 'number') return ` (${who ?? 'a guard'}, ${refusals} times)`;
  return typeof reason === 'string' ? ` (${who}: ${reason})` : '';
}

function byWhom(event: Json): string {
  const { command, actor } = event;
  if (command === null) return 'by time';
  const request = event['request_id'] ?? event['sequence'];
  const named = request === null ? '' : ` ${request}`;
  return `by ${command}${named} of principal ${actor}${saidIn(event)}`;
}

/** `17  jobs/nightly  granted with token 17, by acquire nightly-7 of principal 1`. */
export function auditLine(event: Json): string {
  const { cause } = event;
  if (event['type'] === 'restored') return `${event['revision']}  restored: ${event['reason']}`;
  const words = eventWords({
    type: String(event['type']),
    revision: Number(event['revision']),
    name: String(event['name']),
    token: Number(event['fencing_token']),
    place: Number(event['place']),
    cause: cause === null ? null : String(cause),
  });
  return `${words}, ${byWhom(event)}`;
}

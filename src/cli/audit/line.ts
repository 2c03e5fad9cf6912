/**
 * One audit event as a line for people.
 *
 * Owns: its words. Never: JSON, which is the event as it is.
 * Used by: commands/audit.ts, the drills.
 */
import type { Json } from '../../wire/event-json.js';

function byWhom(event: Json): string {
  const { command, actor } = event;
  if (command === null) return 'by time';
  const request = event['request_id'] ?? event['sequence'];
  return `by ${command}${request === null ? '' : ` ${request}`} of principal ${actor}`;
}

/** `17  jobs/nightly  granted with token 17, by Acquire nightly-7 of principal 1`. */
export function auditLine(event: Json): string {
  const { revision, name, type, fencing_token: token, cause, place } = event;
  if (type === 'restored') return `${revision}  restored: ${event['reason']}`;
  const what: Record<string, string> = {
    granted: `granted with token ${token}`,
    ended: `token ${token} ended: ${cause}`,
    queued: `queued at ${place}`,
    left: `left its place ${place}: ${cause}`,
  };
  return `${revision}  ${name}  ${what[String(type)] ?? type}, ${byWhom(event)}`;
}

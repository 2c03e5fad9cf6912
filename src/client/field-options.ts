/**
 * The client's names for the fields that a refusal names.
 *
 * Owns: the pairs. On the wire and in `details.field` a field has its wire name; a sentence names
 * the option that the caller wrote. Used by: reply.ts, options.ts.
 */

const OPTIONS: Readonly<Record<string, string>> = {
  ttl_ms: 'ttlMs',
  wait_ms: 'waitMs',
  deadline_ms: 'deadlineMs',
  not_after: 'notAfterMs',
  expected_revision: 'expectedRevision',
  lock_delay_ms: 'lockDelayMs',
  hold_ms_max: 'holdMsMax',
  at_least_revision: 'atLeastRevision',
  limit: 'pageSize',
  request: 'requestId',
  trace: 'traceId',
  client_name: 'clientName',
  node_id: 'nodeId',
  cursor: 'after',
};

/** The option that a field of the wire comes from; the field itself where the names are one. */
export function optionOfField(field: string): string {
  return OPTIONS[field] ?? field;
}

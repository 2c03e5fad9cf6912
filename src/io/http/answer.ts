/**
 * Writes answers of the HTTP interface: JSON, statuses, the headers that every answer has.
 *
 * Owns: how an error looks. Never: decides one.
 * Used by: http-door.ts, exchange.ts, streams.
 */
import { ErrorCode, errorRow } from '../../wire/errors.js';
import type { Json } from '../../wire/event-json.js';
import { detailOf } from '../../wire/http-answers.js';
import type { Reply } from '../../wire/response.js';
import type { Headers, HttpCall } from './uws-server.js';

const JSON_TYPE = ['content-type', 'application/json'] as const;
const NO_STORE = ['cache-control', 'no-store'] as const;
const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const;
const MS_PER_S = 1_000;
const TOO_MANY = 429;
const UNAVAILABLE = 503;

/** Who answers, and who led when it did. */
export interface Place {
  readonly nodeId: number;
  readonly leaderId: number;
}

export function placeHeaders(place: Place): Headers {
  return [
    ['holdfast-node', String(place.nodeId)],
    ['holdfast-leader', String(place.leaderId)],
  ];
}

export function answerJson(call: HttpCall, place: Place, status: number, body: Json): void {
  const headers = [JSON_TYPE, NO_STORE, NO_SNIFF, ...placeHeaders(place)];
  call.answer(status, headers, JSON.stringify(body));
}

/** `{"error":{…}}` of one of the table's errors; `detail` are its further members. */
export function errorBody(code: number, message: string, detail: Json): Json {
  const row = errorRow(code);
  const { retryable, outcome } = row;
  const text = message === '' ? row.meaning : message;
  return { error: { code: row.code, message: text, retryable, outcome, ...detail } };
}

/** Answers with an error of the table. Returns the status. */
export function answerError(
  call: HttpCall,
  place: Place,
  code: number,
  message = '',
  detail: Json = {},
): number {
  const { status } = errorRow(code);
  const headers = [JSON_TYPE, NO_STORE, NO_SNIFF, ...placeHeaders(place)];
  if (status === TOO_MANY || status === UNAVAILABLE) {
    const after = typeof detail['retry_after_ms'] === 'number' ? detail['retry_after_ms'] : 0;
    headers.push(['retry-after', String(Math.max(1, Math.ceil(after / MS_PER_S)))]);
  }
  call.answer(status, headers, JSON.stringify(errorBody(code, message, detail)));
  return status;
}

/** Answers with a refusal that the replica gave. Returns the status. */
export function answerRefusal(call: HttpCall, place: Place, reply: Reply, extra: Json): number {
  return answerError(call, place, reply.code, reply.message, { ...detailOf(reply), ...extra });
}

/** BAD_REQUEST that names the parameter. */
export function answerBad(call: HttpCall, place: Place, field: string, message: string): number {
  return answerError(call, place, ErrorCode.BadRequest, `${field}: ${message}`, { field });
}

/** Paths that are no route, and methods that a path does not take: HTTP's own two refusals. */
export function answerNoRoute(call: HttpCall, place: Place, allowed: readonly string[]): number {
  const isKnown = allowed.length > 0;
  const status = isKnown ? 405 : 404;
  const code = isKnown ? 'METHOD_NOT_ALLOWED' : 'NOT_FOUND';
  const { method, path } = call.head;
  const message = isKnown
    ? `${path} takes ${allowed.join(', ')}, not ${method}`
    : `there is no ${path}; /openapi.json lists what there is`;
  const headers: [string, string][] = [[...JSON_TYPE], ...placeHeaders(place).map(copyOf)];
  if (isKnown) headers.push(['allow', allowed.join(', ')]);
  const error = { code, message, retryable: false, outcome: 'none' };
  call.answer(status, headers, JSON.stringify({ error }));
  return status;
}

function copyOf([name, value]: readonly [string, string]): [string, string] {
  return [name, value];
}

/**
 * The few operations that the acceptance tests send by hand, and what their replies say.
 *
 * Owns: the places of their fields (docs/PROTOCOL.md). Never: a connection. Leases here belong to
 * no session, so they outlive the connection that asked for them. Used by: the acceptance tests.
 */
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { CommandKind } from '../../../src/wire/request.js';
import type { Reply } from '../../../src/wire/response.js';

/** What a grant says. */
export interface Grant {
  /** 32 hexadecimal digits. */
  readonly leaseId: string;
  readonly token: number;
  readonly revision: number;
}

/** An acquire without a session, named by a free-form id. */
export function acquireOperation(
  requestId: string,
  name: string,
  ttlMs: number,
  waitMs = 0,
): PackValue[] {
  return [CommandKind.Acquire, requestId, null, null, null, name, ttlMs, waitMs];
}

export function releaseOperation(requestId: string, leaseId: string): PackValue[] {
  const lease = Uint8Array.from(Buffer.from(leaseId, 'hex'));
  return [CommandKind.Release, requestId, null, null, null, lease];
}

export function renewOperation(leaseId: string): PackValue[] {
  const lease = Uint8Array.from(Buffer.from(leaseId, 'hex'));
  return [CommandKind.Renew, null, null, null, null, lease];
}

function numberIn(reply: Reply, at: number): number {
  const value = reply.fields[at];
  if (typeof value !== 'number')
    throw new Error(`field ${at} is ${String(value)}, wanted a number`);
  return value;
}

/** The grant in an acquire's final reply. Throws when the reply is a refusal. */
export function grantIn(reply: Reply): Grant {
  const lease = reply.fields[0];
  if (!(lease instanceof Uint8Array)) throw new Error(`no grant: code ${reply.code}`);
  const leaseId = Buffer.from(lease).toString('hex');
  return { leaseId, token: numberIn(reply, 1), revision: numberIn(reply, 2) };
}

/** The place in a Queued reply: the revision at which the acquire was queued. */
export function placeIn(reply: Reply): number {
  return numberIn(reply, 0);
}

/** The revision in a release's reply. */
export function revisionIn(reply: Reply): number {
  return numberIn(reply, 0);
}

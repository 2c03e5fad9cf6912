/**
 * Keeps web pages of other sites from driving a node.
 *
 * Owns: the rule. A browser names in Host what was typed, and in Origin which page asks: a page of
 * another site shows in Origin, and a name of another site that was made to point here shows in
 * Host. Never: credentials. Used by: http-door.ts.
 */
import net from 'node:net';

/** The host of a Host header, without port and brackets, in lower case. */
function hostOf(header: string): string {
  const match = /^(?:\[([^\]]+)\]|([^:]*))(?::\d{1,5})?$/.exec(header);
  return (match?.[1] ?? match?.[2] ?? '').toLowerCase();
}

/** True when Host is an address, localhost, or one of the names given to this node. */
export function isHostAllowed(header: string, names: ReadonlySet<string>): boolean {
  const host = hostOf(header);
  return net.isIP(host) !== 0 || host === 'localhost' || names.has(host);
}

/** True when there is no Origin, or it is that of this very host and port. */
export function isOriginAllowed(origin: string, host: string): boolean {
  if (origin === '') return true;
  return origin === `http://${host}` || origin === `https://${host}`;
}

/**
 * Turns the parameters of an HTTP request into an operation of the binary protocol.
 *
 * Owns: the checks that JSON needs before the decoder's own (types, unknown names), and which
 * parameter goes to which place. Never: bounds that the node checks anyway. Used by: io/http.
 */
import { CommandKind } from '../core/locks/command.js';
import { bytesOfHex } from './http-answers.js';
import type { Parameter, Route } from './http-routes.js';
import type { PackValue } from './msgpack-writer.js';

/** Parameters that passed their checks, by name. */
export type Values = Map<string, PackValue>;

/** What was wrong with a request: the parameter, and what was wanted. */
export class BadParameter {
  constructor(
    readonly field: string,
    readonly message: string,
  ) {}
}

const DIGITS = /^\d{1,16}$/;

/** Reads the body's members. Absent and null are the same. */
export function readBody(body: unknown, parameters: readonly Parameter[]): Values | BadParameter {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return new BadParameter('body', 'send one JSON object');
  }
  const values: Values = new Map();
  for (const [name, value] of Object.entries(body)) {
    const parameter = parameters.find((each) => each.name === name);
    if (parameter === undefined) return unknownName(name, parameters);
    if (value === null) continue;
    const read = readJson(parameter, value);
    if (read instanceof BadParameter) return read;
    values.set(name, read);
  }
  return missing(values, parameters) ?? values;
}

/** Reads a query string. */
export function readQuery(
  query: URLSearchParams,
  parameters: readonly Parameter[],
): Values | BadParameter {
  const values: Values = new Map();
  for (const [name, text] of query) {
    const parameter = parameters.find((each) => each.name === name);
    if (parameter === undefined) return unknownName(name, parameters);
    const read = readText(parameter, text);
    if (read instanceof BadParameter) return read;
    values.set(name, read);
  }
  return missing(values, parameters) ?? values;
}

function unknownName(name: string, parameters: readonly Parameter[]): BadParameter {
  const known = parameters.map((each) => each.name).join(', ');
  return new BadParameter(name, `is not known here; known: ${known === '' ? 'none' : known}`);
}

function missing(values: Values, parameters: readonly Parameter[]): BadParameter | undefined {
  const absent = parameters.find((each) => each.isNeeded && !values.has(each.name));
  return absent && new BadParameter(absent.name, 'is needed');
}

function readJson(parameter: Parameter, value: unknown): PackValue | BadParameter {
  const { name, type } = parameter;
  switch (type) {
    case 'count':
      if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
      return new BadParameter(name, 'give a whole number from 0');
    case 'flag':
      return typeof value === 'boolean' ? value : new BadParameter(name, 'give true or false');
    default:
      if (typeof value !== 'string') return new BadParameter(name, 'give a text');
      return type === 'text' ? value : readText(parameter, value);
  }
}

function readText(parameter: Parameter, text: string): PackValue | BadParameter {
  const { name, type } = parameter;
  switch (type) {
    case 'count':
      if (DIGITS.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
      return new BadParameter(name, `give a whole number from 0, not '${text}'`);
    case 'flag':
      if (text === 'true' || text === 'false') return text === 'true';
      return new BadParameter(name, `give true or false, not '${text}'`);
    case 'id':
      return bytesOfHex(text) ?? new BadParameter(name, 'give 32 hexadecimal digits');
    default:
      return text;
  }
}

/** What members must not be together, or must be: whoever holds is meant when that is said. */
export function checkTogether(route: Route, values: Values): BadParameter | null {
  if (route.id !== 'force-release') return null;
  const isNamed = values.has('fencing_token') || values.has('lease_id');
  if (isNamed !== (values.get('any') === true)) return null;
  const words = 'say which lease is meant: fencing_token or lease_id, or any: true';
  return new BadParameter(isNamed ? 'any' : 'fencing_token', words);
}

/** Everything that names an operation beside its own parameters. */
export interface Names {
  /** Path parameter, decoded: bytes for ids. */
  readonly subject: PackValue;
  /** Free-form request id, null for none. */
  readonly key: string | null;
  readonly session: Uint8Array | null;
  readonly trace: Uint8Array | null;
}

const UTF8 = new TextEncoder();

/** Metadata is bytes on the wire. */
function bytesAt(values: Values, name: string): PackValue {
  const value = values.get(name);
  return typeof value === 'string' ? UTF8.encode(value) : null;
}

/** The operation of a route that a node or the leader answers with one reply. */
export function operationOf(route: Route, values: Values, names: Names): PackValue[] {
  const { subject, key, session, trace } = names;
  const at = (name: string): PackValue => values.get(name) ?? null;
  const head = (command: number, id: string | null): PackValue[] => {
    return [command, id, session, null, trace];
  };
  switch (route.id) {
    case 'acquire':
    case 'campaign': {
      const metadata = bytesAt(values, route.id === 'acquire' ? 'metadata' : 'value');
      const expected = at('expected_revision');
      const rest = [at('ttl_ms'), at('wait_ms'), null, null, null, expected, null, metadata];
      return [...head(CommandKind.Acquire, key), subject, ...rest, at('not_after')];
    }
    case 'get':
      return [CommandKind.Get, subject, at('stale'), at('at_least_revision')];
    case 'election':
      return [CommandKind.Get, subject, at('stale')];
    case 'list':
      return [CommandKind.List, at('prefix'), at('cursor'), at('limit'), at('stale')];
    case 'explain':
      return [CommandKind.Explain, subject, null, at('request_id'), at('lease_id')];
    case 'audit':
      return [CommandKind.Audit, at('prefix'), at('revision'), at('limit'), at('wait_ms')];
    case 'check':
      return [CommandKind.Check, subject, at('token')];
    case 'renew':
      return [...head(CommandKind.Renew, null), subject, at('ttl_ms'), bytesAt(values, 'metadata')];
    case 'proclaim': {
      const value = bytesAt(values, 'value');
      return [...head(CommandKind.Renew, null), at('lease_id'), at('ttl_ms'), value];
    }
    case 'release':
      return [...head(CommandKind.Release, null), subject];
    case 'resign':
      return [...head(CommandKind.Release, null), at('lease_id')];
    case 'session-open':
      return [...head(CommandKind.SessionOpen, key), at('ttl_ms'), bytesAt(values, 'metadata')];
    case 'session-renew':
      return [...head(CommandKind.SessionRenew, null), at('ttl_ms')];
    case 'session-close':
      return head(CommandKind.SessionClose, null);
    case 'lookup':
      return [CommandKind.Lookup, null, subject];
    case 'cancel':
      return [...head(CommandKind.Cancel, null), subject];
    case 'force-release': {
      const meant = [at('lease_id'), at('fencing_token')];
      const said = [at('actor'), at('reason')];
      return [...head(CommandKind.ForceRelease, key), subject, ...meant, ...said];
    }
    case 'disable':
    case 'enable': {
      const command = route.id === 'disable' ? CommandKind.Disable : CommandKind.Enable;
      return [...head(command, key), at('name'), at('prefix'), at('actor'), at('reason')];
    }
    case 'expire-session':
      return [...head(CommandKind.ExpireSession, key), subject, at('actor'), at('reason')];
    case 'report-refusal': {
      const refused = [at('fencing_token'), at('mark'), at('refusals'), at('guard')];
      return [...head(CommandKind.ReportRefusal, key), at('name'), ...refused];
    }
    case 'transfer':
      return [CommandKind.Transfer, at('node_id')];
    default:
      throw new Error(`http: no operation for route ${route.id}`);
  }
}

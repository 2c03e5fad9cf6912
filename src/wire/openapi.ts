/**
 * The HTTP interface as an OpenAPI 3.1 document, made from the table of routes.
 *
 * Owns: how a row is said in OpenAPI. Never: a route or a shape of its own. Used by: io/http, which
 * serves it, docs, and the test that validates every answer against it.
 */
import { ERROR_ROWS } from './errors.js';
import { HttpHeader, type Parameter, ROUTES, type Route } from './http-routes.js';
import { HTTP_SCHEMAS, ref, type Schema } from './http-schema.js';

const SCHEMA_OF: { readonly [type in Parameter['type']]: Schema } = {
  text: { type: 'string' },
  count: { type: 'integer', minimum: 0 },
  flag: { type: 'boolean' },
  id: { type: 'string', pattern: '^[0-9a-f]{32}$' },
};

/** Statuses with which a request can be refused. */
const ERROR_STATUSES: readonly number[] = [
  ...new Set([404, 405, ...ERROR_ROWS.filter((row) => row.number < 60).map((row) => row.status)]),
].sort((left, right) => left - right);

function json(schema: Schema): Schema {
  return { content: { 'application/json': { schema } } };
}

function header(name: string, isNeeded: boolean, schema: Schema, description: string): Schema {
  return { name, in: 'header', required: isNeeded, schema, description };
}

function headersOf(route: Route): Schema[] {
  const headers: Schema[] = [];
  if (route.isNamed) {
    const text = 'Names the operation: the same key has one effect and one answer.';
    headers.push(header(HttpHeader.Key, false, { type: 'string', maxLength: 64 }, text));
  }
  if (route.session !== 'none') {
    const isNeeded = route.session === 'path';
    headers.push(header(HttpHeader.Secret, isNeeded, SCHEMA_OF.id, 'Secret of the session.'));
  }
  if (route.kind === 'leader' || route.kind === 'read') {
    const text = 'How long the caller waits for a decision: 1 to 60,000, else 10,000.';
    headers.push(header(HttpHeader.Deadline, false, SCHEMA_OF.count, text));
    const trace = { type: 'string' };
    headers.push(header(HttpHeader.Trace, false, trace, 'W3C Trace Context.'));
  }
  return headers;
}

/** Name of the parameter in a path, '' for none. */
export function pathParameter(path: string): string {
  return /\{(\w+)\}/.exec(path)?.[1] ?? '';
}

function parametersOf(route: Route): Schema[] {
  const parameters: Schema[] = [];
  const name = pathParameter(route.path);
  if (name !== '') {
    const schema = name === 'lease_id' || name === 'session_id' ? SCHEMA_OF.id : SCHEMA_OF.text;
    parameters.push({ name, in: 'path', required: true, schema });
  }
  for (const { name: key, type, isNeeded, meaning } of route.query) {
    const schema = SCHEMA_OF[type];
    parameters.push({ name: key, in: 'query', required: isNeeded, schema, description: meaning });
  }
  return [...parameters, ...headersOf(route)];
}

function bodyOf(route: Route): Schema {
  const properties: { [name: string]: Schema } = {};
  for (const { name, type, meaning } of route.body) {
    properties[name] = { ...SCHEMA_OF[type], description: meaning };
  }
  const required = route.body.filter((field) => field.isNeeded).map((field) => field.name);
  return json({ type: 'object', properties, required, additionalProperties: false });
}

function answersOf(route: Route): Schema {
  const good =
    route.answer === ''
      ? { content: { [route.media ?? 'text/plain']: { schema: { type: 'string' } } } }
      : json(ref(route.answer));
  const answers: { [status: string]: Schema } = { 200: { description: route.meaning, ...good } };
  if (route.id === 'readyz') answers['503'] = { description: 'not ready', ...json(ref('Ready')) };
  if (route.kind === 'own') return answers;
  for (const status of ERROR_STATUSES) {
    answers[status] = { description: 'refused', ...json(ref('Error')) };
  }
  return answers;
}

/** The document. `version` is that of the product. */
export function openApiOf(version: string): Schema {
  const paths: { [path: string]: { [method: string]: Schema } } = {};
  for (const route of ROUTES) {
    const methods = paths[route.path] ?? {};
    paths[route.path] = methods;
    methods[route.method.toLowerCase()] = {
      operationId: route.id,
      summary: route.meaning,
      parameters: parametersOf(route),
      ...(route.method === 'POST' ? { requestBody: { required: true, ...bodyOf(route) } } : {}),
      responses: answersOf(route),
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Holdfast',
      version,
      description: 'A distributed lock service. Times are cluster time in ms, 0 at the founding.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: { schemas: HTTP_SCHEMAS },
  };
}

/**
 * A plain HTTP caller for tests: one request, its status, headers and JSON.
 *
 * Owns: the keep-alive agents it makes. Checks every answer of a route against the OpenAPI document
 * that the node serves, so that the document cannot say what the node does not do.
 * Used by: test/cluster/http*.test.ts.
 */
import http from 'node:http';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { matchRoute } from '../../src/io/http/route-match.js';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into JSON of many shapes
  readonly json: any;
}

export interface HttpQuestion {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** Sent as it is, without a content type of its own. */
  readonly raw?: string;
}

type OpenApi = { paths: Record<string, Record<string, { responses: Record<string, Response> }>> };
interface Response {
  readonly content?: Record<string, { readonly schema: object }>;
}

export class HttpClient {
  /** Ids of the routes and statuses that were seen and validated: `acquire 200`. */
  readonly seen = new Set<string>();
  private document: OpenApi | null = null;
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly checks = new Map<string, ValidateFunction>();
  private readonly agent = new http.Agent({ keepAlive: true });

  close(): void {
    this.agent.destroy();
  }

  /** Reads /openapi.json; every answer from now on is held against it. */
  async learn(base: string): Promise<OpenApi> {
    const { json } = await this.ask('GET', `${base}/openapi.json`);
    this.document = json as OpenApi;
    this.ajv.addSchema(json, 'openapi');
    return this.document;
  }

  get(url: string, question: HttpQuestion = {}): Promise<HttpAnswer> {
    return this.ask('GET', url, question);
  }

  post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    return this.ask('POST', url, { body, headers });
  }

  delete(url: string, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    return this.ask('DELETE', url, { headers });
  }

  async ask(method: string, url: string, question: HttpQuestion = {}): Promise<HttpAnswer> {
    const answer = await this.send(method, url, question);
    this.validate(method, new URL(url).pathname, answer);
    return answer;
  }

  private send(method: string, url: string, question: HttpQuestion): Promise<HttpAnswer> {
    const { body, raw, signal } = question;
    const headers: Record<string, string> = { ...question.headers };
    const text = raw ?? (body === undefined ? '' : JSON.stringify(body));
    if (body !== undefined) headers['content-type'] ??= 'application/json';
    if (text !== '') headers['content-length'] = String(Buffer.byteLength(text));
    return new Promise((resolve, reject) => {
      const options = { method, headers, agent: this.agent, ...(signal && { signal }) };
      const request = http.request(url, options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const received = Buffer.concat(chunks).toString('utf8');
          const isJson = String(response.headers['content-type']).includes('json');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: received,
            json: isJson ? JSON.parse(received) : null,
          });
        });
      });
      request.on('error', reject);
      request.end(text);
    });
  }

  private validate(method: string, path: string, answer: HttpAnswer): void {
    const { route } = matchRoute(method, path);
    if (this.document === null || route === null) return;
    const { status } = answer;
    const said = this.document.paths[route.path]?.[method.toLowerCase()]?.responses[status];
    if (said === undefined) throw new Error(`${route.id} answered ${status}, not in the document`);
    const type = String(answer.headers['content-type']).split(';')[0] ?? '';
    if (said.content?.[type] === undefined) throw new Error(`${route.id} ${status} gave ${type}`);
    this.seen.add(`${route.id} ${status}`);
    if (type !== 'application/json' || route.answer === '') return;
    const check = this.checkOf(route.path, method.toLowerCase(), status);
    if (check(answer.json)) return;
    const problems = this.ajv.errorsText(check.errors);
    throw new Error(`${route.id} ${status}: ${problems}\n${answer.text}`);
  }

  private checkOf(path: string, method: string, status: number): ValidateFunction {
    const escaped = encodeURIComponent(path.replaceAll('~', '~0').replaceAll('/', '~1'));
    const media = 'application~1json';
    const pointer = `#/paths/${escaped}/${method}/responses/${status}/content/${media}/schema`;
    let check = this.checks.get(pointer);
    if (check === undefined) {
      check = this.ajv.compile({ $ref: `openapi${pointer}` });
      this.checks.set(pointer, check);
    }
    return check;
  }
}

/** One message of server-sent events. */
export interface SseMessage {
  readonly id: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into JSON of many shapes
  readonly data: any;
}

/** Follows server-sent events until it is closed. */
export class SseClient {
  readonly messages: SseMessage[] = [];
  isEnded = false;
  status = 0;
  private readonly request: http.ClientRequest;

  constructor(url: string, headers: Record<string, string> = {}) {
    const all = { accept: 'text/event-stream', ...headers };
    this.request = http.get(url, { headers: all, agent: false }, (response) => {
      this.status = response.statusCode ?? 0;
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          this.take(text.slice(0, end));
          text = text.slice(end + 2);
        }
      });
      response.on('error', () => {
        this.isEnded = true;
      });
      response.on('close', () => {
        this.isEnded = true;
      });
    });
    this.request.on('error', () => {
      this.isEnded = true;
    });
  }

  /** Messages that are events, not marks of progress. */
  get events(): SseMessage[] {
    return this.messages.filter((message) => message.event !== 'progress');
  }

  close(): void {
    this.request.destroy();
  }

  private take(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      const at = line.indexOf(': ');
      if (at > 0) fields.set(line.slice(0, at), line.slice(at + 2));
    }
    const data = fields.get('data');
    if (data === undefined) return;
    const event = fields.get('event') ?? 'message';
    this.messages.push({ id: fields.get('id') ?? '', event, data: JSON.parse(data) });
  }
}

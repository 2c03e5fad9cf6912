/** What this project uses of autocannon, which has no types of its own. */
declare module 'autocannon' {
  /** The request that is about to be sent. */
  export interface Request {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string;
    setupRequest?: (request: Request) => Request;
    onResponse?: (status: number, body: string) => void;
  }

  export interface Client {
    setRequests(requests: readonly Request[]): void;
  }

  export interface Options {
    readonly url: string;
    readonly connections: number;
    readonly pipelining: number;
    /** Seconds. */
    readonly duration: number;
    readonly timeout: number;
    readonly setupClient: (client: Client) => void;
  }

  export interface Result {
    readonly errors: number;
    readonly timeouts: number;
    readonly non2xx: number;
    readonly mismatches: number;
    readonly resets: number;
    /** Request bytes, response bytes. */
    readonly throughput: { readonly total: number };
  }

  export interface Run extends Promise<Result> {
    stop(): void;
    on(event: 'response', handler: (client: Client, status: number, bytes: number) => void): void;
  }

  export default function autocannon(options: Options): Run;
}

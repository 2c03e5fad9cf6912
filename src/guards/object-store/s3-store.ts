/**
 * An object store over the S3 API: GET, PUT with If-Match or If-None-Match, DELETE.
 *
 * Owns: addresses, signatures, time-outs, and what an answer means. Never repeats a request: one
 * that was lost may have been done, and the guard looks before it asks again. The only file that
 * imports aws4fetch. Used by: object-guard.ts, `holdfast guard`.
 */
import { AwsClient } from 'aws4fetch';
import type { ObjectStore, PutOptions, StoredObject } from './object-store.js';

export interface S3StoreOptions {
  /** Such as `https://s3.eu-central-1.amazonaws.com`; the bucket follows in the path. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** Default `us-east-1`. */
  readonly region?: string;
  /** How long one request may take, ms. Default 10,000. */
  readonly requestMsMax?: number;
  /** False for servers that compare If-Match without its quotes, such as Ceph 16. Default true. */
  readonly quotesEtags?: boolean;
}

const REQUEST_MS_DEFAULT = 10_000;
const REGION_DEFAULT = 'us-east-1';
/** The condition did not hold: by what was there, or by another write of the same moment. */
const CONDITION_FAILED = [409, 412];
const WORDS_MAX = 300;

/** An answer that is neither done nor refused. */
export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError';

  /** @param status of HTTP. */
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export class S3Store implements ObjectStore {
  readonly #client: AwsClient;
  readonly #base: string;
  readonly #requestMsMax: number;
  readonly #quotesEtags: boolean;

  constructor(options: S3StoreOptions) {
    const { endpoint, bucket, accessKeyId, secretAccessKey, sessionToken } = options;
    this.#client = new AwsClient({
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      service: 's3',
      region: options.region ?? REGION_DEFAULT,
      retries: 0,
    });
    this.#base = `${endpoint.replace(/\/$/, '')}/${encodeURIComponent(bucket)}`;
    this.#requestMsMax = options.requestMsMax ?? REQUEST_MS_DEFAULT;
    this.#quotesEtags = options.quotesEtags ?? true;
  }

  async get(key: string): Promise<StoredObject | null> {
    const response = await this.#ask('GET', key, {});
    if (response.status === 404) {
      await checkBucket('GET', response);
      return null;
    }
    if (response.status !== 200) throw await refusalOf('GET', response);
    const etag = response.headers.get('etag');
    if (etag === null) throw new ObjectStoreError(200, `GET ${key} came without an ETag`);
    return { body: new Uint8Array(await response.arrayBuffer()), etag };
  }

  async put(key: string, body: Uint8Array, options: PutOptions): Promise<boolean> {
    const headers: Record<string, string> = {
      'content-type': options.contentType ?? 'application/octet-stream',
    };
    const { condition } = options;
    if (condition === null) headers['if-none-match'] = '*';
    else headers['if-match'] = this.#quotesEtags ? condition : condition.replaceAll('"', '');
    const response = await this.#ask('PUT', key, { headers, body });
    if (response.status === 404) {
      // A condition on an object that is gone: some servers say 404.
      await checkBucket('PUT', response);
      return false;
    }
    const isRefused = CONDITION_FAILED.includes(response.status);
    if (isRefused || response.status === 200) {
      await response.arrayBuffer();
      return !isRefused;
    }
    throw await refusalOf('PUT', response);
  }

  async delete(key: string): Promise<void> {
    const response = await this.#ask('DELETE', key, {});
    if (response.status >= 300 && response.status !== 404)
      throw await refusalOf('DELETE', response);
    await response.arrayBuffer();
  }

  /** Makes the bucket, or finds it made. For tests and first steps. */
  async createBucket(): Promise<void> {
    const response = await this.#ask('PUT', '', {});
    if (response.status !== 200 && response.status !== 409) throw await refusalOf('PUT', response);
    await response.arrayBuffer();
  }

  #ask(
    method: string,
    key: string,
    parts: { readonly headers?: Record<string, string>; readonly body?: Uint8Array },
  ): Promise<Response> {
    const path = key.split('/').map(encodeURIComponent).join('/');
    const url = key === '' ? this.#base : `${this.#base}/${path}`;
    const signal = AbortSignal.timeout(this.#requestMsMax);
    return this.#client.fetch(url, { method, signal, ...(parts as RequestInit) });
  }
}

/** Not found can mean the object, or the bucket, and then nothing can ever be written. */
async function checkBucket(method: string, response: Response): Promise<void> {
  const words = await response.clone().text();
  if (words.includes('NoSuchBucket')) throw await refusalOf(method, response);
}

async function refusalOf(method: string, response: Response): Promise<ObjectStoreError> {
  const words = (await response.text()).replace(/\s+/g, ' ').slice(0, WORDS_MAX);
  return new ObjectStoreError(response.status, `${method} answered ${response.status}: ${words}`);
}

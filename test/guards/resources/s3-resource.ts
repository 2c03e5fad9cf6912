/**
 * An object store over S3 as the guard suite sees it: one guarded object a cell.
 *
 * Owns: its server. Used by: open.ts.
 */
import { AwsClient } from 'aws4fetch';
import type { Fence } from '../../../src/guards/fence.js';
import { ObjectGuard } from '../../../src/guards/object-store/object-guard.js';
import { S3Store } from '../../../src/guards/object-store/s3-store.js';
import type { Door, Place, Resource } from '../resource.js';
import { S3_ACCESS, S3_SECRET, S3Server } from '../servers/s3-server.js';

const BUCKET = 'guarded';
const CREDENTIALS = { accessKeyId: S3_ACCESS, secretAccessKey: S3_SECRET };

export function storeAt({ port }: Place): S3Store {
  const endpoint = `http://127.0.0.1:${port}`;
  return new S3Store({ endpoint, bucket: BUCKET, ...CREDENTIALS, quotesEtags: false });
}

export class S3Door implements Door {
  readonly guard: ObjectGuard;
  readonly store: S3Store;

  constructor(place: Place, cell: string) {
    this.store = storeAt(place);
    this.guard = new ObjectGuard(this.store, `cells/${cell}`);
  }

  async write(fence: Fence, value: string): Promise<void> {
    await this.guard.write(fence, new TextEncoder().encode(value), 'text/plain');
  }

  async claim(fence: Fence): Promise<string> {
    return textOf((await this.guard.claim(fence))?.body);
  }

  async read(): Promise<string> {
    return textOf((await this.guard.read())?.body);
  }

  async close(): Promise<void> {
    // fetch keeps nothing that would hold a process
  }
}

function textOf(body: Uint8Array | undefined): string {
  return body === undefined ? '' : new TextDecoder().decode(body);
}

export async function startS3(folder: string): Promise<Resource> {
  const server = await S3Server.start(folder);
  const place: Place = { kind: 's3', port: server.port, folder };
  await storeAt(place).createBucket();
  return {
    place,
    server: `${server.name} ${server.version}`,
    // The data go first, under a key of their own; the head is what the condition stands in.
    decidingBytes: 'if-match',
    counts: false,
    hasMarkForEachLock: false,
    race: (writers) => race(server.endpoint, writers),
    close: () => server.close(),
  };
}

/** First on "if there is none", then on the tag of the content. */
async function race(endpoint: string, writers: number): Promise<number[]> {
  const client = new AwsClient({ ...CREDENTIALS, service: 's3', region: 'us-east-1', retries: 0 });
  const url = `${endpoint}/${BUCKET}/race`;
  const put = async (body: string, headers: Record<string, string>): Promise<number> => {
    const response = await client.fetch(url, { method: 'PUT', body, headers });
    await response.arrayBuffer();
    return response.status;
  };
  const winners: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const response = await client.fetch(url);
    await response.arrayBuffer();
    const etag = response.headers.get('etag')?.replaceAll('"', '') ?? '';
    const headers: Record<string, string> =
      response.status === 404 ? { 'if-none-match': '*' } : { 'if-match': etag };
    const all = Array.from({ length: writers }, (_, at) => put(`${round} ${at}`, headers));
    const statuses = await Promise.all(all);
    winners.push(statuses.filter((status) => status === 200).length);
  }
  return winners;
}

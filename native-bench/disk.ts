/**
 * What a durable write costs below the product: append and fdatasync, and LMDB in each legal way.
 *
 * Legal is what has reached the disk when it says so: `overlappingSync` off. Owns: a scratch folder
 * in the working directory, since /tmp may be memory. The product's own log is log-commit.ts.
 * Used by: main.ts.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { open } from 'lmdb';
import { cost, type Figure, type Paced, paced, rate } from './figure.js';

/** A batch of some 250 operations. */
const RECORD_BYTES = 20_000;
const FOR_MS = 1_200;

function figuresOf(name: string, measured: Paced): Figure[] {
  return [
    rate(`${name}, one after another`, '/s', measured.perSecond),
    cost(`${name}, median`, 'µs', measured.p50Us),
    cost(`${name}, CPU`, 'µs', measured.cpuUs),
  ];
}

async function appends(folder: string): Promise<Figure[]> {
  const handle = openSync(path.join(folder, 'raw'), 'a');
  const block = Buffer.alloc(RECORD_BYTES, 7);
  const measured = await paced(() => {
    writeSync(handle, block);
    fdatasyncSync(handle);
  }, FOR_MS);
  closeSync(handle);
  return figuresOf('append + fdatasync of 20 kB', measured);
}

function openDatabase(folder: string) {
  return open<Uint8Array, Uint8Array>(folder, {
    encoding: 'binary',
    keyEncoding: 'binary',
    overlappingSync: false,
    compression: false,
    cache: false,
    mapSize: 512 << 20,
  });
}

async function commits(folder: string): Promise<Figure[]> {
  const record = Buffer.alloc(RECORD_BYTES, 7);
  const key = Buffer.alloc(8);
  let index = 0;
  const nextKey = (): Buffer => {
    index += 1;
    key.writeUInt32BE(index, 4);
    return key;
  };
  const synchronous = openDatabase(path.join(folder, 'synchronous'));
  const inPlace = await paced(() => {
    synchronous.transactionSync(() => synchronous.putSync(nextKey(), record));
  }, FOR_MS);
  await synchronous.close();
  const asynchronous = openDatabase(path.join(folder, 'asynchronous'));
  const queued = await paced(async () => {
    await asynchronous.put(Buffer.from(nextKey()), record);
  }, FOR_MS);
  await asynchronous.close();
  return [
    ...figuresOf('LMDB commit of 20 kB, transactionSync', inPlace),
    ...figuresOf('LMDB commit of 20 kB, put', queued),
  ];
}

export async function measure(): Promise<Figure[]> {
  const folder = mkdtempSync(path.join(process.cwd(), '.holdfast-native-'));
  try {
    return [...(await appends(folder)), ...(await commits(folder))];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

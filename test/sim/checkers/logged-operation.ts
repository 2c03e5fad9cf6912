/**
 * Reads committed entries without a line of the product: MessagePack's own library, and the layout
 * that docs/PROTOCOL.md and src/wire/entry.ts describe.
 *
 * Owns: the reading. Never: what an operation means. Used by: the checkers that look at the log.
 */
import { Unpackr } from 'msgpackr';

const unpackr = new Unpackr({ useRecords: false, int64AsType: 'number' });
const text = new TextDecoder();
const FIRST_PRINCIPAL = 1;
const HEADER_BYTES = 32;
const PREFIX_BYTES = 12;

export interface LoggedOperation {
  readonly principal: number;
  /** The operation's elements, the command's number first. */
  readonly fields: readonly unknown[];
}

/** The operations of an entry, in order. */
export function operationsOf(data: Uint8Array): LoggedOperation[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const operations: LoggedOperation[] = [];
  let at = HEADER_BYTES;
  for (let left = view.getUint32(4); left > 0; left -= 1) {
    const start = at + PREFIX_BYTES;
    const end = start + view.getUint32(at + 8);
    const fields = unpackr.unpack(data.subarray(start, end)) as unknown[];
    operations.push({ principal: view.getUint32(at + 4), fields });
    at = end;
  }
  return operations;
}

/** A free-form id as histories have it: ids belong to their principal. */
export function idWith(principal: number, request: string): string {
  return principal === FIRST_PRINCIPAL ? request : `${request}@${principal}`;
}

/** The stamp of an entry, ms of cluster time. */
export function stampIn(data: Uint8Array): number {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  return view.getUint32(8) * 2 ** 32 + view.getUint32(12);
}

/** Bytes in hexadecimal, '' for anything else. */
export function hexOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : '';
}

/** A str or a bin as text, undefined for anything else. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return value instanceof Uint8Array ? text.decode(value) : undefined;
}

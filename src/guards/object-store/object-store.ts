/**
 * What an object guard needs of an object store: whole objects, and writes under a condition.
 *
 * Owns: the shape. Never: an implementation; s3-store.ts is the one over the S3 API. A store whose
 * condition is not decided in one atomic step with the write protects nothing: test/guards races
 * fifty writers on one condition, and exactly one may win. Used by: object-guard.ts.
 */

/** An object and the tag that names its present content. */
export interface StoredObject {
  readonly body: Uint8Array;
  /** Compared as text, and given back in a condition as it came. */
  readonly etag: string;
}

/** When a write may happen: over the content with this tag, or (null) when there is no object. */
export type WriteCondition = string | null;

export interface ObjectStore {
  /** The object, or null when there is none. */
  get(key: string): Promise<StoredObject | null>;
  /**
   * True: written. False: the condition did not hold, and nothing was. Rejects when neither is
   * known.
   */
  put(key: string, body: Uint8Array, options: PutOptions): Promise<boolean>;
  /** Resolves also when there was none. */
  delete(key: string): Promise<void>;
}

export interface PutOptions {
  readonly condition: WriteCondition;
  readonly contentType?: string;
}

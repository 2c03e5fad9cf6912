/**
 * What tests of drills have in common: their records, and a temporary folder of their own.
 *
 * Owns: reading records, and the folder in which nothing may be left. Used by: drill*.test.ts.
 */

/** What tests look at in a record. */
export interface DrillRecord {
  readonly drill: string;
  readonly complete: boolean;
  readonly operation_id: string;
  readonly checks: readonly { readonly what: string; readonly kept: boolean }[];
  readonly story: readonly { readonly what: string }[];
  readonly events: readonly { readonly type: string; readonly request_id: string | null }[];
}

/** What a scratch folder uses of a tap test. */
interface FolderTest {
  testdir(content: Record<string, never>): string;
}

/** The records that `drill --json` printed. */
export function recordsIn(out: string): DrillRecord[] {
  const lines = out.split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as DrillRecord);
}

/** A folder of its own for what a drill puts into the temporary folder. */
export function scratch(test: FolderTest) {
  const folder = test.testdir({});
  return { folder, environment: { TMPDIR: folder } };
}

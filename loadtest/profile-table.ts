/**
 * The functions that a V8 profile is about, as lines: where time is spent, or who allocates.
 *
 * Owns: reading .cpuprofile and .heapprofile files. Self values only: what a function's callees did
 * is theirs. Never: runs anything. Used by: profile.ts.
 */

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

/** `--cpu-prof`: samples name nodes, each with the µs since the one before. */
export interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface HeapNode {
  readonly callFrame: CallFrame;
  readonly selfSize: number;
  readonly children: readonly HeapNode[];
}

/** `--heap-prof`: a tree of callers, with the bytes that live at the end. */
export interface HeapProfile {
  readonly head: HeapNode;
}

const ROWS = 30;

function frameName({ functionName, url, lineNumber }: CallFrame): string {
  const name = functionName === '' ? '(anonymous)' : functionName;
  if (url === '') return name;
  const place = url.replace(/^.*\/(dist-test|node_modules)\//, '').replace(/^file:\/\//, '');
  return `${name}  ${place}:${lineNumber + 1}`;
}

function table(values: ReadonlyMap<string, number>, unit: string): string[] {
  let sum = 0;
  for (const value of values.values()) sum += value;
  const rows = [...values].sort((left, right) => right[1] - left[1]).slice(0, ROWS);
  const lines = rows.map(([name, value]) => {
    const share = ((100 * value) / sum).toFixed(1).padStart(5);
    return `${share} %  ${Math.round(value).toString().padStart(10)} ${unit}  ${name}`;
  });
  return [`${Math.round(sum)} ${unit} in all`, ...lines];
}

function cpuTable(profile: CpuProfile): string[] {
  const names = new Map<number, string>();
  for (const { id, callFrame } of profile.nodes) names.set(id, frameName(callFrame));
  const spent = new Map<string, number>();
  for (const [at, id] of profile.samples.entries()) {
    const name = names.get(id) ?? '(unknown)';
    if (name === '(idle)') continue;
    spent.set(name, (spent.get(name) ?? 0) + (profile.timeDeltas[at] ?? 0) / 1_000);
  }
  return table(spent, 'ms');
}

function heapTable(profile: HeapProfile): string[] {
  const sizes = new Map<string, number>();
  const visit = (node: HeapNode): void => {
    const name = frameName(node.callFrame);
    if (node.selfSize > 0) sizes.set(name, (sizes.get(name) ?? 0) + node.selfSize);
    for (const child of node.children) visit(child);
  };
  visit(profile.head);
  return table(sizes, 'B');
}

/** The functions with the greatest self value, and what share of the whole each has. */
export function profileTable(profile: CpuProfile | HeapProfile): string[] {
  return 'head' in profile ? heapTable(profile) : cpuTable(profile);
}

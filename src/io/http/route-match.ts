/**
 * Finds the route of a path.
 *
 * Owns: how paths are compared: segment by segment, one in braces takes any that is not empty, and
 * percent-decoded. Never: more than the table says. Used by: http-door.ts.
 */
import { ROUTES, type Route } from '../../wire/http-routes.js';

/** A route and the text in its braces, or the methods that the path would take. */
export interface Match {
  readonly route: Route | null;
  readonly subject: string;
  /** When `route` is null: empty for an unknown path. */
  readonly allowed: readonly string[];
  /** True when the segment in braces is no percent-encoded UTF-8. */
  readonly isBroken: boolean;
}

interface Pattern {
  readonly route: Route;
  readonly segments: readonly string[];
  /** Place of the segment in braces, -1 for none. */
  readonly place: number;
}

function patternsBySize(): ReadonlyMap<number, readonly Pattern[]> {
  const bySize = new Map<number, Pattern[]>();
  for (const route of ROUTES) {
    const segments = route.path.split('/');
    const place = segments.findIndex((segment) => segment.startsWith('{'));
    const known = bySize.get(segments.length) ?? [];
    bySize.set(segments.length, known);
    known.push({ route, segments, place });
  }
  return bySize;
}

const PATTERNS = patternsBySize();

function isMatch(pattern: Pattern, segments: readonly string[]): boolean {
  for (let at = 0; at < segments.length; at += 1) {
    const isHole = at === pattern.place;
    if (isHole ? segments[at] === '' : segments[at] !== pattern.segments[at]) return false;
  }
  return true;
}

export function matchRoute(method: string, path: string): Match {
  const segments = path.split('/');
  const allowed: string[] = [];
  for (const pattern of PATTERNS.get(segments.length) ?? []) {
    if (!isMatch(pattern, segments)) continue;
    if (pattern.route.method !== method) {
      allowed.push(pattern.route.method);
      continue;
    }
    const text = pattern.place < 0 ? '' : (segments[pattern.place] ?? '');
    const subject = decode(text);
    return { route: pattern.route, subject: subject ?? '', allowed, isBroken: subject === null };
  }
  return { route: null, subject: '', allowed, isBroken: false };
}

function decode(text: string): string | null {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // the caller is told which parameter it was
  }
}

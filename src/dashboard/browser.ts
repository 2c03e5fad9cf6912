/**
 * The few things of a browser that the dashboard touches, as types.
 *
 * Owns: nothing at run time. The project compiles without the DOM's types, so that no other part
 * can reach for them by mistake. Used by: every file of the dashboard.
 */

/** An element, as far as it is handed on. */
export interface Element {
  readonly clientWidth: number;
  textContent: string | null;
  getAttribute(name: string): string | null;
}

export interface Socket {
  onopen: (() => void) | null;
  onmessage: ((message: { readonly data: string }) => void) | null;
  onclose: (() => void) | null;
  close(): void;
}

interface Media {
  readonly matches: boolean;
  addEventListener(event: 'change', call: () => void): void;
}

interface BrowserScope {
  readonly document: { getElementById(id: string): Element | null };
  readonly location: { readonly host: string; readonly protocol: string };
  readonly WebSocket: new (url: string) => Socket;
  matchMedia(query: string): Media;
  addEventListener(event: 'resize', call: () => void): void;
}

/** The page's global object. */
export const browser = globalThis as unknown as BrowserScope;

/**
 * Somebody who knows locks by a watch alone.
 *
 * Owns: what it believes, from snapshots and events, and whether it was told in order. Never: asks
 * the cluster while it watches; the comparison comes at the end. Used by: watch-compacted.ts.
 */
import type { Client, WatchItem, WatchOptions } from '../../../client/index.js';
import type { Stage } from '../drill.js';

export class Onlooker {
  /** Everything up to here was told. */
  revision = 0;
  /** Snapshots that were begun. */
  snapshots = 0;
  /** Events that came twice or out of order. */
  faults = 0;
  /** True once the present watch has been told anything. */
  isOpen = false;
  private readonly held = new Map<string, number>();

  constructor(
    private readonly client: Client,
    private readonly prefix: string,
  ) {}

  /** Whether it believes that a lock is held, with this token if one is given. */
  knows(name: string, token?: number): boolean {
    const found = this.held.get(name);
    return found !== undefined && (token === undefined || found === token);
  }

  /** Follows until `isEnough` says so after an item. Rejects when the watch is ended. */
  async follow(options: WatchOptions, isEnough: () => boolean): Promise<void> {
    this.isOpen = false;
    for await (const item of this.client.watchPrefix(this.prefix, options)) {
      this.take(item);
      this.isOpen = true;
      if (isEnough()) return;
    }
  }

  /** What it believes must be what the list says. */
  async demandAgrees({ story, client }: Stage): Promise<void> {
    const listed = new Map<string, number>();
    for await (const { name, holder } of client.list(this.prefix)) {
      if (holder !== null) listed.set(name, holder.token);
    }
    const names = [...new Set([...listed.keys(), ...this.held.keys()])];
    const differing = names.filter((name) => listed.get(name) !== this.held.get(name));
    const words = differing.map((name) => {
      const [there, here] = [listed.get(name) ?? 'nobody', this.held.get(name) ?? 'nobody'];
      return `${name}: the cluster says ${there}, the watcher believes ${here}`;
    });
    const found = words.length === 0 ? `${listed.size} held` : words.join('; ');
    story.demand('the watcher believes what the cluster says', words.length === 0, found);
  }

  private take(item: WatchItem): void {
    if (item.type === 'snapshot') {
      if (item.isFirst) {
        this.held.clear();
        this.snapshots += 1;
      }
      for (const { name, holder } of item.locks) {
        if (holder !== null) this.held.set(name, holder.token);
      }
      return;
    }
    if (item.type === 'progress') {
      this.revision = Math.max(this.revision, item.revision);
      return;
    }
    if (item.revision <= this.revision) this.faults += 1;
    this.revision = item.revision;
    if (item.type === 'granted') this.held.set(item.name, item.token);
    if (item.type === 'ended') this.held.delete(item.name);
  }
}

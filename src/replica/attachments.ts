/**
 * Which session speaks through which connection, and who listens for which queue place.
 *
 * Owns: both maps. Neither is replicated: after a failover a client attaches again, newest wins.
 * Never: decides whether a session lives. Used by: admission, apply.
 */
import type { Connection } from './connection.js';

interface Attachment {
  /** The session's number: tells it from an earlier session in the same slot. */
  readonly number: number;
  readonly connection: Connection;
}

/** A caller that is owed the final result of a wait. */
export interface Listener {
  readonly connection: Connection;
  readonly correlation: number;
  /** The wait has no session but the one that this node keeps alive. */
  readonly isImplicit: boolean;
}

export class Attachments {
  private readonly bySlot: (Attachment | undefined)[] = [];
  private readonly byPlace = new Map<number, Listener[]>();
  /** Slots that were attached to each open connection; some may be another's by now. */
  private readonly slotsOf = new Map<Connection, Set<number>>();

  /** Binds a session to a connection; the one it was bound to loses it. */
  attach(slot: number, number: number, connection: Connection): void {
    this.bySlot[slot] = { number, connection };
    const slots = this.slotsOf.get(connection);
    if (slots === undefined) this.slotsOf.set(connection, new Set([slot]));
    else slots.add(slot);
  }

  /** True when `connection` may speak for the session in `slot`. */
  isAttached(slot: number, number: number, connection: Connection): boolean {
    const attachment = this.bySlot[slot];
    return (
      attachment !== undefined &&
      attachment.connection === connection &&
      attachment.number === number
    );
  }

  /** `connection` is owed the final result of the wait at `place`. */
  listen(place: number, connection: Connection, correlation: number, isImplicit: boolean): void {
    const listener = { connection, correlation, isImplicit };
    const listeners = this.byPlace.get(place);
    if (listeners === undefined) this.byPlace.set(place, [listener]);
    else listeners.push(listener);
  }

  /** This caller is owed nothing any more. False when it was owed nothing. */
  unlisten(place: number, connection: Connection, correlation: number): boolean {
    const listeners = this.byPlace.get(place);
    if (listeners === undefined) return false;
    const left = listeners.filter(
      (each) => each.connection !== connection || each.correlation !== correlation,
    );
    if (left.length === listeners.length) return false;
    if (left.length === 0) this.byPlace.delete(place);
    else this.byPlace.set(place, left);
    return true;
  }

  /** Removes and returns those who are owed the result of `place`. */
  takeListeners(place: number): readonly Listener[] | undefined {
    const listeners = this.byPlace.get(place);
    if (listeners !== undefined) this.byPlace.delete(place);
    return listeners;
  }

  /** Implicit waits that an open connection listens to; the places of closed ones are dropped. */
  implicitPlaces(): number[] {
    const places: number[] = [];
    for (const [place, listeners] of this.byPlace) {
      const open = listeners.find((listener) => !listener.connection.closed);
      if (open === undefined) this.byPlace.delete(place);
      else if (open.isImplicit) places.push(place);
    }
    return places;
  }

  /**
   * The state was replaced: every session has another slot, and is attached anew. Returns the
   * listeners of the places of which `stands` says false; they are taken out.
   */
  replaceState(stands: (place: number) => boolean): readonly Listener[] {
    this.bySlot.length = 0;
    this.slotsOf.clear();
    const lost: Listener[] = [];
    for (const [place, listeners] of this.byPlace) {
      if (stands(place)) continue;
      this.byPlace.delete(place);
      lost.push(...listeners);
    }
    return lost;
  }

  /** Forgets every session that spoke through a connection that has closed. */
  detach(connection: Connection): void {
    for (const slot of this.slotsOf.get(connection) ?? []) {
      if (this.bySlot[slot]?.connection === connection) this.bySlot[slot] = undefined;
    }
    this.slotsOf.delete(connection);
  }
}

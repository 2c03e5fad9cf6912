/**
 * What a guard has let through and refused: counters, and a hook for those who watch.
 *
 * Owns: the counts of one guard object. Never: a metrics library or a log; whoever has one passes
 * an observer, which is told after the decision and cannot change it. Used by: every guard.
 */
import type { Fence } from './fence.js';

/** One decision of a guard. */
export interface GuardEvent {
  /** Which guard, such as `postgres`. */
  readonly resource: string;
  readonly lock: string;
  /** Token that was shown. */
  readonly offered: number;
  /** Mark that it was compared with; 0 when the resource did not tell. */
  readonly seen: number;
}

/** Told of every decision. What it throws or rejects is counted and goes nowhere else. */
export interface GuardObserver {
  onAccepted?(event: GuardEvent): void;
  onRefused?(event: GuardEvent): void;
  /** A barrier or a migration raised the mark. */
  onRaised?(event: GuardEvent): void;
  /** A write of which nobody knows whether it was done. */
  onUnknown?(event: GuardEvent): void;
}

type Hook = keyof GuardObserver;

export class Tally {
  accepted = 0;
  refused = 0;
  raised = 0;
  unknown = 0;
  /** Errors of the observer. */
  observerErrors = 0;

  /** @param resource name of the guard in events and messages. */
  constructor(
    readonly resource: string,
    private readonly observer: GuardObserver = {},
  ) {}

  onAccepted(fence: Fence, seen: number): void {
    this.accepted += 1;
    this.tell('onAccepted', fence, seen);
  }

  onRefused(fence: Fence, seen: number): void {
    this.refused += 1;
    this.tell('onRefused', fence, seen);
  }

  onRaised(fence: Fence, seen: number): void {
    this.raised += 1;
    this.tell('onRaised', fence, seen);
  }

  onUnknown(fence: Fence): void {
    this.unknown += 1;
    this.tell('onUnknown', fence, 0);
  }

  private tell(hook: Hook, { lock, token }: Fence, seen: number): void {
    // A broken observer must not turn a write that was done into one that failed.
    const onError = (): void => {
      this.observerErrors += 1;
    };
    try {
      const event = { resource: this.resource, lock, offered: token, seen };
      // The type says void, and an asynchronous function passes for it.
      const returned: unknown = this.observer[hook]?.(event);
      if (returned instanceof Promise) returned.catch(onError);
    } catch {
      onError();
    }
  }
}

/**
 * The invariants that a log of events must keep by itself, without a second machine.
 *
 * Owns: who holds and who waits, as a watcher would know it from events alone. Never: the rules of
 * commands. Used by: the property test, on what the production machine gave.
 */

import { EventKind } from '../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../src/core/locks/outcome.js';
import type { ModelEvent, ModelStep } from './model-types.js';

const RULES = 'a rule is made once and taken away once';

/** The name or prefix that a Disabled or Enabled is about. */
function ruleOf({ name, place }: ModelEvent): string {
  return `${place} ${name}`;
}

function demand(holds: boolean, rule: string, event: ModelEvent): void {
  if (!holds) throw new Error(`${rule}: ${JSON.stringify(event)}`);
}

/** Follows one log; `check` throws at the first entry that breaks an invariant. */
export class InvariantChecker {
  private revision = 0;
  private token = 0;
  /** Token of the holder of each held lock. */
  private readonly holders = new Map<string, number>();
  /** Places in each queue, first first. */
  private readonly queues = new Map<string, number[]>();
  /** Names and prefixes that are disabled. */
  private readonly rules = new Set<string>();

  /** Checks the events of the next entry against all before. */
  check(step: ModelStep): void {
    for (const event of step.events) {
      demand(event.revision === this.revision + 1, 'revisions are consecutive', event);
      this.revision = event.revision;
      this.checkEvent(event);
    }
  }

  private isDisabled(name: string): boolean {
    if (this.rules.has(`0 ${name}`)) return true;
    return [...this.rules].some((rule) => rule.startsWith('1 ') && name.startsWith(rule.slice(2)));
  }

  private checkEvent(event: ModelEvent): void {
    const { name } = event;
    const queue = this.queues.get(name) ?? [];
    this.queues.set(name, queue);
    switch (event.kind) {
      case EventKind.Granted:
        demand(!this.holders.has(name), 'I1: one lease at a time', event);
        // Who was in the queue is granted, whatever is disabled; nobody else is.
        demand(event.place > 0 || !this.isDisabled(name), 'a disabled name takes nobody', event);
        demand(event.token > this.token, 'I2: tokens rise', event);
        demand(event.token === event.revision, 'a token is the revision of its grant', event);
        // Place 0: granted at once, which nobody may be while somebody waits.
        demand((queue.shift() ?? 0) === event.place, 'I7: first come, first served', event);
        this.token = event.token;
        this.holders.set(name, event.token);
        break;
      case EventKind.Ended:
        demand(this.holders.get(name) === event.token, 'a lease ends that was held', event);
        this.holders.delete(name);
        break;
      case EventKind.Queued:
        demand(this.holders.has(name) || queue.length > 0, 'nobody queues for a free lock', event);
        demand(!this.isDisabled(name), 'nobody queues for a disabled name', event);
        demand(event.place === event.revision, 'a place is the revision of its Queued', event);
        queue.push(event.place);
        break;
      case EventKind.Disabled:
      case EventKind.Enabled:
        demand(this.rules.has(ruleOf(event)) === (event.kind === EventKind.Enabled), RULES, event);
        if (event.kind === EventKind.Disabled) this.rules.add(ruleOf(event));
        else this.rules.delete(ruleOf(event));
        break;
      case EventKind.Refused:
        demand(event.cause !== 0 && event.token === 0, 'a refusal names its code', event);
        break;
      case EventKind.Fenced:
        demand(event.cause === OutcomeCode.StaleToken, 'a guard refuses stale tokens', event);
        break;
      case EventKind.Expelled:
        demand(
          event.name === '' && event.cause === LeaseEnd.Forced,
          'a session has no name',
          event,
        );
        break;
      default:
        demand(queue.includes(event.place), 'a waiter leaves that stood there', event);
        queue.splice(queue.indexOf(event.place), 1);
    }
  }
}

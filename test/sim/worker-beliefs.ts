/**
 * What one simulated user takes itself to hold, and until when by its own clock.
 *
 * Owns: the beliefs under its present session, or since it last vanished. As a careful client: a
 * safe deadline counts from the moment of first sending. Never: asks. Used by: sim-worker.ts.
 */
import { marginMs } from '../../src/client/deadline.js';
import type { Answer, Belief, History, Operation } from './history.js';

const US_PER_MS = 1_000;

export class WorkerBeliefs {
  private beliefs: Belief[] = [];

  constructor(
    private readonly history: History,
    private readonly clockRate: number,
    private readonly nowUs: () => number,
  ) {}

  /** Notes until when it may take itself for the holder, by `answer` to `operation`. */
  add(operation: Operation, token: number, answer: Answer): void {
    const nowUs = this.nowUs();
    const leaseMs = answer.deadline - answer.clusterTime;
    // A client measures with its own clock: its ms is clockRate of a true one.
    const safeUs = ((leaseMs - marginMs(leaseMs)) * US_PER_MS) / this.clockRate;
    const untilUs = operation.sentUs + safeUs;
    if (untilUs <= nowUs) return;
    const { client, lock } = operation;
    const belief = { client, lock, token, fromUs: nowUs, untilUs };
    this.history.beliefs.push(belief);
    this.beliefs.push(belief);
  }

  /** Gives up what it believes of one lease, or of all (0), before it asks for their end. */
  stop(token: number): void {
    const nowUs = this.nowUs();
    for (const belief of this.beliefs) {
      const isMeant = token === 0 || belief.token === token;
      if (isMeant) belief.untilUs = Math.max(belief.fromUs, Math.min(belief.untilUs, nowUs));
    }
  }

  /** What it believed so far is no matter of its present session any more. */
  forget(): void {
    this.beliefs = [];
  }
}

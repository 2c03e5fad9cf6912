/**
 * All checkers on one finished simulated run.
 *
 * Owns: which checker judges what, and which may speak when clocks run wild. Never: a rule.
 * Used by: chaos.ts.
 */
import type { Settings } from '../../../src/core/locks/settings.js';
import type { History, Operation } from '../history.js';
import type { Ledger } from '../ledger.js';
import { checkAnswers } from './answers.js';
import { checkDurability } from './durability.js';
import { checkEventStream } from './event-stream.js';
import { checkExclusion, checkTokens, checkTrespass } from './exclusion.js';
import { checkPlaces, checkQueues } from './fifo.js';
import { checkForgetting } from './forgetting.js';
import { checkIdempotency } from './idempotency.js';
import {
  checkBeliefs,
  checkClusterTime,
  checkDeadlines,
  checkPulses,
  type Stall,
} from './lease-bounds.js';
import { checkLinearizability } from './linearizability.js';
import { checkModel } from './model.js';
import { checkOperators, forcedEnds } from './operators.js';
import type { Verdict } from './verdict.js';

/** Clocks run at most so much faster than true time, in the wildest of seeds and in the others. */
const RATE_MAX = 1.06;
const SOUND_RATE_MAX = 1.03;

export interface FinishedRun {
  readonly ledger: Ledger;
  readonly history: History;
  readonly settings: Settings;
  readonly stalls: readonly Stall[];
  /** When the cluster was healed, µs. */
  readonly healedUs: number;
  /** Clocks kept to the assumed rates: bounds on time may be demanded. */
  readonly areClocksSound: boolean;
}

/** The verdicts of every checker, in order. */
export function checkRun(run: FinishedRun): Verdict[] {
  const { ledger, history, settings, stalls } = run;
  const { entries } = ledger;
  const { resultRetentionMs } = settings;
  const rateMax = run.areClocksSound ? SOUND_RATE_MAX : RATE_MAX;
  const { verdict: forgetting, lives } = checkForgetting(entries, resultRetentionMs);
  const mayBeTwo = ({ id }: Operation): boolean => (lives.get(id) ?? 0) > 1;
  const events = entries.flatMap((entry) => entry.events);
  const verdicts = [
    checkExclusion(events),
    checkTokens(history),
    checkTrespass(history),
    checkQueues(events),
    checkPlaces(history, resultRetentionMs),
    checkIdempotency(history, resultRetentionMs),
    forgetting,
    checkEventStream(events),
    checkDurability(events, history),
    checkAnswers(entries, history),
    checkDeadlines(events, history),
    checkLinearizability(history, { mayBeTwo, rateMax }),
    checkModel(entries, settings),
    checkOperators(entries),
  ];
  if (run.areClocksSound) {
    verdicts.push(checkBeliefs(history, forcedEnds(events)), checkClusterTime(entries, stalls));
    verdicts.push(checkPulses(entries, stalls, run.healedUs));
  }
  return verdicts;
}

/**
 * What the cluster itself puts into the log: keep-alives of implicit sessions, changed settings.
 *
 * Owns: both commands. Never: takes them from a client; the principal must be the cluster.
 * Called by: lock-machine.ts.
 */
import { type Command, PRINCIPAL_CLUSTER } from './command.js';
import type { MachineState } from './machine-state.js';
import { type Outcome, OutcomeCode } from './outcome.js';
import { waitDeadline } from './ownership.js';
import { refuseField } from './requests.js';
import { areSettingsValid, settingNameOf } from './settings.js';
import { NONE } from './tables/table.js';

/** Every implicit wait that is named and not dead has been heard of now (I7). */
export function applyKeepWaits(state: MachineState, command: Command, outcome: Outcome): void {
  if (command.principal !== PRINCIPAL_CLUSTER) {
    outcome.code = OutcomeCode.Forbidden;
    return;
  }
  const { waits, now, settings } = state;
  for (let i = 0; i < command.numbersCount; i += 1) {
    const wait = waits.findPlace(command.numbers[i] as number);
    if (wait === NONE || waits.session[wait] !== NONE) continue;
    if (waitDeadline(state, wait) <= now) continue;
    waits.digest.touch(wait);
    waits.keptUntil[wait] = Math.max(
      waits.keptUntil[wait] as number,
      now + settings.implicitLapseMs,
    );
    // The heap's key stays: it is a lower bound, and the sweep looks again when it is reached.
  }
}

/** Replaces the named settings, all or none. */
export function applySettings(state: MachineState, command: Command, outcome: Outcome): void {
  if (command.principal !== PRINCIPAL_CLUSTER) {
    outcome.code = OutcomeCode.Forbidden;
    return;
  }
  const changed = { ...state.settings };
  for (let i = 0; i + 1 < command.numbersCount; i += 2) {
    const name = settingNameOf(command.numbers[i] as number);
    if (name === undefined) {
      refuseField(outcome, OutcomeCode.BadRequest, 'settings');
      return;
    }
    changed[name] = command.numbers[i + 1] as number;
  }
  if (command.numbersCount % 2 !== 0 || !areSettingsValid(changed)) {
    refuseField(outcome, OutcomeCode.BadRequest, 'settings');
    return;
  }
  Object.assign(state.settings, changed);
  state.ended.resize(changed.endedLeasesMax);
}

/**
 * What an error of the cluster means to somebody at a shell, and what to do.
 *
 * Owns: sentences that name the options of the command line in place of the fields of the wire.
 * Never: another code or outcome than the error has. Used by: the commands, client-holder.ts,
 * leader-call.ts.
 */
import { HoldfastError } from '../client/errors.js';
import { NO_ANSWER, SAYS_NOTHING, type SilentNode } from '../client/unreachable.js';
import { defaultSettingMs, type SettingName } from '../server/options.js';
import { formatDuration } from './duration.js';

/** What every node refuses for so long is given up, unless --timeout says how long to try. */
export const HOPELESS_MS = 2_000;

/** A value of the command line that the cluster may refuse. */
export interface GivenValue {
  /** As the user names it: `--ttl`. */
  readonly option: string;
  readonly text: string;
  /** Settings that bound it, the least first; null where the least is 0. */
  readonly range?: readonly [SettingName | null, SettingName];
}

function silentIn(error: unknown): readonly SilentNode[] {
  return error instanceof HoldfastError ? (error.details.silent ?? []) : [];
}

/** True when no node was reached and each has said at once that it will not be. */
export function isHopeless(error: unknown): boolean {
  const silent = silentIn(error);
  const isQuick = ({ reason }: SilentNode): boolean =>
    reason !== NO_ANSWER && reason !== SAYS_NOTHING;
  return silent.length > 0 && silent.every(isQuick);
}

/** `error` with other words, and all else as it is. */
export function reworded(error: HoldfastError, message: string): HoldfastError {
  const { number, details, outcome, retryable, retryAfterMs } = error;
  const init = { message, details, outcome, retryable, retryAfterMs };
  return new HoldfastError(number, init);
}

/** When no node was reached: the same error, and what to look at. */
export function withAdvice(error: unknown): unknown {
  const silent = silentIn(error);
  if (!(error instanceof HoldfastError) || silent.length === 0) return error;
  const isDown = silent.every(({ reason }) => reason === 'refused');
  const advice = isDown
    ? 'Is the cluster running? Start one with npm start, or give --endpoints'
    : 'Check --endpoints';
  return reworded(error, `${error.message}. ${advice}`);
}

function rangeWords(range: GivenValue['range']): string {
  if (range === undefined) return 'is malformed or out of range';
  const [least, greatest] = range;
  const from = least === null ? '0s' : formatDuration(defaultSettingMs(least));
  const names = [least, greatest].filter((name) => name !== null).join(', ');
  const to = formatDuration(defaultSettingMs(greatest));
  return `is out of range: ${from} to ${to}, unless the cluster was founded with other ${names}`;
}

/** A refusal that names a field of the wire, in the words of the command line. */
export function explainField(
  error: unknown,
  values: Readonly<Record<string, GivenValue>>,
): unknown {
  if (!(error instanceof HoldfastError) || error.code !== 'BAD_REQUEST') return error;
  const value = values[error.details.field ?? ''];
  if (value === undefined) return error;
  return reworded(error, `${value.option}: ${value.text} ${rangeWords(value.range)}`);
}

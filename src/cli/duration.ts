/**
 * Durations as people type them: 250ms, 5s, 2m, 1h.
 *
 * Owns: what is accepted: one number, one unit. A number without a unit is refused, since 30 would
 * be half a minute to one reader and nothing to another; 0 is 0 in any. Never: negative or
 * fractional milliseconds.
 * The only file that imports ms. Used by: every command with a time.
 */
import ms, { type StringValue } from 'ms';
import { OptionError } from '../server/options.js';

const PATTERN = /^(0|\d{1,12}(\.\d{1,6})?(ms|s|m|h|d))$/;

/**
 * Reads a duration.
 *
 * @param option the option's name, for the refusal.
 * @param text such as '1.5s'.
 * @returns whole milliseconds, 0 or more. Throws OptionError for anything else.
 */
export function parseDuration(option: string, text: string): number {
  const value = PATTERN.test(text) ? ms(text as StringValue) : Number.NaN;
  if (!Number.isSafeInteger(value) || value < 0) {
    const wanted = 'a number with ms, s, m, h or d, such as 250ms, 1.5s or 90s';
    throw new OptionError(option, `give ${wanted}, not '${text}'`);
  }
  return value;
}

/** A duration for people: 250ms, 4.2s, 3m20s, 2h5m. */
export function formatDuration(durationMs: number): string {
  const whole = Math.max(0, Math.round(durationMs));
  if (whole < 1_000) return `${whole}ms`;
  if (whole < 60_000) return `${(Math.floor(whole / 100) / 10).toString()}s`;
  const seconds = Math.floor(whole / 1_000);
  if (seconds < 3_600) return joinUnits(Math.floor(seconds / 60), 'm', seconds % 60, 's');
  const minutes = Math.floor(seconds / 60);
  return joinUnits(Math.floor(minutes / 60), 'h', minutes % 60, 'm');
}

function joinUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

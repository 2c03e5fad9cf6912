/**
 * Ends the process when the log has been silent for too long.
 *
 * Owns: one interval timer and the count of its ticks. Silence is counted in ticks of the main
 * thread, so a process that was itself stopped, or whose loop stalled, is not mistaken for a dead
 * disk: the answer that waited behind the stall is read before a second tick can count. Never: a
 * retry, or process.exit, which can hang while native code is blocked. Used by: log.ts.
 */
import { writeSync } from 'node:fs';

const TICKS = 8;

/** Writes one line to standard error before it returns, whatever state the process is in. */
export function writeLastWords(text: string): void {
  try {
    writeSync(2, `holdfast: ${text}\n`);
  } catch {
    // Standard error is closed or full: the exit status still says that the node ended.
  }
}

/** Ends the process at once. SIGKILL, since a thread blocked in native code holds up all else. */
export function endProcess(text: string): void {
  writeLastWords(text);
  process.kill(process.pid, 'SIGKILL');
}

/** Watches for answers to something outstanding. */
export class Watchdog {
  private readonly timer: NodeJS.Timeout;
  private outstanding = 0;
  private silentTicks = 0;

  /**
   * @param silenceMsMax ms, of main thread time, after which `onSilence` is called
   * @param onSilence called once
   */
  constructor(
    private readonly silenceMsMax: number,
    private readonly onSilence: (silentMs: number) => void,
  ) {
    this.timer = setInterval(() => this.tick(), Math.max(1, silenceMsMax / TICKS));
    this.timer.unref();
  }

  /** Something was asked for; the silence begins when nothing was outstanding before. */
  onAsked(): void {
    if (this.outstanding === 0) this.silentTicks = 0;
    this.outstanding += 1;
  }

  /** `count` of what was asked for has been answered. */
  onAnswered(count: number): void {
    this.outstanding -= count;
    this.silentTicks = 0;
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    if (this.outstanding === 0) return;
    this.silentTicks += 1;
    // The tick in progress when the wait began does not count whole.
    if (this.silentTicks <= TICKS) return;
    this.stop();
    this.onSilence(this.silenceMsMax);
  }
}

/**
 * The thread that reads history: one question at a time, in the order in which they come.
 *
 * Owns: the messages between the node and its reader. What is wrong with the disk is told in words;
 * the node then gives its history up. Never: writes. Started by: server/history.ts.
 */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import {
  type HistoryAnswer,
  type HistoryAsk,
  HistoryReader,
  type HistoryReaderOptions,
} from './history-reader.js';

/** What the thread is asked, under a number. */
export interface HistoryQuestion {
  readonly readId: number;
  readonly ask: HistoryAsk;
}

/** What it answers: a page, null for what is not kept, or what is wrong. */
export interface HistoryReport {
  readonly readId: number;
  readonly answer: HistoryAnswer | null;
  readonly fault: string;
}

/** The scheduler prefers the threads that serve; on Linux this is about the calling thread. */
const NICE = 10;

const reader = new HistoryReader(workerData as HistoryReaderOptions);
setPriority(NICE);

parentPort?.on('message', ({ readId, ask }: HistoryQuestion) => {
  let report: HistoryReport;
  try {
    report = { readId, answer: reader.read(ask), fault: '' };
  } catch (error) {
    reader.forget();
    report = { readId, answer: null, fault: error instanceof Error ? error.message : 'unknown' };
  }
  parentPort?.postMessage(report);
});

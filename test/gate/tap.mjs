/**
 * Runs compiled test files, each in a process group of its own, and counts their assertions.
 *
 * A test file prints TAP when node runs it; starting it under tap's own runner costs a second a
 * file, so this reads the TAP itself. A file that prints no summary, runs no assertion, exits
 * non-zero, or outlives its time counts as failed. What a file leaves running is killed with it.
 * Called by run.mjs.
 */

import { spawn } from 'node:child_process';
import path from 'node:path';
import { root } from './project.mjs';

const fileTimeMsMax = 300_000;
const outputBytesMax = 8 * 1024 * 1024;
const running = new Set();

function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error; // ESRCH: everybody in the group has ended already
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    for (const child of running) killGroup(child);
    process.exit(130);
  });
}

function keepEnd(text) {
  return text.length > outputBytesMax ? text.slice(-outputBytesMax / 2) : text;
}

function readSummary(text) {
  const line = text.match(/^# \{ total: (.*) \}$/m);
  if (line === null) return undefined;
  const summary = { total: 0, pass: 0, fail: 0, todo: 0, skip: 0 };
  for (const [, name, count] of line[0].matchAll(/(\w+): (\d+)/g)) summary[name] = Number(count);
  return summary;
}

/** The failed assertions of a TAP text, each with its diagnostics; the tail if there is none. */
export function excerptOf(text) {
  const lines = text.split('\n');
  const kept = [];
  let depth = -1; // indentation of the failed assertion whose diagnostics follow, or -1
  let hidden = -1; // indentation of a block that says nothing about the source, or -1
  for (const line of lines) {
    if (line.trim() === '') continue;
    const indent = line.length - line.trimStart().length;
    if (/^\s*not ok (?!.*# TODO)/.test(line)) depth = indent;
    else if (indent <= depth) depth = -1;
    if (indent <= hidden) hidden = -1;
    if (hidden < 0 && /^\s*(generated|typeName|isToplevel):/.test(line)) hidden = indent;
    if (depth >= 0 && hidden < 0) kept.push(line);
  }
  return (kept.length > 0 ? kept.slice(0, 200) : lines.slice(-60)).join('\n').trimEnd();
}

/** Judges one file's run. Returns what to add to the sums, and why it failed if it did. */
export function judge({ text, status, signal, timedOut, timeMsMax = fileTimeMsMax }) {
  const summary = readSummary(text);
  const passed = summary?.pass ?? 0;
  let failed = summary?.fail ?? 0;
  let reason = failed > 0 ? `${failed} failed` : '';
  if (timedOut) reason = `still running after ${timeMsMax / 1_000} s`;
  else if (signal !== null) reason = `ended by ${signal}`;
  else if (summary === undefined) reason = `ended with status ${status} and no summary`;
  else if (passed + failed + summary.skip === 0) reason = 'ran no assertion';
  else if (status !== 0 && failed === 0) reason = `ended with status ${status}`;
  if (reason !== '' && failed === 0) failed = 1;
  return { passed, failed, skipped: summary?.skip ?? 0, reason };
}

/**
 * Runs one compiled file, given relative to the root. With `shown`, its output is also printed. The
 * gate's bound on its time is for files of the gate; others may be given more.
 */
export function runFile(file, shown, timeMsMax = fileTimeMsMax) {
  return new Promise((resolve) => {
    const started = Date.now();
    const child = spawn(process.execPath, ['--enable-source-maps', path.join(root, file)], {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TAP_TIMEOUT: String(timeMsMax / 1_000) },
    });
    running.add(child);
    let text = '';
    let noise = '';
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child);
    }, timeMsMax);
    child.stdout.on('data', (chunk) => {
      text = keepEnd(text + chunk);
      if (shown) process.stdout.write(chunk);
    });
    child.stderr.on('data', (chunk) => {
      noise = keepEnd(noise + chunk);
      if (shown) process.stderr.write(chunk);
    });
    // 'exit' comes before the pipes close, which a stray grandchild would hold open for ever.
    child.once('exit', () => killGroup(child));
    child.once('close', (status, signal) => {
      clearTimeout(timer);
      running.delete(child);
      const verdict = judge({ text, status, signal, timedOut, timeMsMax });
      resolve({ file, ...verdict, text, noise, ms: Date.now() - started });
    });
  });
}

/** Runs the files, `jobs` at a time, and calls `onDone` with each result as it comes. */
export async function runFiles(files, jobs, onDone) {
  const queue = [...files];
  const shown = files.length === 1 && onDone === undefined;
  const results = [];
  const work = async () => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const result = await runFile(file, shown);
      results.push(result);
      onDone?.(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  return results;
}

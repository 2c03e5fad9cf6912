/**
 * From the data folders of the nodes that are left to those of a new cluster, when a majority is
 * lost for ever.
 *
 * Owns: which folder is taken (the one whose log is the most advanced, as an election would choose:
 * by the term of its last entry, then by its length, Raft §5.4.1), what may be lost with the
 * others, and the refusals: folders that are open, damaged, of two clusters, or of a majority, with
 * which nothing is lost. Never: a change in those folders. What becomes of the state is the same as
 * with a backup. Used by: cli/commands/unsafe-recover.ts.
 */
import fs from 'node:fs';
import type { LockMachine } from '../core/locks/lock-machine.js';
import { FolderLock } from '../io/log/folder-lock.js';
import { FaultKind } from '../io/scrub/fault.js';
import { checkFolder, type FolderReport } from '../io/scrub/folder-check.js';
import type { FoundingRecord } from '../wire/founding.js';
import { hexOf } from './founding.js';
import { demandEmpty, type NewCluster, writeNewCluster } from './new-cluster.js';
import { type MemberAddress, OptionError } from './options.js';
import { reasonOf } from './restore.js';
import { RestoreRefused } from './restore-refused.js';

export interface RecoverPlan {
  /** Data folders of the nodes that are left. */
  readonly folders: readonly string[];
  readonly to: string;
  readonly members: readonly MemberAddress[];
  readonly revisionFloor: number;
  readonly graceMs: number | null;
  readonly reason: string;
  /** Told before anything is written; a throw ends it there. */
  readonly onSurvey: (survey: Survey) => void;
}

/** One folder, by what decides between them. */
export interface Survivor {
  readonly folder: string;
  readonly nodeId: number;
  readonly term: number;
  readonly index: number;
  /** Highest index that it knows to be committed. */
  readonly committedIndex: number;
}

export interface Survey {
  /** Of the old cluster. */
  readonly clusterId: string;
  readonly survivors: readonly Survivor[];
  readonly taken: Survivor;
  /** Its revision. */
  readonly revision: number;
  /** Members of the old cluster whose folders were not given. */
  readonly missing: readonly number[];
}

interface Looked extends Survivor {
  readonly founding: FoundingRecord;
  readonly machine: LockMachine;
}

function refuseDamaged(folder: string, words: string): RestoreRefused {
  const way = 'Leave it out, or look at it with `holdfast verify --folder`';
  return new RestoreRefused('FOLDER_DAMAGED', `${way}: ${folder} ${words}.`);
}

/** What the folder holds, every byte read. Damage in the history alone does not matter here. */
function lookAt(folder: string, report: FolderReport): Looked {
  const { identity, replay, faults, committedIndex } = report;
  const fault = faults.find(({ kind }) => kind !== FaultKind.History);
  if (fault !== undefined) {
    throw refuseDamaged(folder, `is damaged: ${fault.file} ${fault.found}`);
  }
  const { state, founding } = identity;
  if (state === null || founding === null) throw refuseDamaged(folder, 'was never founded');
  if (replay === null || replay.isCut || replay.end.index === 0) {
    throw refuseDamaged(folder, 'gives no state');
  }
  const { end, machine } = replay;
  const { nodeId } = state;
  return { folder, nodeId, term: end.term, index: end.index, committedIndex, founding, machine };
}

/** Raft §5.4.1: the later last term, then the longer log. */
function isAhead(left: Survivor, right: Survivor): boolean {
  return left.term !== right.term ? left.term > right.term : left.index > right.index;
}

function checkTogether(looked: readonly Looked[]): readonly number[] {
  const [first] = looked;
  const clusterId = hexOf(first!.founding.clusterId);
  const seen = new Map<number, string>();
  for (const { folder, nodeId, founding } of looked) {
    const other = hexOf(founding.clusterId);
    if (other !== clusterId) {
      const text = `${folder} is of cluster ${other}, ${first!.folder} of ${clusterId}`;
      throw new OptionError('--folder', `give folders of one cluster: ${text}`);
    }
    const twin = seen.get(nodeId);
    if (twin !== undefined) {
      throw new OptionError('--folder', `${twin} and ${folder} are both of node ${nodeId}`);
    }
    seen.set(nodeId, folder);
  }
  const memberIds = first!.founding.members.map(({ nodeId }) => nodeId);
  if (looked.length * 2 > memberIds.length) {
    const message =
      `Start these nodes instead: ${looked.length} of ${memberIds.length} members are a ` +
      'majority, and nothing is lost.';
    throw new RestoreRefused('MAJORITY_SURVIVES', message);
  }
  return memberIds.filter((nodeId) => !seen.has(nodeId));
}

/**
 * Makes a new cluster of what is left; resolves when its folders are there, whole and verified.
 * Rejects with LogError FOLDER_LOCKED, OptionError, or RestoreRefused FOLDER_NOT_EMPTY,
 * FOLDER_DAMAGED, MAJORITY_SURVIVES.
 */
export async function recoverUnsafely(
  plan: RecoverPlan,
): Promise<{ readonly survey: Survey; readonly cluster: NewCluster }> {
  demandEmpty('--to', plan.to);
  const locks: FolderLock[] = [];
  try {
    for (const folder of plan.folders) locks.push(await FolderLock.take(folder));
    return await recoverLocked(plan);
  } finally {
    for (const lock of locks) await lock.release();
  }
}

async function recoverLocked(plan: RecoverPlan) {
  const { folders, to, members, revisionFloor, graceMs } = plan;
  let taken: Looked | null = null;
  const looked: Looked[] = [];
  for (const folder of folders) {
    const one = lookAt(fs.realpathSync(folder), checkFolder(folder));
    looked.push(one);
    if (taken === null || isAhead(one, taken)) taken = one;
  }
  if (taken === null) throw new OptionError('--folder', 'is required');
  const missing = checkTogether(looked);
  const clusterId = hexOf(taken.founding.clusterId);
  const { machine, term, nodeId, index } = taken;
  const { revision } = machine;
  const survivors = looked.map(survivorOf);
  const survey = { clusterId, survivors, taken: survivorOf(taken), revision, missing };
  plan.onSurvey(survey);
  const what =
    `unsafely from node ${nodeId} of cluster ${clusterId} at index ${index}, revision ` +
    `${revision}; nodes ${missing.join(', ')} are lost`;
  const reason = reasonOf(what, plan.reason);
  const rest = { machine, term, ageSeconds: 0, revisionFloor, graceMs, reason };
  return { survey, cluster: await writeNewCluster({ folder: to, members, ...rest }) };
}

function survivorOf({ folder, nodeId, term, index, committedIndex }: Looked): Survivor {
  return { folder, nodeId, term, index, committedIndex };
}

/**
 * What `holdfast verify --folder` says of a data folder, for people and for programs.
 *
 * Owns: the lines, and the names in the JSON. Never: a check; those are in io/scrub.
 * Used by: commands/verify.ts.
 */
import { FAULT_ROWS, type ScrubFault } from '../../io/scrub/fault.js';
import type { FolderReport, RowReport } from '../../io/scrub/folder-check.js';
import type { StatePoint } from '../../io/scrub/replay-check.js';
import { hexOf } from '../../io/scrub/state-check.js';

const MIB = 1 << 20;

/** True when nothing is wrong. */
export function isSound({ faults, faultsLeftOut }: FolderReport): boolean {
  return faults.length + faultsLeftOut === 0;
}

function rowWords({ first, last, segments }: RowReport): string {
  if (segments === 0) return 'none';
  const range = last < first ? `nothing from ${first} on` : `${first} to ${last}`;
  return `${range}, ${segments} segments`;
}

function faultLines({ kind, file, index, found }: ScrubFault): string[] {
  const { means, remedy, section } = FAULT_ROWS[kind];
  const place = index === 0 ? file : `${file}: index ${index}`;
  return [
    `${kind}: ${place}: ${found}`,
    `  means: ${means}`,
    `  do: ${remedy} (docs/OPERATIONS.md, ${section})`,
  ];
}

function stateLines({ replay, committedIndex, log }: FolderReport): string[] {
  if (replay === null) return [];
  const { end, isCut, compared } = replay;
  const { index, term, revision, digest } = end;
  const lines = [`state      index ${index}, term ${term}, revision ${revision}, digest ${digest}`];
  if (isCut) lines.push(`           the entries behind it, up to ${log.last}, cannot be applied`);
  if (committedIndex < index) {
    lines.push(`           known to be committed here: up to ${committedIndex}`);
  }
  const words = compared.length === 0 ? 'none' : compared.join(', ');
  lines.push(`compared   snapshots that the log before them gives as well: ${words}`);
  return lines;
}

export function folderLines(report: FolderReport): string[] {
  const { identity, log, history, snapshots, bytes, faults, faultsLeftOut, remarks } = report;
  const { state, founding } = identity;
  const lines: string[] = [];
  if (state !== null) {
    const { nodeId, term, diskId } = state;
    lines.push(`node       ${nodeId}, in term ${term}, disk ${hexOf(diskId)}`);
  }
  if (founding !== null) lines.push(`cluster    ${hexOf(founding.clusterId)}`);
  lines.push(`log        ${rowWords(log)}`, `history    ${rowWords(history)}`);
  lines.push(`snapshots  ${snapshots.length === 0 ? 'none' : snapshots.join(', ')}`);
  lines.push(...stateLines(report));
  lines.push(`read       ${(bytes / MIB).toFixed(1)} MiB`);
  for (const remark of remarks) lines.push(`remark: ${remark}`);
  for (const fault of faults) lines.push(...faultLines(fault));
  if (faultsLeftOut > 0) lines.push(`and ${faultsLeftOut} more`);
  lines.push(isSound(report) ? 'no fault' : `${faults.length + faultsLeftOut} faults`);
  return lines;
}

function pointJson(point: StatePoint | null): unknown {
  if (point === null) return null;
  const { index, term, revision, clusterTimeMs, digest } = point;
  return { index, term, revision, cluster_time: clusterTimeMs, digest };
}

export function folderJson(folder: string, report: FolderReport): Record<string, unknown> {
  const { identity, log, history, snapshots, replay } = report;
  const { state, founding } = identity;
  return {
    folder,
    sound: isSound(report),
    node_id: state?.nodeId ?? null,
    disk_id: state === null ? null : hexOf(state.diskId),
    cluster_id: founding === null ? null : hexOf(founding.clusterId),
    term: state?.term ?? null,
    voted_for: state?.votedFor ?? null,
    log,
    history,
    snapshots,
    committed_index: report.committedIndex,
    replayed_from: replay?.from ?? null,
    state: pointJson(replay?.end ?? null),
    committed_state: pointJson(replay?.committed ?? null),
    cut: replay?.isCut ?? null,
    compared_snapshots: replay?.compared ?? [],
    bytes: report.bytes,
    faults: report.faults.map((fault) => ({ ...fault, ...FAULT_ROWS[fault.kind] })),
    faults_left_out: report.faultsLeftOut,
    remarks: report.remarks,
  };
}

/**
 * The record of term, vote and identity, and whether it belongs to what lies beside it.
 *
 * Owns: reading `state/` without LMDB, and the comparison with the founding record in it: the disk
 * id is the one that the members know this node by. Never: writes. Used by: folder-check.ts.
 */
import path from 'node:path';
import { decodeFounding, type FoundingRecord } from '../../wire/founding.js';
import { decodeState, type StateRecord } from '../log/state-record.js';
import { PageDamage, PageFile } from './page-file.js';

const KEY = 0;

/** Who the folder belongs to, as far as that can be read. */
export interface Identity {
  readonly state: StateRecord | null;
  readonly founding: FoundingRecord | null;
  /** What is wrong, empty when nothing is. */
  readonly found: readonly string[];
}

/** The folder of the record. */
export function statePlace(dataFolder: string): string {
  return path.join(dataFolder, 'state');
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** Reads `state/` of a data folder that is there. */
export function readIdentity(dataFolder: string): Identity {
  const state = readState(statePlace(dataFolder));
  if (typeof state === 'string') return { state: null, founding: null, found: [state] };
  if (state.founding === null) return { state, founding: null, found: [] };
  const founding = decodeFounding(state.founding);
  if (typeof founding === 'string') {
    return { state, founding: null, found: [`the founding record ${founding}`] };
  }
  return { state, founding, found: strangers(state, founding) };
}

function readState(place: string): StateRecord | string {
  let file: PageFile | null = null;
  try {
    file = PageFile.open(place);
    for (const item of file.walk()) {
      if (item.kind === 'damage') return item.found;
      if (item.key !== KEY) continue;
      const state = decodeState(item.value);
      return typeof state === 'string' ? `the record ${state}` : state;
    }
    return 'the record is missing';
  } catch (error) {
    if (error instanceof PageDamage) return error.message;
    throw error;
  } finally {
    file?.close();
  }
}

/** A folder whose disk id the members do not know is not let in by them. */
function strangers(state: StateRecord, founding: FoundingRecord): string[] {
  const { nodeId } = state;
  const member = founding.members.find((each) => each.nodeId === nodeId);
  if (member === undefined) return [`node ${nodeId} is no member of the founding record`];
  const [known, own] = [hexOf(member.diskId), hexOf(state.diskId)];
  if (known === own) return [];
  return [`the disk id is ${own}, the members know node ${nodeId} by ${known}`];
}

/**
 * The founding record: what a cluster is from its first moment on, the same bytes on every node.
 *
 * Owns: its layout (on disk for ever) and what makes one valid. It is a MessagePack array written
 * in one way only, and whatever does not encode to itself again is refused, so equal records are
 * equal bytes. Never: who may found. Used by: server (draws, stores, checks), founding-talk.ts.
 */
import {
  defaultSettings,
  isSettingValid,
  type SettingName,
  SettingNumber,
  type Settings,
} from '../core/locks/settings.js';
import { ADDRESS_BYTES_MAX, ID_BYTES, MEMBERS_MAX, ZONE_BYTES_MAX } from '../limits.js';
import { unpackValue } from './msgpack.js';
import { type PackValue, writeValue } from './msgpack-writer.js';
import { OutBuffer } from './out-buffer.js';

/** Version of the record itself. */
export const FOUNDING_FORMAT = 1;
/** Node ids are 1 … this. */
export const NODE_ID_MAX = 0xffff;
/** More than the largest record takes. */
export const FOUNDING_BYTES_MAX = 16 * 1_024;

export interface FoundingMember {
  /** 1 … NODE_ID_MAX. */
  readonly nodeId: number;
  /** ID_BYTES random bytes that the data folder got when it was made. */
  readonly diskId: Uint8Array;
  /** `host:port` for other nodes and for clients. */
  readonly peer: string;
  readonly client: string;
  /** Failure domain, null when not labelled. */
  readonly zone: string | null;
}

export interface FoundingRecord {
  /** ID_BYTES random bytes. */
  readonly clusterId: Uint8Array;
  /** By ascending node id, 1 … MEMBERS_MAX of them. */
  readonly members: readonly FoundingMember[];
  /** Every setting; they stand in the state before the first entry (I11). */
  readonly settings: Settings;
  /** Feature level of the cluster at index 0. */
  readonly featureLevel: number;
}

const SETTING_NAMES = (Object.keys(SettingNumber) as SettingName[]).sort(
  (left, right) => SettingNumber[left] - SettingNumber[right],
);

/** The bytes of a record: [format, feature level, cluster id, members, [setting, value] pairs]. */
export function encodeFounding(record: FoundingRecord): Uint8Array {
  const members = [...record.members].sort((left, right) => left.nodeId - right.nodeId);
  const rows = members.map((member): PackValue => {
    return [member.nodeId, member.diskId, member.peer, member.client, member.zone];
  });
  const pairs = SETTING_NAMES.map((name): PackValue => {
    return [SettingNumber[name], record.settings[name]];
  });
  const out = new OutBuffer();
  writeValue(out, [FOUNDING_FORMAT, record.featureLevel, record.clusterId, rows, pairs]);
  return out.take().slice();
}

/** The record in `bytes`, or what is wrong with it, as words for an operator. */
export function decodeFounding(bytes: Uint8Array): FoundingRecord | string {
  if (bytes.length > FOUNDING_BYTES_MAX) return `is larger than ${FOUNDING_BYTES_MAX} bytes`;
  const value = unpackValue(bytes, 0, bytes.length);
  if (!Array.isArray(value) || value.length !== 5) return 'is no founding record';
  const parts: readonly unknown[] = value;
  if (parts[0] !== FOUNDING_FORMAT) return `has format ${parts[0]}, wanted ${FOUNDING_FORMAT}`;
  const featureLevel = parts[1];
  if (!isWhole(featureLevel, 1, 0xffff)) return 'has no feature level';
  const clusterId = parts[2];
  if (!isId(clusterId)) return 'has no cluster id of 16 bytes';
  const members = membersOf(parts[3]);
  if (typeof members === 'string') return members;
  const settings = settingsOf(parts[4]);
  if (typeof settings === 'string') return settings;
  const record = { clusterId, members, settings, featureLevel };
  return isSame(encodeFounding(record), bytes) ? record : 'is not in its one written form';
}

function isWhole(value: unknown, least: number, greatest: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= greatest;
}

function isId(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length === ID_BYTES;
}

function isText(value: unknown, bytesMax: number): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= bytesMax;
}

function isSame(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}

function membersOf(value: unknown): FoundingMember[] | string {
  if (!Array.isArray(value) || value.length === 0) return 'has no members';
  if (value.length > MEMBERS_MAX) return `has ${value.length} members, at most ${MEMBERS_MAX}`;
  const members: FoundingMember[] = [];
  let before = 0;
  for (const row of value) {
    const member = memberOf(row);
    if (member === null) return `has a member ${members.length + 1} that is malformed`;
    if (member.nodeId <= before) return `names node ${member.nodeId} out of order or twice`;
    if (members.some((other) => isSame(other.diskId, member.diskId))) {
      return `gives node ${member.nodeId} the disk id of another member`;
    }
    before = member.nodeId;
    members.push(member);
  }
  return members;
}

function memberOf(row: unknown): FoundingMember | null {
  if (!Array.isArray(row) || row.length !== 5) return null;
  const [nodeId, diskId, peer, client, zone]: readonly unknown[] = row;
  if (!isWhole(nodeId, 1, NODE_ID_MAX) || !isId(diskId)) return null;
  if (!isText(peer, ADDRESS_BYTES_MAX) || !isText(client, ADDRESS_BYTES_MAX)) return null;
  if (zone !== null && !isText(zone, ZONE_BYTES_MAX)) return null;
  return { nodeId, diskId, peer, client, zone };
}

/** A record holds every setting of its feature level, and none that this build does not know. */
function settingsOf(value: unknown): Settings | string {
  if (!Array.isArray(value)) return 'has no settings';
  const settings = defaultSettings();
  if (value.length !== SETTING_NAMES.length) {
    return `has ${value.length} settings, wanted ${SETTING_NAMES.length}`;
  }
  for (const [position, name] of SETTING_NAMES.entries()) {
    const pair: unknown = value[position];
    const [number, setting]: readonly unknown[] = Array.isArray(pair) ? pair : [];
    if (number !== SettingNumber[name] || typeof setting !== 'number') {
      return `lacks the setting ${name}`;
    }
    if (!isSettingValid(name, setting)) return `has ${name} ${setting}, which is out of range`;
    settings[name] = setting;
  }
  return settings;
}

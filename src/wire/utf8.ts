/**
 * Checks lock names in place: valid UTF-8 without control characters.
 *
 * Owns: that rule, which bounds what can appear in logs, metrics and terminals. Never: a string;
 * names stay bytes and are compared as bytes, so no form of Unicode is made equal to another.
 * Used by: operation and query decoders.
 */

/**
 * True when bytes `start` … `end` are valid UTF-8 (RFC 3629: no overlong forms, no surrogates,
 * nothing above U+10FFFF) and hold none of U+0000–U+001F, U+007F, U+0080–U+009F.
 */
export function isPlainText(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]!;
    if (byte >= 0x80) return isPlainUnicode(bytes, at, end);
    if (byte < 0x20 || byte === 0x7f) return false;
  }
  return true;
}

function isPlainUnicode(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at < end) {
    const byte = bytes[at]!;
    if (byte < 0x80) {
      if (byte < 0x20 || byte === 0x7f) return false;
      at += 1;
      continue;
    }
    const size = sequenceBytes(byte);
    if (size === 0 || at + size > end) return false;
    if (!isSecondByte(byte, bytes[at + 1]!)) return false;
    for (let offset = 2; offset < size; offset += 1) {
      if ((bytes[at + offset]! & 0xc0) !== 0x80) return false;
    }
    at += size;
  }
  return true;
}

/** Bytes of the sequence that this lead byte starts, 0 when it starts none. */
function sequenceBytes(lead: number): number {
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

/** The second byte carries every exception: overlong forms, surrogates, the top, and C1. */
function isSecondByte(lead: number, second: number): boolean {
  let least = 0x80;
  let greatest = 0xbf;
  if (lead === 0xc2) least = 0xa0;
  else if (lead === 0xe0) least = 0xa0;
  else if (lead === 0xed) greatest = 0x9f;
  else if (lead === 0xf0) least = 0x90;
  else if (lead === 0xf4) greatest = 0x8f;
  return second >= least && second <= greatest;
}

/**
 * Names of the fields that a refusal can point at, as ASCII bytes.
 *
 * Owns: nothing. Core has no text encoder; these names are short and plain.
 * Used by: requests.ts; wire/errors.ts turns them back into text.
 */

/** The bytes of an ASCII field name. */
export function fieldName(name: string): Uint8Array {
  const bytes = new Uint8Array(name.length);
  for (let i = 0; i < name.length; i += 1) bytes[i] = name.charCodeAt(i);
  return bytes;
}

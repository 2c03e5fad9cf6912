/**
 * What a replica counts, as plain numbers that only rise.
 *
 * Owns: the counts. Never: a metrics library; observe/ reads these when it is scraped.
 * Used by: the rules in this folder.
 */
export class Counters {
  proposedEntries = 0;
  proposedOperations = 0;
  appliedEntries = 0;
  appliedOperations = 0;
  replies = 0;
  refusals = 0;
  unknownOutcomes = 0;
  /** Named requests that were answered from a stored result. */
  duplicates = 0;
  appends = 0;
  elections = 0;
  stepDowns = 0;
  readRounds = 0;
  reads = 0;
  protocolFaults = 0;
}

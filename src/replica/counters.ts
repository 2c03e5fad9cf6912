/**
 * What a replica counts, as plain numbers that only rise.
 *
 * Owns: the counts. Never: a metrics library; observe/ reads these when it is scraped.
 * Used by: the rules in this folder.
 */
export class Counters {
  proposed_entries = 0;
  proposed_operations = 0;
  applied_entries = 0;
  applied_operations = 0;
  replies = 0;
  refusals = 0;
  unknown_outcomes = 0;
  /** Named requests that were answered from a stored result. */
  duplicates = 0;
  appends = 0;
  /** Append messages not taken because the own disk was behind. */
  appends_dropped = 0;
  elections = 0;
  step_downs = 0;
  read_rounds = 0;
  reads = 0;
  protocol_faults = 0;
  snapshots_taken = 0;
  /** Drafts that did not have the digest of the live state: an alarm. */
  snapshots_discarded = 0;
  snapshots_failed = 0;
  /** Snapshots of another node that this one continued from. */
  snapshots_installed = 0;
  snapshot_fetches_failed = 0;
  /** Event rows given to watches, watches that fell behind, watches that were told COMPACTED. */
  watch_events_told = 0;
  watches_blocked = 0;
  watches_compacted = 0;
  /** Event rows given to readers of the audit stream, and pages that were told COMPACTED. */
  audit_events_told = 0;
  audits_compacted = 0;
}

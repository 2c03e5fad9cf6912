/**
 * What happened in one client that nobody was told by an error: counts to read, graph and test.
 *
 * Owns: the names of the counts. Never: a label or a name of a lock. An error that is swallowed on
 * purpose is counted here, at the place where it is swallowed. Used by: every file of the client.
 */

/** Counts since the client was made. Each only rises. */
export class Counters {
  /** Requests sent for the first time. */
  requests = 0;
  /** Requests sent again after a refusal. */
  retries = 0;
  /** Requests sent again after a lost connection or a change of leader. */
  resends = 0;
  /** Refusals that were passed on because the retry budget was spent. */
  retriesRefused = 0;
  /** Connections that were opened and greeted. */
  connections = 0;
  /** Connections that ended without being closed here. */
  connectionsLost = 0;
  /** Connections closed here because they were silent. */
  connectionsSilent = 0;
  /** Searches for the leader that ended without one. */
  seekFailures = 0;
  /** Replies that nobody waited for any more. */
  lateReplies = 0;
  /** Frames that could not be read: the connection was closed. */
  badFrames = 0;
  /** Notices of a node to the whole connection. */
  notices = 0;
  /** Renewals that were answered Ok. */
  renewals = 0;
  /** Renewals that were refused or not answered. */
  renewalFailures = 0;
  /** Times a lease or session went into jeopardy. */
  jeopardies = 0;
  /** Leases found lost, by their safe deadline or by the cluster's word. */
  leasesLost = 0;
  sessionsLost = 0;
  /** Releases by dispose or withLock that found the lease ended already, and said nothing. */
  staleDisposals = 0;
  /** Releases by dispose or withLock that failed otherwise and are repeated in the background. */
  releaseFailures = 0;
  /** Grants that won against a cancel and were given back. */
  grantsReturned = 0;
  /** Releases and cancels that were answered in the background after their caller had gone. */
  debtsPaid = 0;
  /** Times a watch lost its node and went on at another. */
  watchesResumed = 0;
  /** Watches that began anew with a snapshot, because what came next was no longer kept. */
  watchesCompacted = 0;
  /** Releases and cancels given up: their session ended first, or too many were owed. */
  debtsDropped = 0;
}

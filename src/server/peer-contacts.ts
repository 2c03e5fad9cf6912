/**
 * When each of the other nodes was heard last.
 *
 * Owns: one time a peer. Never: a judgement; whether a leader is lost is Raft's to say. A leader
 * hears all that follow it, a follower only its leader. Made by: node.ts. Read by: figures.ts.
 */
export class PeerContacts {
  private readonly heardAtMs = new Map<number, number>();

  /** @param nowMs ms since an arbitrary start */
  constructor(private readonly nowMs: () => number) {}

  onHeard(nodeId: number): void {
    this.heardAtMs.set(nodeId, this.nowMs());
  }

  /** ms since each peer was heard, by ascending node id; peers that never were are left out. */
  silencesMs(): Map<number, number> {
    const nowMs = this.nowMs();
    const sorted = [...this.heardAtMs].sort(([left], [right]) => left - right);
    return new Map(sorted.map(([nodeId, atMs]) => [nodeId, nowMs - atMs]));
  }
}

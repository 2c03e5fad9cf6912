/** When peers were heard last, as /metrics tells it. */

import t from 'tap';
import { PeerContacts } from '../../../src/server/peer-contacts.js';

t.test('each peer’s silence counts from its last word; who never spoke is left out', async (t) => {
  let nowMs = 5_000;
  const contacts = new PeerContacts(() => nowMs);
  t.same([...contacts.silencesMs()], []);
  contacts.onHeard(4);
  nowMs = 5_200;
  contacts.onHeard(2);
  nowMs = 5_250;
  t.same(
    [...contacts.silencesMs()],
    [
      [2, 50],
      [4, 250],
    ],
  );
  contacts.onHeard(4);
  t.equal(contacts.silencesMs().get(4), 0);
});

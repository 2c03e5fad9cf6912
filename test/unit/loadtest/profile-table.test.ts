/** A profile's table counts what a function did itself, by function, idle time left out. */
import t from 'tap';
import { profileTable } from '../../../loadtest/profile-table.js';

function frame(functionName: string, url = '') {
  return { functionName, url, lineNumber: 6 };
}

t.test('self time by function, the idle loop left out', async (t) => {
  const url = 'file:///x/dist-test/src/replica/apply.js';
  const lines = profileTable({
    nodes: [
      { id: 1, callFrame: frame('(idle)') },
      { id: 2, callFrame: frame('apply', url) },
      { id: 3, callFrame: frame('', url) },
      { id: 4, callFrame: frame('apply', url) },
    ],
    samples: [1, 2, 3, 4, 2],
    timeDeltas: [9_000_000, 3_000, 2_000, 1_000, 4_000],
  });
  t.same(lines, [
    '10 ms in all',
    ' 80.0 %           8 ms  apply  src/replica/apply.js:7',
    ' 20.0 %           2 ms  (anonymous)  src/replica/apply.js:7',
  ]);
});

t.test('bytes by who allocated them', async (t) => {
  const leaf = { callFrame: frame('slice'), selfSize: 30, children: [] };
  const head = { callFrame: frame('(root)'), selfSize: 0, children: [leaf, leaf] };
  t.same(profileTable({ head }), ['60 B in all', '100.0 %          60 B  slice']);
});

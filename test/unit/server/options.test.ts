import fc from 'fast-check';
import t from 'tap';
import {
  doubtsOf,
  formatEndpoint,
  OptionError,
  parseEndpoint,
  parseMemberList,
  parseServeOptions,
  parseSettings,
  parseWhole,
  type ServeWords,
} from '../../../src/server/options.js';

const COMPLETE: ServeWords = {
  nodeId: '2',
  data: '/data',
  client: '127.0.0.1:7402',
  peer: '127.0.0.1:7602',
  peers: '3=127.0.0.1:7603,1=127.0.0.1:7601,2=127.0.0.1:7602',
  clients: '1=127.0.0.1:7401,2=127.0.0.1:7402,3=127.0.0.1:7403',
};

function refusal(work: () => unknown): OptionError {
  try {
    work();
  } catch (error) {
    if (error instanceof OptionError) return error;
    throw error;
  }
  throw new Error('wanted a refusal');
}

t.test('a complete command line gives members by id and plain defaults', async (t) => {
  const options = parseServeOptions(COMPLETE);
  t.same(
    options.members.map((member) => member.nodeId),
    [1, 2, 3],
  );
  t.same(options.members[0]?.client, { host: '127.0.0.1', port: 7401 });
  t.match(options, {
    nodeId: 2,
    dataFolder: '/data',
    bootstrap: false,
    zone: '',
    settings: {},
    logLevel: 'info',
    untilStdinEnds: false,
  });
});

t.test('every required option is named when it is missing or empty', async (t) => {
  for (const name of ['nodeId', 'data', 'client', 'peer', 'peers', 'clients'] as const) {
    for (const value of [undefined, '']) {
      const error = refusal(() => parseServeOptions({ ...COMPLETE, [name]: value }));
      const option = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
      t.equal(error.option, option);
      t.equal(error.code, 'USAGE');
    }
  }
});

t.test('what cannot be served is refused with the option to look at', async (t) => {
  const cases: readonly [Partial<ServeWords>, string][] = [
    [{ nodeId: '0' }, '--node-id'],
    [{ nodeId: '65536' }, '--node-id'],
    [{ nodeId: '1.5' }, '--node-id'],
    [{ nodeId: '-1' }, '--node-id'],
    [{ nodeId: '0x1' }, '--node-id'],
    [{ nodeId: '4' }, '--node-id'],
    [{ dashboardAdmin: true }, '--dashboard-admin'],
    [{ client: '127.0.0.1' }, '--client'],
    [{ client: ':7401' }, '--client'],
    [{ client: '127.0.0.1:0' }, '--client'],
    [{ client: '127.0.0.1:65536' }, '--client'],
    [{ peer: 'a b:1' }, '--peer'],
    [{ peers: '1=127.0.0.1:1,1=127.0.0.1:2' }, '--peers'],
    [{ peers: '1=127.0.0.1:1,2=127.0.0.1:1' }, '--peers'],
    [{ peers: '127.0.0.1:1' }, '--peers'],
    [{ peers: '1=127.0.0.1:7601,2=127.0.0.1:7602' }, '--peers'],
    [{ clients: '1=127.0.0.1:7401,2=127.0.0.1:7402' }, '--clients'],
    [{ zone: 'no blanks' }, '--zone'],
    [{ logLevel: 'loud' }, '--log-level'],
    [{ setting: ['leaseTtlMsLeast'] }, '--setting'],
    [{ setting: ['nothing=1'] }, '--setting'],
    [{ setting: ['toString=1'] }, '--setting'],
    [{ setting: ['leaseTtlMsLeast=1'] }, '--setting leaseTtlMsLeast'],
    [{ setting: ['leaseTtlMsLeast=1e3'] }, '--setting leaseTtlMsLeast'],
    [{ setting: ['idleLocksMax=1', 'idleLocksMax=2'] }, '--setting'],
    [{ setting: ['leaseTtlMsLeast=60000'] }, '--setting'],
    [{ otlpEndpoint: '' }, '--otlp-endpoint'],
    [{ otlpEndpoint: '127.0.0.1:4318' }, '--otlp-endpoint'],
    [{ otlpEndpoint: 'grpc://collector:4317' }, '--otlp-endpoint'],
    [{ environment: { OTEL_EXPORTER_OTLP_ENDPOINT: 'here' } }, 'OTEL_EXPORTER_OTLP_ENDPOINT'],
    [
      { environment: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'x:1' } },
      'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    ],
    [{ snapshotEntries: '0' }, '--snapshot-entries'],
    [{ snapshotEntries: '1000000001' }, '--snapshot-entries'],
    [{ snapshotEntries: '1e3' }, '--snapshot-entries'],
    [{ snapshotEntries: '' }, '--snapshot-entries'],
    [{ logTailEntries: '-1' }, '--log-tail-entries'],
    [{ logTailEntries: 'none' }, '--log-tail-entries'],
    [{ logTailEntries: '100001' }, '--log-tail-entries'],
    [{ snapshotEntries: '60', logTailEntries: '61' }, '--log-tail-entries'],
    [{ historyMib: '-1' }, '--history-mib'],
    [{ historyMib: '1.5' }, '--history-mib'],
    [{ historyMib: '512MiB' }, '--history-mib'],
    [{ historyMib: '1000001' }, '--history-mib'],
  ];
  for (const [change, option] of cases) {
    const error = refusal(() => parseServeOptions({ ...COMPLETE, ...change }));
    t.equal(error.option, option, JSON.stringify(change));
  }
});

t.test('spans go where the option says, else where OpenTelemetry does, else nowhere', async (t) => {
  const all = 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const traces = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
  const cases: readonly (readonly [Partial<ServeWords>, string | null])[] = [
    [{}, null],
    [{ environment: {} }, null],
    [{ environment: { [all]: '' } }, null],
    [{ otlpEndpoint: 'http://c:4318' }, 'http://c:4318/v1/traces'],
    [{ otlpEndpoint: 'https://c/otel/' }, 'https://c/otel/v1/traces'],
    [{ environment: { [all]: 'http://c:4318' } }, 'http://c:4318/v1/traces'],
    [{ environment: { [all]: 'http://c:4318/a' } }, 'http://c:4318/a/v1/traces'],
    [{ environment: { [all]: 'http://c', [traces]: 'http://d/in' } }, 'http://d/in'],
    [{ otlpEndpoint: 'http://a', environment: { [all]: 'http://c' } }, 'http://a/v1/traces'],
    [{ environment: { [all]: 'http://c', OTEL_SDK_DISABLED: 'true' } }, null],
    [{ environment: { [all]: 'http://c', OTEL_TRACES_EXPORTER: 'none' } }, null],
    [
      { otlpEndpoint: 'http://a', environment: { OTEL_SDK_DISABLED: 'true' } },
      'http://a/v1/traces',
    ],
  ];
  for (const [words, url] of cases) {
    t.equal(parseServeOptions({ ...COMPLETE, ...words }).spansUrl, url, JSON.stringify(words));
  }
});

t.test('how much log is kept follows how often it is compacted, unless it is said', async (t) => {
  const cases: readonly [Partial<ServeWords>, number, number, number][] = [
    [{}, 100_000, 10_000, 512],
    [{ snapshotEntries: '60' }, 60, 60, 512],
    [{ snapshotEntries: '20000' }, 20_000, 10_000, 512],
    [{ snapshotEntries: '60', logTailEntries: '60' }, 60, 60, 512],
    [{ logTailEntries: '0', historyMib: '0' }, 100_000, 0, 0],
    [{ snapshotEntries: '1', logTailEntries: '1', historyMib: '1000000' }, 1, 1, 1_000_000],
    [{ snapshotEntries: '1000000000' }, 1_000_000_000, 10_000, 512],
  ];
  for (const [words, entries, tailEntries, historyMib] of cases) {
    const options = parseServeOptions({ ...COMPLETE, ...words });
    t.same(options.compaction, { entries, tailEntries }, JSON.stringify(words));
    t.equal(options.historyBytesMax, historyMib * 2 ** 20);
  }
});

t.test('settings are numbers in their range', async (t) => {
  t.same(parseSettings('--setting', ['leaseTtlMsLeast=100', 'idleLocksMax=0']), {
    leaseTtlMsLeast: 100,
    idleLocksMax: 0,
  });
});

t.test('at most nine members', async (t) => {
  const list = (count: number): string =>
    Array.from({ length: count }, (_, at) => `${at + 1}=h:${at + 1}`).join(',');
  t.equal(parseMemberList('--peers', list(9)).size, 9);
  t.throws(() => parseMemberList('--peers', list(10)), OptionError);
});

t.test('property: an endpoint survives being written and read', async () => {
  const host = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('localhost', 'a.example'));
  fc.assert(
    fc.property(host, fc.integer({ min: 1, max: 65_535 }), (name, port) => {
      const text = formatEndpoint({ host: name, port });
      const read = parseEndpoint('--client', text);
      return read.host === name && read.port === port;
    }),
  );
});

t.test('property: any text is a whole number in range or an OptionError', async () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        const value = parseWhole('--x', text, 3, 99);
        return Number.isInteger(value) && value >= 3 && value <= 99;
      } catch (error) {
        return error instanceof OptionError;
      }
    }),
  );
});

t.test('a port that differs from the one in the list is doubted, not refused', async (t) => {
  t.same(doubtsOf(parseServeOptions(COMPLETE)), []);
  const other = parseServeOptions({ ...COMPLETE, peer: '0.0.0.0:17601', client: '0.0.0.0:7402' });
  t.same(doubtsOf(other), [
    '--peer is 0.0.0.0:17601, and --peers says 127.0.0.1:7602 for node 2: right only if forwarded',
  ]);
});

t.test('the check of the disk has a rate and a pause, and can be left out', async (t) => {
  t.same(parseServeOptions(COMPLETE).scrub, { bytesPerSecond: 4 << 20, pauseMs: 3_600_000 });
  const given = { ...COMPLETE, scrubMib: '0', scrubPauseS: '5' };
  t.same(parseServeOptions(given).scrub, { bytesPerSecond: 0, pauseMs: 5_000 });
  t.match(
    refusal(() => parseServeOptions({ ...COMPLETE, scrubMib: '-1' })),
    {
      option: '--scrub-mib',
    },
  );
  t.match(
    refusal(() => parseServeOptions({ ...COMPLETE, scrubPauseS: '0' })),
    {
      option: '--scrub-pause-s',
    },
  );
});

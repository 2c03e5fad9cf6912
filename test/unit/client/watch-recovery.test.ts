/** A watch that is refused by one node goes on: it never ends in silence. */

import t from 'tap';
import { Ambient } from '../../../src/client/ambient.js';
import { SystemClock } from '../../../src/client/clock.js';
import { ErrorCode } from '../../../src/client/errors.js';
import type { Dial, TransportEvents } from '../../../src/client/transport.js';
import { WatchStream } from '../../../src/client/watch.js';
import { beginFrame, endFrame } from '../../../src/wire/frame.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { encodeRefusal } from '../../../src/wire/reply.js';
import { encodeCompacted } from '../../../src/wire/watch.js';
import { waitFor } from '../../cluster/wait-for.js';

/** Correlation number of the watch on its connection. */
const WATCH = 2;

/** Streams in memory, the newest last. */
class Streams {
  readonly events: TransportEvents[] = [];
  readonly dial: Dial = (_endpoint, events) => {
    this.events.push(events);
    return { write: () => true, close: () => undefined };
  };

  /** The newest stream is told one reply, in one piece. */
  tell(encode: (out: OutBuffer) => void): void {
    const out = new OutBuffer();
    const position = beginFrame(out);
    encode(out);
    endFrame(out, position, 1);
    this.events.at(-1)?.onBytes(out.take());
  }
}

function open(streams: Streams): WatchStream {
  const nodes = { dial: streams.dial, endpoints: () => [{ host: '127.0.0.1', port: 7_401 }] };
  const options = { fromRevision: 5, recovers: true };
  return new WatchStream(new Ambient(new SystemClock()), nodes, [null, 'jobs/'], options);
}

t.test('a watch that is told COMPACTED asks again, for a snapshot', async (t) => {
  const streams = new Streams();
  const stream = open(streams);
  t.teardown(() => stream.close());
  streams.events[0]?.onOpen();
  streams.tell((out) => encodeCompacted(out, WATCH, null, 9, 12));
  await waitFor('another stream', () => streams.events.length === 2, 5_000);
});

t.test('a watch whose node ends in order goes on at another', async (t) => {
  const streams = new Streams();
  const stream = open(streams);
  t.teardown(() => stream.close());
  streams.events[0]?.onOpen();
  streams.tell((out) => encodeRefusal(out, 0, ErrorCode.ShuttingDown, 'ending', -1, []));
  await waitFor('another stream', () => streams.events.length === 2, 5_000);
});

import { once } from 'node:events';
import net from 'node:net';
import t from 'tap';
import { connect } from '../../../src/client/connect.js';
import { dialTcp } from '../../../src/client/tcp.js';
import { formatEndpoint, parseEndpoint, type Transport } from '../../../src/client/transport.js';
import { rejected } from './ground.js';

async function listening(onSocket: (socket: net.Socket) => void): Promise<[net.Server, number]> {
  const server = net.createServer(onSocket);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return [server, address.port];
}

interface Heard {
  readonly transport: Transport;
  readonly words: string[];
  readonly text: () => string;
  readonly closed: Promise<Error | undefined>;
  readonly opened: Promise<void>;
  readonly drained: Promise<void>;
}

function dialled(port: number): Heard {
  const words: string[] = [];
  const chunks: Uint8Array[] = [];
  let onOpened: () => void = () => undefined;
  let onClosed: (error: Error | undefined) => void = () => undefined;
  let onDrained: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    onOpened = resolve;
  });
  const closed = new Promise<Error | undefined>((resolve) => {
    onClosed = resolve;
  });
  const drained = new Promise<void>((resolve) => {
    onDrained = resolve;
  });
  const transport = dialTcp(
    { host: '127.0.0.1', port },
    {
      onOpen: () => {
        words.push('open');
        onOpened();
      },
      onBytes: (bytes) => void chunks.push(bytes),
      onDrain: () => onDrained(),
      onClose: (error) => {
        words.push('close');
        onClosed(error);
      },
    },
  );
  t.same(words, [], 'nothing is told from inside dial');
  return {
    transport,
    words,
    text: () => Buffer.concat(chunks).toString(),
    closed,
    opened,
    drained,
  };
}

t.test('bytes go both ways and the end is told once', async (t) => {
  const [server, port] = await listening((socket) => {
    socket.once('data', (chunk) => socket.end(`heard ${chunk}`));
  });
  const heard = dialled(port);
  await heard.opened;
  heard.transport.write(Buffer.from('hello'));
  t.equal(await heard.closed, undefined);
  t.equal(heard.text(), 'heard hello');
  heard.transport.close();
  heard.transport.write(Buffer.from('too late'));
  t.same(heard.words, ['open', 'close']);
  server.close();
});

t.test('a refused connection is an end with its reason', async (t) => {
  const [server, port] = await listening(() => undefined);
  server.close();
  await once(server, 'close');
  const heard = dialled(port);
  t.match(await heard.closed, { code: 'ECONNREFUSED' });
  t.same(heard.words, ['close']);
});

t.test('close ends the stream at once and is told', async (t) => {
  const [server, port] = await listening(() => undefined);
  const heard = dialled(port);
  await heard.opened;
  heard.transport.close();
  t.equal(await heard.closed, undefined);
  server.close();
});

t.test('a full stream says so and tells when it drains', async (t) => {
  let reader: net.Socket | undefined;
  const [server, port] = await listening((socket) => {
    reader = socket.pause();
  });
  const heard = dialled(port);
  await heard.opened;
  let hasRoom = true;
  for (let mebibyte = 0; hasRoom && mebibyte < 64; mebibyte += 1) {
    hasRoom = heard.transport.write(new Uint8Array(1 << 20));
  }
  t.notOk(hasRoom);
  reader?.resume();
  await heard.drained;
  heard.transport.close();
  reader?.destroy();
  await heard.closed;
  server.close();
});

t.test('connect over TCP ends by its deadline when nobody answers', async (t) => {
  const sockets = new Set<net.Socket>();
  const [server, port] = await listening((socket) => {
    sockets.add(socket);
  });
  const connecting = connect({ endpoints: [`127.0.0.1:${port}`], deadlineMs: 300 });
  const error = await rejected(connecting, 'NO_QUORUM');
  t.equal(error.outcome, 'none');
  for (const socket of sockets) socket.destroy();
  server.close();
});

t.test('addresses are read and written', (t) => {
  const texts = ['127.0.0.1:7401', 'node-1.example:80', '[::1]:7401', '[fe80::1]:65535'];
  for (const text of texts) {
    const endpoint = parseEndpoint(text);
    t.equal(endpoint === null ? '' : formatEndpoint(endpoint), text);
  }
  for (const text of ['', ':1', 'a', 'a:', 'a:0', 'a:99999', '::1:80', '[::1]', 'a:1:2', 'a b:1']) {
    t.equal(parseEndpoint(text), null, text);
  }
  t.end();
});

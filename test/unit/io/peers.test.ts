/** The peer port and the links over it: who gets in, what gets through, what never hurts. */

import net from 'node:net';
import t, { type Test } from 'tap';
import { Entry, EntryKind, Message, MessageKind } from '../../../src/core/raft/message.js';
import { askIdentity, offerFounding } from '../../../src/io/peers/founding-client.js';
import type { PeerMember } from '../../../src/io/peers/membership.js';
import { NoteBook } from '../../../src/io/peers/note-book.js';
import { PeerLinks, type PeerLinksOptions } from '../../../src/io/peers/peer-links.js';
import { PeerServer } from '../../../src/io/peers/peer-server.js';
import { checksum } from '../../../src/io/peers/peer-socket.js';
import {
  PEER_CONNECTIONS_MAX,
  PEER_FRAME_BYTES_MAX,
  PEER_GREETING_BYTES_MAX,
  PEER_GREETING_MS_MAX,
  PEER_OUT_BYTES_MAX,
} from '../../../src/limits.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import {
  encodeMessage,
  encodePeerHello,
  PEER_VERSION,
  type PeerHello,
} from '../../../src/wire/peer.js';
import { waitFor } from '../../cluster/wait-for.js';
import { RawClient } from './raw-client.js';

const HOST = '127.0.0.1';

function id(byte: number): Uint8Array {
  return new Uint8Array(16).fill(byte);
}

const CLUSTER = id(0xcc);

/** One node's peer port with links to all members, as a test sees it. */
class Node {
  readonly received: Message[] = [];
  readonly notes: string[] = [];
  readonly states: string[] = [];
  server: PeerServer;
  links: PeerLinks | null = null;
  port = 0;
  founding: Uint8Array | null = null;
  accept: (record: Uint8Array) => Promise<void> = async (record) => {
    this.founding = record;
  };

  constructor(
    t: Test,
    readonly nodeId: number,
  ) {
    this.server = this.makeServer(0);
    t.teardown(() => this.close());
  }

  async listen(): Promise<void> {
    this.port = await this.server.listen();
  }

  join(members: readonly PeerMember[], options: Partial<PeerLinksOptions> = {}): void {
    this.links = new PeerLinks({
      nodeId: this.nodeId,
      diskId: id(this.nodeId),
      clusterId: CLUSTER,
      featureLevel: 1,
      members,
      server: this.server,
      onMessage: (message) => this.received.push(message),
      onPeerState: (peer, isUp) => this.states.push(`${peer} ${isUp ? 'up' : 'down'}`),
      onNote: (text) => this.notes.push(text),
      ...options,
    });
    this.links.start();
  }

  /** Closes everything and comes back on the same port. */
  async restart(members: readonly PeerMember[]): Promise<void> {
    await this.close();
    this.server = this.makeServer(this.port);
    await this.listen();
    this.join(members);
  }

  async close(): Promise<void> {
    this.links?.close();
    await this.server.close();
  }

  private makeServer(port: number): PeerServer {
    return new PeerServer({
      host: HOST,
      port,
      nodeId: this.nodeId,
      founding: {
        identity: () => {
          return { nodeId: this.nodeId, diskId: id(this.nodeId), founding: this.founding };
        },
        accept: (record) => this.accept(record),
      },
      onNote: (text) => this.notes.push(text),
    });
  }
}

function memberOf(node: Node): PeerMember {
  return { nodeId: node.nodeId, host: HOST, port: node.port, diskId: id(node.nodeId) };
}

async function makeNodes(t: Test, count: number) {
  const nodes = Array.from({ length: count }, (_, at) => new Node(t, at + 1));
  for (const node of nodes) await node.listen();
  return { nodes, members: nodes.map(memberOf) };
}

async function linkAll(t: Test, count: number) {
  const { nodes, members } = await makeNodes(t, count);
  for (const node of nodes) node.join(members);
  for (const node of nodes) await upTo(node, count - 1);
  return { nodes, members };
}

function upTo(node: Node, count: number): Promise<unknown> {
  const isUp = () => node.states.filter((state) => state.endsWith('up')).length >= count;
  return waitFor(`${count} links of node ${node.nodeId}`, isUp);
}

function heartbeat(from: number, to: number, term = 1): Message {
  const message = new Message(MessageKind.Heartbeat, from, to);
  message.term = term;
  return message;
}

function helloOf(nodeId: number, changes: Partial<PeerHello> = {}): Uint8Array {
  const hello = { version: PEER_VERSION, featureLevel: 1, nodeId, clusterId: CLUSTER };
  const out = new OutBuffer();
  encodePeerHello(out, { ...hello, diskId: id(nodeId), ...changes }, checksum);
  return out.take().slice();
}

function bytesOf(message: Message): Uint8Array {
  const out = new OutBuffer();
  encodeMessage(out, message, checksum);
  return out.take().slice();
}

t.test('every node hears every other, whole messages in order', async (t) => {
  const { nodes } = await linkAll(t, 3);
  const data = new Uint8Array(100_000).fill(7);
  for (const { links, nodeId } of nodes) {
    for (let term = 1; term <= 20; term++) {
      for (const other of nodes) {
        if (other.nodeId === nodeId) continue;
        const message = new Message(MessageKind.Append, nodeId, other.nodeId);
        message.term = term;
        message.index = 4;
        message.entries = [new Entry(5, term, EntryKind.Batch, data)];
        links!.send(message);
      }
    }
    links!.flush();
  }
  for (const node of nodes) {
    await waitFor('all messages', () => node.received.length === 40);
    for (const other of nodes) {
      if (other === node) continue;
      const terms = node.received.filter(({ from }) => from === other.nodeId).map((m) => m.term);
      t.strictSame(
        terms,
        Array.from({ length: 20 }, (_, at) => at + 1),
      );
    }
    const { entries } = node.received[0]!;
    t.match(entries[0], { index: 5, kind: EntryKind.Batch });
    t.ok(Buffer.from(entries[0]!.data).equals(data));
  }
  t.equal(nodes[0]!.links!.droppedMessages, 0);
});

t.test('nothing leaves before flush', async (t) => {
  const { nodes } = await linkAll(t, 2);
  const [one, two] = nodes as [Node, Node];
  one.links!.send(heartbeat(1, 2, 1));
  two.links!.send(heartbeat(2, 1, 9));
  two.links!.flush();
  await waitFor('the message that was flushed', () => one.received.length === 1);
  t.equal(two.received.length, 0);
  one.links!.flush();
  await waitFor('the other', () => two.received.length === 1);
});

t.test('a peer that restarts is found again', async (t) => {
  const { nodes, members } = await linkAll(t, 2);
  const [one, two] = nodes as [Node, Node];
  for (const round of [1, 2, 3]) {
    await two.restart(members);
    await waitFor('the new link', () => one.states.at(-1) === '2 up');
    await upTo(one, 1 + round);
    one.links!.send(heartbeat(1, 2, round));
    one.links!.flush();
    await waitFor('a message over it', () => two.received.at(-1)?.term === round);
  }
  t.ok(one.states.includes('2 down'));
});

t.test('a peer that is away costs its messages and nothing else', async (t) => {
  const { nodes, members } = await makeNodes(t, 2);
  const [one, two] = nodes as [Node, Node];
  await two.close();
  one.join(members);
  await waitFor('word of it', () => one.notes.length > 0);
  t.match(one.notes[0], /^peer 2 at 127.0.0.1:\d+ is away: .*ECONNREFUSED/);
  const { links } = one;
  for (let count = 0; count < 1_000; count++) links!.send(heartbeat(1, 2));
  links!.flush();
  t.equal(links!.droppedMessages, 1_000);
  links!.send(heartbeat(1, 7));
  t.equal(links!.droppedMessages, 1_000, 'a stranger is no peer');
  await two.restart(members);
  await upTo(one, 1);
  t.equal(one.notes.filter((text) => text.includes('ECONNREFUSED')).length, 1, 'said once');
});

t.test('a peer that falls behind loses messages beyond the bound, and no more', async (t) => {
  const { nodes, members } = await makeNodes(t, 2);
  const [one, two] = nodes as [Node, Node];
  await two.close();
  // In its place somebody who greets and then does not read.
  const sockets: net.Socket[] = [];
  const deaf = net.createServer((socket) => {
    sockets.push(socket);
    socket.once('data', () => {
      const out = new OutBuffer();
      encodePeerHello(out, { ...helloFields(2) }, checksum);
      socket.write(out.take());
      socket.write(welcome());
      socket.pause();
    });
  });
  await new Promise<void>((resolve) => deaf.listen(two.port, HOST, resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    deaf.close();
  });
  one.join(members);
  await upTo(one, 1);
  const big = new Message(MessageKind.Append, 1, 2);
  big.entries = [new Entry(1, 1, EntryKind.Batch, new Uint8Array(1 << 20))];
  for (let count = 0; count < 60; count++) {
    one.links!.send(big);
    one.links!.flush();
  }
  const { droppedMessages } = one.links!;
  t.ok(droppedMessages > 10, `${droppedMessages} of 60 MiB dropped`);
  t.ok(droppedMessages < 60 - (PEER_OUT_BYTES_MAX >> 20), 'what fits the bound is kept');
});

function helloFields(nodeId: number): PeerHello {
  const ids = { clusterId: CLUSTER, diskId: id(nodeId) };
  return { version: PEER_VERSION, featureLevel: 1, nodeId, ...ids };
}

/** The frame of a hello reply that says welcome. */
function welcome(): Uint8Array {
  const body = Buffer.from([2, 0, 0]);
  const frame = Buffer.alloc(8 + body.length);
  frame.writeUInt32BE(body.length, 0);
  frame.writeUInt32BE(checksum(body), 4);
  frame.set(body, 8);
  return frame;
}

t.test('another cluster, disk, node or level is refused in words at both ends', async (t) => {
  const cases: [options: Partial<PeerLinksOptions>, words: RegExp][] = [
    [{ clusterId: id(0xdd) }, /node 2 is of cluster (dd)+, wanted (cc)+/],
    [{ diskId: id(0xee) }, /node 2 has disk (ee)+, wanted (02)+: not the one it was founded with/],
    [{ featureLevel: 0 }, /node 2 has feature level 0, wanted at least 1/],
  ];
  for (const [options, words] of cases) {
    const { nodes, members } = await makeNodes(t, 2);
    const [one, two] = nodes as [Node, Node];
    one.join(members);
    two.join(members, options);
    await waitFor('words of the refused', () => two.notes.some((text) => words.test(text)));
    await waitFor('words of the refusing', () => one.notes.some((text) => words.test(text)));
    await waitFor('the refusing to stay out', () => {
      return one.notes.some((text) => /peer 2 .* is away/.test(text));
    });
    const count = two.notes.filter((text) => words.test(text)).length;
    two.links!.send(heartbeat(2, 1));
    t.equal(count, 1, 'told once, though it is tried again and again');
    t.equal(one.received.length, 0);
    t.strictSame([one.states, two.states], [[], []], 'no link either way');
  }
});

t.test('a node that is no member and one of another version are refused', async (t) => {
  const { nodes, members } = await makeNodes(t, 1);
  const [one] = nodes as [Node];
  one.join(members);
  const stranger = new RawClient(t, one.port);
  stranger.send(helloOf(9));
  t.match((await stranger.ended()).toString('latin1'), /node 9 is no other member/);
  const itself = new RawClient(t, one.port);
  itself.send(helloOf(1));
  t.match((await itself.ended()).toString('latin1'), /node 1 is no other member/);
  const newer = new RawClient(t, one.port);
  newer.send(helloOf(9, { version: 2 }));
  t.match((await newer.ended()).toString('latin1'), /peer protocol 2 of node 9, wanted 1/);
});

t.test('a dialler that reaches another node than it meant sends it nothing', async (t) => {
  const { nodes, members } = await makeNodes(t, 3);
  const [one, two, three] = nodes as [Node, Node, Node];
  two.join(members);
  three.join(members);
  await upTo(two, 1);
  const crossed = members.map((member) => {
    return member.nodeId === 2 ? { ...member, port: three.port } : member;
  });
  one.join(crossed);
  await waitFor('word of it', () => one.notes.some((text) => /it is node 3/.test(text)));
  await waitFor('the right one', () => one.states.includes('3 up'));
  t.notOk(one.states.includes('2 up'));
});

t.test('garbage on the peer port ends its connection, and harms nobody', async (t) => {
  const { nodes, members } = await linkAll(t, 2);
  const [one, two] = nodes as [Node, Node];
  const flipped = helloOf(2);
  flipped[20]! ^= 1;
  const message = bytesOf(heartbeat(2, 1));
  const long = Buffer.alloc(8);
  const lengths = [0, PEER_GREETING_BYTES_MAX + 1, PEER_FRAME_BYTES_MAX + 1, 2 ** 32 - 1];
  const bombs = lengths.map((length) => {
    long.writeUInt32BE(length);
    return Buffer.from(long);
  });
  const before = process.memoryUsage().arrayBuffers;
  const noise = Buffer.from(Array.from({ length: 5_000 }, (_, at) => (at * 7_919) & 0xff));
  for (const bytes of [...bombs, noise, flipped, message, Buffer.from('GET / HTTP/1.1\r\n\r\n')]) {
    const client = new RawClient(t, one.port);
    client.send(bytes);
    t.equal((await client.ended()).length, 0, 'not a word back');
  }
  t.ok(process.memoryUsage().arrayBuffers - before < 4 << 20, 'no length was allocated');
  t.equal(one.received.length, 0, 'a message without a hello is none');
  two.links!.send(heartbeat(2, 1));
  two.links!.flush();
  await waitFor('the honest peer', () => one.received.length === 1);
  t.equal(members.length, 2);
});

t.test('after its hello a peer may not speak for another, nor to another', async (t) => {
  const { nodes, members } = await makeNodes(t, 3);
  const [one] = nodes as [Node];
  one.join(members);
  for (const wrong of [heartbeat(3, 1), heartbeat(2, 3)]) {
    const client = new RawClient(t, one.port);
    client.send(helloOf(2));
    client.send(bytesOf(heartbeat(2, 1, 5)));
    const count = one.received.length + 1;
    await waitFor('the honest message', () => one.received.length === count);
    client.send(bytesOf(wrong));
    await client.ended();
    t.equal(one.received.length, count);
  }
});

t.test('a new connection of a peer takes the place of its old one', async (t) => {
  const { nodes, members } = await makeNodes(t, 2);
  const [one] = nodes as [Node];
  one.join(members);
  const old = new RawClient(t, one.port);
  old.send(helloOf(2));
  await old.bytes(1);
  const fresh = new RawClient(t, one.port);
  fresh.send(helloOf(2));
  await old.ended();
  fresh.send(bytesOf(heartbeat(2, 1)));
  await waitFor('its message', () => one.received.length === 1);
  t.notOk(fresh.isEnded);
});

t.test('the same refusal is told once, and a flood of different ones is bounded', (t) => {
  const told: string[] = [];
  const book = new NoteBook((text) => told.push(text));
  for (let round = 0; round < 3; round++) {
    book.note('refused node 1');
    book.note('refused node 2');
  }
  t.strictSame(told, ['refused node 1', 'refused node 2']);
  for (let node = 3; node < 1_000; node++) book.note(`refused node ${node}`);
  t.equal(told.length, 32);
  t.end();
});

t.test('a crowd that says nothing is bounded, then ended', async (t) => {
  const { nodes } = await makeNodes(t, 1);
  const [one] = nodes as [Node];
  const crowd = Array.from({ length: PEER_CONNECTIONS_MAX + 10 }, () => new RawClient(t, one.port));
  await waitFor('the bound', () => crowd.filter(({ isEnded }) => isEnded).length >= 10);
  t.equal(one.server.connectionCount, PEER_CONNECTIONS_MAX);
  await waitFor('the rest', () => one.server.connectionCount === 0);
});

t.test('a crowd of silent strangers does not keep a member out', async (t) => {
  const { nodes, members } = await makeNodes(t, 2);
  const [one, two] = nodes as [Node, Node];
  for (let i = 0; i < 2 * PEER_CONNECTIONS_MAX; i += 1) new RawClient(t, one.port);
  await waitFor('the bound', () => one.server.connectionCount === PEER_CONNECTIONS_MAX);
  const startedMs = performance.now();
  one.join(members);
  two.join(members);
  await upTo(two, 1);
  t.ok(performance.now() - startedMs < PEER_GREETING_MS_MAX, 'it did not wait for them to end');
});

t.test('a link whose other end does not answer is dialled anew', async (t) => {
  const { nodes, members } = await makeNodes(t, 2);
  const [one, two] = nodes as [Node, Node];
  await two.close();
  let greetings = 0;
  // It greets once, and then answers no probe, as behind a network that swallows everything.
  const black = net.createServer((socket) => {
    greetings += 1;
    socket.once('data', () => {
      socket.write(helloOf(2));
      socket.write(welcome());
    });
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => black.listen(two.port, HOST, resolve));
  one.join(members);
  await upTo(one, 2);
  t.equal(greetings, 2);
  t.strictSame(one.states, ['2 up', '2 down', '2 up']);
  t.ok(one.notes.some((text) => /no answer for 3000 ms/.test(text)));
  one.links!.close();
  await new Promise((resolve) => black.close(resolve));
});

t.test('an unfounded node says who it is, and stores the record it is offered', async (t) => {
  const { nodes, members } = await makeNodes(t, 1);
  const [one] = nodes as [Node];
  const address = { host: HOST, port: one.port };
  t.strictSame(await askIdentity(address), { nodeId: 1, diskId: id(1), record: null });
  const record = new Uint8Array([1, 2, 3]);
  let stored: () => void = () => undefined;
  one.accept = (offered) => {
    return new Promise((resolve) => {
      stored = () => {
        one.founding = offered;
        resolve();
      };
    });
  };
  let isAnswered = false;
  const offer = offerFounding(address, record).then(() => {
    isAnswered = true;
  });
  await askIdentity(address);
  t.notOk(isAnswered, 'the answer waits for the disk');
  stored();
  await offer;
  t.match(await askIdentity(address), { record });
  one.accept = () => Promise.reject(new Error('one is enough'));
  await t.rejects(offerFounding(address, record), {
    message: /refused the founding: one is enough/,
  });
  const peer = new RawClient(t, one.port);
  peer.send(helloOf(2));
  t.match((await peer.ended()).toString('latin1'), /no founding record yet/);
  one.join(members);
  t.match(await askIdentity(address), { record }, 'a founded node still says who it is');
});

t.test('a question that nobody answers is over in its time', async (t) => {
  const { nodes } = await makeNodes(t, 1);
  const [one] = nodes as [Node];
  one.accept = () => new Promise(() => undefined);
  const address = { host: HOST, port: one.port };
  const offer = offerFounding(address, new Uint8Array(1), 50);
  await t.rejects(offer, { message: /did not answer: no answer within 50 ms/ });
  await one.close();
  await t.rejects(askIdentity(address, 1_000), { message: /ECONNREFUSED/ });
});

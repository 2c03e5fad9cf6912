"""A small client of the binary protocol, written from docs/PROTOCOL.md alone.

It shows that the page suffices for another language: standard library plus any MessagePack package.
It blocks, keeps one connection to the leader, follows NOT_LEADER, and resends under the same
request id. It is no production client: no pool, no renewal in the background.
"""

import os
import socket
import struct
import time

import msgpack

FRAME_VERSION = 1
SHARD = 0
FRAME_BYTES_MAX = 1_048_576

HELLO, PING, SESSION_ATTACH, GET, LIST, LOOKUP, CHECK, STATUS = 1, 3, 5, 6, 7, 8, 9, 10
SESSION_OPEN, SESSION_RENEW, SESSION_CLOSE = 32, 33, 34
ACQUIRE, RENEW, RELEASE, CANCEL = 36, 37, 38, 39

OK, QUEUED = 0, 1
ERROR_MIN = 10
LOCK_BUSY, WAIT_TIMEOUT, STALE_LEASE = 10, 11, 17
NOT_LEADER, NO_QUORUM, OVERLOADED, UNKNOWN_OUTCOME, SHUTTING_DOWN = 41, 42, 43, 44, 47

#: Errors after which the same request is sent again, to the leader.
RETRIED = (NOT_LEADER, NO_QUORUM, OVERLOADED, UNKNOWN_OUTCOME, SHUTTING_DOWN)


class ProtocolError(Exception):
    """The node sent what the protocol does not allow."""


class HoldfastError(Exception):
    """A refusal: its code, its words, and the fields behind them."""

    def __init__(self, reply):
        super().__init__(f"error {reply.code}: {reply.fields}")
        self.code = reply.code
        self.fields = reply.fields[2:]


class Reply:
    """One reply: [correlation, code, cluster_time, replay, field, ...]."""

    def __init__(self, item):
        if not isinstance(item, list) or len(item) < 4:
            raise ProtocolError(f"not a reply: {item!r}")
        self.correlation, self.code, self.cluster_time, self.is_replay = item[:4]
        self.fields = item[4:]


def trimmed(operation):
    """Nils at the end may be left out."""
    end = len(operation)
    while end > 1 and operation[end - 1] is None:
        end -= 1
    return operation[:end]


def encode_frame(*items):
    """A frame of requests [correlation, deadline_ms, operation]."""
    body = msgpack.packb([FRAME_VERSION, SHARD, *items], use_bin_type=True)
    return struct.pack(">I", len(body)) + body


def request(correlation, deadline_ms, operation):
    """One item of a frame."""
    return [correlation, deadline_ms, trimmed(operation)]


def decode_body(body):
    """The replies in the body of a frame."""
    value = msgpack.unpackb(body, raw=False, strict_map_key=False)
    if not isinstance(value, list) or value[:2] != [FRAME_VERSION, SHARD]:
        raise ProtocolError("not a frame of version 1")
    return [Reply(item) for item in value[2:]]


# Operations, place by place as the tables of the page have them.


def hello(name):
    return [HELLO, 1, name, None]


def session_open(request_id, ttl_ms, metadata=None):
    return [SESSION_OPEN, request_id, None, None, None, ttl_ms, metadata]


def session_renew(session, ttl_ms=None):
    return [SESSION_RENEW, None, session, None, None, ttl_ms]


def session_close(session):
    return [SESSION_CLOSE, None, session, None, None]


def session_attach(session, secret):
    return [SESSION_ATTACH, session, secret]


def acquire(request_id, session, acknowledged, name, ttl_ms=None, wait_ms=None):
    return [ACQUIRE, request_id, session, acknowledged, None, name, ttl_ms, wait_ms]


def renew(lease, ttl_ms=None):
    return [RENEW, None, None, None, None, lease, ttl_ms, None]


def release(lease, request_id=None, session=None, acknowledged=None):
    return [RELEASE, request_id, session, acknowledged, None, lease]


def cancel(request_id, session, target):
    return [CANCEL, request_id, session, None, None, target]


class Connection:
    """One connection to one node; replies are kept until somebody asks for them."""

    def __init__(self, address, timeout_s):
        host, _, port = address.rpartition(":")
        self.address = address
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.correlation = 0
        self.replies = {}

    def close(self):
        self.socket.close()

    def send(self, operation, deadline_ms):
        """Sends one request; returns its correlation."""
        self.correlation += 1
        self.socket.sendall(encode_frame(request(self.correlation, deadline_ms, operation)))
        self.replies[self.correlation] = []
        return self.correlation

    def receive(self, correlation, timeout_s):
        """The next reply to a request: the queued one, later the final one."""
        end = time.monotonic() + timeout_s
        while not self.replies[correlation]:
            self.read_frame(end)
        reply = self.replies[correlation].pop(0)
        if reply.code != QUEUED:
            del self.replies[correlation]
        return reply

    def read_frame(self, end):
        (length,) = struct.unpack(">I", self.read_exactly(4, end))
        if not 1 <= length <= FRAME_BYTES_MAX:
            raise ProtocolError(f"a frame of {length} bytes")
        for reply in decode_body(self.read_exactly(length, end)):
            if reply.correlation == 0:
                raise ConnectionError(f"{self.address} said {reply.code}: {reply.fields}")
            waiting = self.replies.get(reply.correlation)
            if waiting is not None:
                waiting.append(reply)

    def read_exactly(self, count, end):
        while len(self.buffer) < count:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"{self.address} did not answer in time")
            self.socket.settimeout(left)
            chunk = self.socket.recv(65_536)
            if not chunk:
                raise ConnectionError(f"{self.address} closed the connection")
            self.buffer += chunk
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken


class Client:
    """Finds the leader and keeps to it; a session follows it to the next leader."""

    def __init__(self, addresses, name):
        self.addresses = list(addresses)
        self.name = name
        self.connection = None
        self.hint = None
        self.session = None
        self.secret = None
        self.sequence = 0
        self.answered = set()
        self.mark = 0

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def connect(self, end):
        """A greeted connection to the leader, the session attached to it."""
        while time.monotonic() < end:
            for address in [self.hint, *self.addresses] if self.hint else list(self.addresses):
                try:
                    if self.greet(address, end):
                        return
                except (OSError, ProtocolError, HoldfastError):
                    self.close()
            self.hint = None
            time.sleep(0.05 + 0.1 * int.from_bytes(os.urandom(1), "big") / 255)
        raise TimeoutError("no leader was found in time")

    def greet(self, address, end):
        self.connection = Connection(address, max(0.1, min(2.0, end - time.monotonic())))
        greeting = self.ask(hello(self.name))
        node_id, leader_id, members = greeting.fields[2], greeting.fields[3], greeting.fields[7]
        known = {member[0]: member[1] for member in members}
        self.addresses = list(dict.fromkeys([*self.addresses, *known.values()]))
        if node_id != leader_id:
            self.close()
            self.hint = known.get(leader_id)
            return False
        if self.session is not None:
            self.ask(session_attach(self.session, self.secret))
        return True

    def ask(self, operation, timeout_s=2.0):
        """One question on the current connection, answered or refused."""
        correlation = self.connection.send(operation, int(timeout_s * 1_000))
        reply = self.connection.receive(correlation, timeout_s + 1.0)
        if reply.code >= ERROR_MIN:
            raise HoldfastError(reply)
        return reply

    def call(self, operation, timeout_s=10.0, wait_s=0.0, on_queued=None):
        """Sends an operation until it is answered; resends keep its request id."""
        end = time.monotonic() + timeout_s + wait_s
        while True:
            try:
                if self.connection is None:
                    self.connect(end)
                reply = self.attempt(operation, end, on_queued)
            except (ConnectionError, socket.timeout, TimeoutError):
                self.close()
                if time.monotonic() >= end:
                    raise
                continue
            if reply.code < ERROR_MIN:
                return reply
            if reply.code not in RETRIED or time.monotonic() >= end:
                raise HoldfastError(reply)
            self.step_back(reply)

    def attempt(self, operation, end, on_queued):
        left = max(0.1, end - time.monotonic())
        correlation = self.connection.send(operation, int(left * 1_000))
        reply = self.connection.receive(correlation, left)
        while reply.code == QUEUED:
            if on_queued is not None:
                on_queued(reply)
            reply = self.connection.receive(correlation, max(0.1, end - time.monotonic()))
        return reply

    def step_back(self, reply):
        """After a refusal that may pass: go where the leader is, or wait a little."""
        message, retry_after_ms = reply.fields[0], reply.fields[1]
        del message
        if reply.code in (NOT_LEADER, SHUTTING_DOWN):
            self.hint = reply.fields[3] if reply.code == NOT_LEADER and reply.fields[3] else None
            self.close()
        time.sleep((retry_after_ms or 20) / 1_000)

    # The session and its sequences.

    def open_session(self, ttl_ms, metadata=None):
        reply = self.call(session_open(os.urandom(16), ttl_ms, metadata))
        self.session, self.secret = reply.fields[0], reply.fields[1]
        return reply

    def next_sequence(self):
        self.sequence += 1
        return self.sequence

    def acknowledge(self, sequence):
        """The mark moves up over every sequence that was answered."""
        self.answered.add(sequence)
        while self.mark + 1 in self.answered:
            self.mark += 1
            self.answered.discard(self.mark)

    def acquire(self, name, ttl_ms, wait_ms=0, on_queued=None):
        sequence = self.next_sequence()
        operation = acquire(sequence, self.session, self.mark, name, ttl_ms, wait_ms)
        reply = self.call(operation, wait_s=wait_ms / 1_000, on_queued=on_queued)
        self.acknowledge(sequence)
        return reply

    def release(self, lease):
        sequence = self.next_sequence()
        reply = self.call(release(lease, sequence, self.session, self.mark))
        self.acknowledge(sequence)
        return reply

"""Holds the client of this folder against the examples of docs/PROTOCOL.md.

usage: check_examples.py PROTOCOL.md

Reads each example's words and bytes from the page, checks that a MessagePack library reads the one
from the other, that it writes a client's frames byte for byte, and that the functions of
holdfast_client.py build the frames shown. Ends with status 1 at the first difference.
"""

import json
import re
import struct
import sys

import msgpack

import holdfast_client as client

SESSION = bytes(range(0x20, 0x30))
SECRET = bytes(range(0x30, 0x40))
LEASE = bytes(range(0x40, 0x50))
HOST = b"host-7"

BLOCK = re.compile(r"^([→←]) ([^\n]+)\n\n```\n[→←] ([^\n]+)\n\n(.*?)\n```$", re.M | re.S)

#: What the functions of the client build, by the title of the example.
BUILT = {
    "hello": [client.request(1, 5_000, client.hello("example"))],
    "ping, without naming a deadline": [client.request(2, None, [client.PING])],
    "open a session of 30 s": [
        client.request(3, 5_000, client.session_open("open-1", 30_000, HOST)),
    ],
    "renew it": [client.request(9, 5_000, client.session_renew(SESSION))],
    "attach it to another connection": [
        client.request(1, 5_000, client.session_attach(SESSION, SECRET)),
    ],
    "acquire, sequence 1 of the session": [
        client.request(4, 5_000, client.acquire(1, SESSION, None, "jobs/nightly", 30_000)),
    ],
    "a try without a session, named by a free-form id": [
        client.request(7, 2_000, client.acquire("nightly-2024-05-01", None, None, "jobs/nightly")),
    ],
    "release": [client.request(8, 5_000, client.release(LEASE, 3, SESSION, 2))],
    "cancel the wait of sequence 2": [client.request(11, 5_000, client.cancel(4, SESSION, 2))],
}


def notation(value):
    """A value as the page writes it."""
    if value is None:
        return "nil"
    if isinstance(value, bytes):
        return f"h'{value.hex()}'"
    if isinstance(value, list):
        return "[" + ", ".join(notation(part) for part in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {notation(part)}" for key, part in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def check(holds, title, what):
    if not holds:
        sys.exit(f"{title}: {what}")


def check_example(way, title, words, dump):
    frame = bytes.fromhex(dump)
    (length,) = struct.unpack(">I", frame[:4])
    check(length == len(frame) - 4, title, "the length is that of the body")
    value = msgpack.unpackb(frame[4:], raw=False)
    if r"\u" not in words:
        check(notation(value) == words, title, f"{notation(value)} is not {words}")
    if way == "←":
        check(client.decode_body(frame[4:]), title, "the client reads a reply")
        return
    items = value[2:]
    trimmed = [client.request(item[0], item[1], item[2]) for item in items]
    if trimmed == items:
        check(client.encode_frame(*items) == frame, title, "a library writes the same bytes")


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    examples = BLOCK.findall(page)
    built = dict(BUILT)
    for way, title, words, dump in examples:
        check_example(way, title, words, dump)
        items = built.pop(title, None)
        if items is None or way != "→":
            continue
        value = msgpack.unpackb(bytes.fromhex(dump)[4:], raw=False)[2:]
        shown = [client.request(item[0], item[1], item[2]) for item in value]
        check(items == shown, title, f"{items} was built, {shown} is shown")
    check(not built, "the page", f"lacks the examples {list(built)}")
    print(f"{len(examples)} examples of the page agree with the client")


main()

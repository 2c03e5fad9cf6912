"""Two clients and one lock, against running nodes: acquire, wait, renew, release, hand over.

usage: hold_and_hand_over.py HOST:PORT [HOST:PORT ...]

The first client holds a lock, the second one queues behind it on a connection of its own, and gets
it with a larger token when the first releases. Prints a line a step; ends with status 0 on success.
"""

import os
import sys
import threading

import holdfast_client as client

TTL_MS = 10_000
WAIT_MS = 20_000


def check(holds, what):
    if not holds:
        raise AssertionError(what)
    print(f"ok {what}", flush=True)


def refused(code, call):
    """The fields of a refusal that has to come."""
    try:
        call()
    except client.HoldfastError as error:
        check(error.code == code, f"is refused with {code} (got {error.code})")
        return error.fields
    raise AssertionError(f"was not refused with {code}")


def open_client(addresses, name):
    opened = client.Client(addresses, name)
    reply = opened.open_session(TTL_MS, name)
    check(reply.fields[3] == TTL_MS, f"{name} has a session")
    return opened


def wait_in_thread(second, name, queued):
    """Acquires in another thread; returns it and the list that its result goes into."""
    results = []

    def work():
        try:
            results.append(second.acquire(name, TTL_MS, WAIT_MS, lambda reply: queued.set()))
        except Exception as error:  # told to the main thread, which fails the run
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread, results


def hand_over(first, second, name):
    lease, token, revision, deadline, ttl_ms = first.acquire(name, TTL_MS).fields
    check(token == revision and ttl_ms == TTL_MS and deadline > 0, "the first client holds")
    holder = refused(client.LOCK_BUSY, lambda: second.acquire(name, TTL_MS))
    check(holder[0] == token and holder[4] is not None, "the refusal names the holder")

    queued = threading.Event()
    thread, results = wait_in_thread(second, name, queued)
    check(queued.wait(10), "the second client stands in the queue")
    shown = first.call([client.GET, name]).fields[0]
    check(shown[2][0] == token and shown[3] == 1, "get shows holder and waiter")

    renewed = first.call(client.renew(lease)).fields
    check(renewed[0] >= deadline and renewed[2] == token, "a renewal keeps lease and token")
    session = first.call(client.session_renew(first.session)).fields
    check(session[1] == TTL_MS, "the session is renewed")
    ended = first.release(lease).fields[0]
    check(ended > token, "the release is an event of its own")

    thread.join(WAIT_MS / 1_000)
    check(len(results) == 1 and isinstance(results[0], client.Reply), f"granted: {results}")
    return token, lease, ended, results[0].fields


def main():
    addresses = sys.argv[1:]
    if not addresses:
        sys.exit(__doc__)
    name = f"python/{os.urandom(8).hex()}"
    first = open_client(addresses, "python-1")
    second = open_client(addresses, "python-2")
    token, lease, ended, grant = hand_over(first, second, name)
    check(grant[1] > ended, "the next token is larger than everything before")

    again = first.call(client.release(lease))
    check(again.is_replay and again.fields[0] == ended, "a second release answers released again")
    stale = refused(client.STALE_LEASE, lambda: first.call(client.renew(lease)))
    check(stale == [1, ended], "a renewal of it is stale, and says that it was released")
    check(first.call([client.CHECK, name, token]).fields == ["stale", grant[1]], "its token is stale")
    check(first.call([client.CHECK, name, grant[1]]).fields[0] == "current", "the new one is current")

    check(second.release(grant[0]).code == client.OK, "the second client releases")
    state, result = first.call([client.LOOKUP, first.session, first.sequence]).fields
    check(state == "done" and result[0] == client.OK, "a lookup repeats the last result")
    for held in (first, second):
        check(held.call(client.session_close(held.session)).code == client.OK, "a session closes")
        held.close()
    print(f"ok tokens {token} and {grant[1]}")


main()

"""Runs a command in a terminal of its own, presses Ctrl-C when it has printed a text, and waits.

Usage: press_control_c.py TEXT COMMAND...
Prints all that the terminal showed; ends with the command's status, 128 + n for signal n.
"""

import os
import pty
import sys


def main() -> int:
    text, *command = sys.argv[1:]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    shown = b""
    pressed = False
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # EIO: nobody has the terminal open any more
            break
        if not chunk:
            break
        shown += chunk
        if not pressed and text.encode() in shown:
            pressed = True
            os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    sys.stdout.buffer.write(shown)
    return os.waitstatus_to_exitcode(status) & 0xFF


sys.exit(main())

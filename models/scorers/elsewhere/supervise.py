"""Runs a program, and kills it and all it has started when the process that asked for it is gone.

    python supervise.py LIFELINE PROGRAM [ARGUMENT …]

LIFELINE is the descriptor of a pipe held open by the parent; when the parent dies, it closes. The
program has the standard streams, and a process group of its own. The exit code is the program's;
128 + N if signal N killed it, 127 if it cannot be started.

The file is run as it stands, by a Python without Paraloom's packages.
"""

import _thread
import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Start the program, and wait for it or for the end of the lifeline."""
    lifeline, program = int(sys.argv[1]), sys.argv[2:]
    child = os.fork()
    if not child:
        _become(lifeline, program)
    with suppress(OSError):  # the child does it too: whoever is first
        os.setpgid(child, child)
    os.close(0)
    os.close(1)
    _thread.start_new_thread(_kill_at_end, (lifeline, child))
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # until it is reaped, its number is its own
    _kill(child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def _become(lifeline: int, program: list[str]) -> None:
    try:
        os.setpgid(0, 0)
        os.close(lifeline)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
        os.execvp(program[0], program)
    except OSError as error:
        os.write(2, f"{program[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _kill_at_end(lifeline: int, group: int) -> None:
    os.read(lifeline, 1)
    _kill(group)


def _kill(group: int) -> None:
    with suppress(OSError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()

"""Progress bars on a terminal, when something goes wrong beside them."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.run_helpers import ROOT


def on_terminal(code: str) -> tuple[str, int]:
    """What a program shows on a terminal, and its exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the program has ended
            break
    os.close(ours)
    return shown.decode(), process.wait()


def test_standard_error_that_goes_to_a_log_stays_off_the_bar(tmp_path: Path) -> None:
    """As the errors of Beam's threads do when a worker was killed."""
    log = tmp_path / "log"
    shown, code = on_terminal(
        f"""
import os, sys, threading
from paraloom.models.progress import meter
terminal = os.fdopen(os.dup(2), "w")
os.dup2(os.open({str(log)!r}, os.O_WRONLY | os.O_CREAT), 2)
with meter("score", 2, stream=terminal):
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
"""
    )
    assert code == 0
    assert "0 of 2 rows" in shown
    assert "Traceback" not in shown
    assert "ZeroDivisionError" in log.read_text()

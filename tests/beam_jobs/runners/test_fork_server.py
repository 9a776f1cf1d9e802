"""Forked workers: what they see, how they end, and what becomes of them when others are killed."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from paraloom.beam_jobs.runners.local.fork_server import ForkServer
from tests.run_helpers import ROOT, Capsys, Patch

ERRAND = """
import os, signal, sys
from pathlib import Path

def main(arguments):
    what, *rest = arguments
    if what == "see":
        names = (os.getcwd(), os.environ.get("ADDED"), os.getpid())
        Path(rest[0]).write_text("\\n".join(map(str, names)))
        print("on stdout")
        print("on stderr", file=sys.stderr)
    elif what == "tokenise":
        import pyarrow as pa
        from paraloom.models.text.tokens import moses_tokens
        assert moses_tokens(pa.array(rest))
    elif what == "exit":
        sys.exit(int(rest[0]))
    elif what == "raise":
        raise ValueError("nothing to see")
    elif what == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def errand(tmp_path: Path, monkeypatch: Patch) -> str:
    """A module that workers can import, as this process can."""
    (tmp_path / "errand.py").write_text(ERRAND)
    monkeypatch.syspath_prepend(tmp_path)
    return "errand"


@pytest.fixture(scope="module")
def fork_server() -> ForkServer:
    return ForkServer()


def test_a_worker_sees_what_its_launcher_sees_now(
    fork_server: ForkServer, errand: str, tmp_path: Path, monkeypatch: Patch, capfd: Capsys
) -> None:
    assert fork_server.start(errand, ["exit", "0"]).wait() == 0  # the server has started
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert fork_server.start(errand, ["see", "seen"], {"ADDED": name}).wait() == 0
        folder, added, pid = Path("seen").read_text().split("\n")
        assert (folder, added) == (str(tmp_path / name), name)
        assert int(pid) != os.getpid()
    assert capfd.readouterr().err.count("on stdout\non stderr\n") == 2


def test_a_large_request_is_read_whole_while_other_workers_end(
    errand: str, monkeypatch: Patch
) -> None:
    fork_server = ForkServer()
    for name in ("ONE", "OTHER"):
        monkeypatch.setenv(name, "x" * 120_000)
    for _ in range(30):
        workers = [fork_server.start(errand, ["exit", "0"]) for _ in range(3)]
        assert [worker.wait() for worker in workers] == [0, 0, 0]


def test_what_imports_left_in_the_environment_is_there(errand: str, monkeypatch: Patch) -> None:
    """The tokeniser finds its files by a variable that its import sets, in the server alone."""
    monkeypatch.delenv("TOKENIZER_SHARED_DIR", raising=False)
    fork_server = ForkServer()
    assert fork_server.start(errand, ["tokenise", "A dog."]).wait() == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["exit", "0"], 0),
        (["exit", "7"], 7),
        (["raise"], 1),
        (["interrupt"], 130),
        (["die"], -signal.SIGKILL),
    ],
)
def test_how_it_ends(
    fork_server: ForkServer, errand: str, arguments: list[str], code: int, capfd: Capsys
) -> None:
    workers = [fork_server.start(errand, arguments) for _ in range(5)]
    assert [worker.wait() for worker in workers] == [code] * 5
    assert capfd.readouterr().err.count("Traceback") == 5 * (arguments == ["raise"])


def test_a_worker_ignores_ctrl_c_if_its_launcher_does(fork_server: ForkServer, errand: str) -> None:
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert fork_server.start(errand, ["interrupt"]).wait() == 0
    finally:
        signal.signal(signal.SIGINT, handler)


def test_a_server_that_was_killed_is_replaced(fork_server: ForkServer, errand: str) -> None:
    assert fork_server.start(errand, ["exit", "3"]).wait() == 3
    for child in psutil.Process().children():
        living = child.status() != psutil.STATUS_ZOMBIE
        if living and "paraloom.beam_jobs.runners.local.fork_server" in child.cmdline():
            child.kill()
            child.wait()
    assert fork_server.start(errand, ["exit", "4"]).wait() == 4


def test_ctrl_c_while_it_starts_prints_nothing(errand: str, tmp_path: Path) -> None:
    code = f"""if True:
        import os, signal, sys, time
        from paraloom.beam_jobs.runners.local.fork_server import ForkServer
        signal.signal(signal.SIGINT, lambda *_: None)
        for milliseconds in range(0, 100, 20):
            fork_server = ForkServer()
            fork_server.prepare()
            time.sleep(milliseconds / 1000)
            os.killpg(0, signal.SIGINT)
        sys.exit(fork_server.start("{errand}", ["exit", "5"]).wait())
    """
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (5, b"")


PREPARED = """
import time
from paraloom.beam_jobs.runners.local.fork_server import fork_server
fork_server.prepare()
time.sleep(99)
"""
WITH_A_WORKER = """
import os
from paraloom.beam_jobs.runners.local import worker
from paraloom.beam_jobs.runners.local.fork_server import fork_server
told = worker.environment("w", "{}", "localhost:1", "localhost:1")
fork_server.start(worker.__name__, [str(os.getpid())], told).wait()
"""


NOT_ON_MACOS = "import os, socket; del os.pidfd_open, os.sched_getaffinity, socket.SOCK_SEQPACKET"


@pytest.mark.parametrize(
    ("code", "processes", "start"),
    [(PREPARED, 1, ""), (WITH_A_WORKER, 2, ""), (WITH_A_WORKER, 2, NOT_ON_MACOS)],
)
def test_it_ends_with_its_launcher(code: str, processes: int, start: str, tmp_path: Path) -> None:
    """The worker waits for a runner that never comes."""
    (tmp_path / "sitecustomize.py").write_text(start)  # every process runs it
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    launcher = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
    while len(found := psutil.Process(launcher.pid).children(recursive=True)) < processes:
        assert launcher.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    assert psutil.STATUS_ZOMBIE not in {process.status() for process in found}
    launcher.kill()
    launcher.wait()
    for process in found:
        with suppress(psutil.NoSuchProcess):
            ends = time.monotonic() + 60
            while process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < ends:
                time.sleep(0.05)
            assert process.status() == psutil.STATUS_ZOMBIE

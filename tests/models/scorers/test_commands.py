"""Programs that print scores: what they get, and what becomes of those that fail."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.elsewhere.commands import CommandScorer, shown_words
from paraloom.models.scorers.pair_scorer import Scores

ROOT = Path(__file__).resolve().parents[3]
PAIRS = [
    ("Pes běží .", "a dog runs .", "the dog runs ."),
    ("a\tb\nc\r\0d", "x\u2028y\x85z", "“quoted” \\n ' \" 猫"),
    ("Muž spí .", "a man sleeps .", "a man is asleep ."),
]


def python(code: str) -> str:
    """The command that runs a program of these lines."""
    return shlex.join([sys.executable, "-c", f"import os, sys, time\n{code}"])


def score(command: str, pairs: list[tuple[str, str, str]] = PAIRS, timeout: float = 20) -> Scores:
    scorer = PairScorer(["bleurt"], sources=[CommandScorer("bleurt", command, timeout)])
    columns = zip(*pairs, strict=True) if pairs else ([], [], [])
    source, reference, translation = (pa.array(column, pa.string()) for column in columns)
    return scorer.score(reference, translation, source=source)


def failure(command: str, pairs: list[tuple[str, str, str]] = PAIRS, timeout: float = 20) -> str:
    with pytest.raises(UserError) as error:
        score(command, pairs, timeout)
    assert "\n" not in str(error.value)
    return str(error.value).replace(shown_words(command), "COMMAND")


def test_it_gets_a_line_a_pair_and_three_columns(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    scores = score(
        python(
            f"data = sys.stdin.buffer.read(); open({str(copy)!r}, 'wb').write(data)\n"
            "for i, line in enumerate(data.splitlines()): print(i / 2)"
        )
    )
    assert scores["bleurt"].tolist() == [0, 0.5, 1]
    assert scores["bleurt"].dtype == np.float32
    assert scores.reasons == {}
    assert copy.read_bytes().decode().splitlines() == [
        "Pes běží .\ta dog runs .\tthe dog runs .",
        "a b c  d\tx y z\t“quoted” \\n ' \" 猫",
        "Muž spí .\ta man sleeps .\ta man is asleep .",
    ]


def test_the_wrapper_of_the_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = (
        block
        for block in (ROOT / "docs/scorers.md").read_text("utf-8").split("```")
        if '"comet-score"' in block
    )
    (tmp_path / "comet_pairs.py").write_text(block.removeprefix("text\n"), "utf-8")
    fake = tmp_path / "comet-score"
    fake.write_text(
        f"#!{sys.executable}\n"
        "names = ('src', 'mt', 'ref')\n"
        "src, mt, ref = (open(name, encoding='utf-8').readlines() for name in names)\n"
        "print('Predicting')\n"
        "for i, (a, b, c) in enumerate(zip(src, mt, ref, strict=True)):\n"
        "    print(f'mt\\tSegment {i}\\tscore: {len(a) + 100 * len(b) + 10000 * len(c):.4f}')\n"
        "print('mt\\tscore: 0.5')\n",
        "utf-8",
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    scores = score(shlex.join([sys.executable, str(tmp_path / "comet_pairs.py")]))
    wanted = [len(a) + 1 + 100 * (len(c) + 1) + 10000 * (len(b) + 1) for a, b, c in PAIRS]
    assert scores["bleurt"].tolist() == wanted


def test_no_pairs_start_no_program() -> None:
    assert score("no-such-program", [])["bleurt"].tolist() == []


@pytest.mark.parametrize("how", ["sys.exit(3)", "os.kill(os.getpid(), 9)", "time.sleep(60)"])
def test_it_fails_once_and_then_works(tmp_path: Path, how: str) -> None:
    """What it printed before it failed does not count."""
    tried = tmp_path / "tried"
    command = python(
        f"again = os.path.exists({str(tried)!r}); open({str(tried)!r}, 'w')\n"
        f"for line in sys.stdin: print(int(again), flush=True)\nif not again: {how}"
    )
    assert score(command, timeout=1.5)["bleurt"].tolist() == [1, 1, 1]


def test_it_fails_always(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = python(
        f"open({str(log)!r}, 'a').write('x'); print(1); print('one\\nout of \\x07memory', "
        "file=sys.stderr); sys.exit(3)"
    )
    assert failure(command) == (
        "bleurt: `COMMAND` ended with exit code 3, 3 times; the last line on its stderr: "
        "out of memory"
    )
    assert log.read_text() == "xxx"
    killed = failure(python("os.kill(os.getpid(), 15)"))
    assert killed.endswith("was killed (SIGTERM), 3 times; nothing is on its stderr")
    missing = failure("no-such-program --fast")
    assert missing.endswith("on its stderr: no-such-program: No such file or directory")


def test_it_hangs() -> None:
    command = python("print('waiting', file=sys.stderr, flush=True); time.sleep(60)")
    assert failure(command, timeout=0.7) == (
        "bleurt: `COMMAND` did not end within 0.7 seconds, 3 times; the last line on its stderr: "
        "waiting"
    )


@pytest.mark.parametrize("lines", [0, 2, 4])
def test_another_number_of_lines(lines: int) -> None:
    assert failure(python(f"for _ in range({lines}): print(1)")).startswith(
        f"bleurt: `COMMAND` printed {lines} lines for 3 pairs; it must print one number a pair"
    )


def test_a_line_that_is_no_number_rejects_its_pair_alone() -> None:
    scores = score(python("print('0.5'); print('good ' * 20_000); print(' 1e-1\\r')"))
    assert scores["bleurt"].tolist()[::2] == [0.5, np.float32(0.1)]
    assert [*scores.reasons["bleurt"]] == ["", "no number", ""]
    empty = score(python("print(1); print(); print('nan')"))
    assert [*empty.reasons["bleurt"]] == ["", "no number", ""]
    assert np.isnan(empty["bleurt"][2])


def test_much_on_both_streams_and_nothing_read(capfd: pytest.CaptureFixture[str]) -> None:
    pairs = [("s" * 2000, "r" * 2000, "t" * 2000)] * 1000
    noise = "for _ in range(200): sys.stderr.write('x' * 9999 + '\\n')\n"
    assert len(score(python(f"{noise}print('1\\n' * 999 + '1')"), pairs)["bleurt"]) == 1000
    assert capfd.readouterr().err.count("x") == 200 * 9999
    echo = "for line in sys.stdin: sys.stderr.write(line); print(len(line))"
    assert score(python(echo), pairs)["bleurt"].tolist() == [6003] * 1000


def children(marker: str) -> list[psutil.Process]:
    """The processes that have the marker among their arguments, and are no supervisors."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if marker in line and not any("supervise" in word for word in line):
            found.append(process)
    return found


def gone(marker: str, seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while children(marker) and time.monotonic() < end:
        time.sleep(0.05)
    return not children(marker)


def test_what_it_started_ends_with_it() -> None:
    marker = f"{time.time():.6f}"
    start = "import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; "
    start += f"time.sleep(60)', '{marker}'])\n"
    assert len(score(python(f"{start}for line in sys.stdin: print(1)"))["bleurt"]) == 3
    assert gone(marker)
    failure(python(f"{start}time.sleep(60)"), timeout=0.5)
    assert gone(marker)


def test_it_ends_with_the_process_that_waits_for_it(tmp_path: Path) -> None:
    marker = f"{time.time():.6f}"
    command = f"{python('time.sleep(60)')} {marker}"
    code = (
        "import pyarrow as pa; from paraloom.models.scorers import PairScorer\n"
        "from paraloom.models.scorers.elsewhere.commands import CommandScorer\n"
        f"scorer = PairScorer(['b'], sources=[CommandScorer('b', {command!r})])\n"
        "texts = pa.array(['a']); scorer.score(texts, texts, source=texts)"
    )
    waiting = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    end = time.monotonic() + 60
    while not children(marker) and time.monotonic() < end:
        time.sleep(0.05)
    assert children(marker)
    waiting.kill()
    waiting.wait()
    assert gone(marker)

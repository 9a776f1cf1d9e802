"""`tests.everything` has all targets that test, and its table and exit code are right."""

import re
import sys
from dataclasses import dataclass

from tests import everything, portable
from tests.everything import ROOT, TARGETS, Target
from tests.run_helpers import Capsys

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PYTEST = """
FAILED tests/a/test_b.py::test_c[1-2] - AssertionError: no
2 skipped: no Chromium on this machine
1 failed, 7 passed, 2 skipped in 3.21s
"""


@dataclass(frozen=True)
class Fake(Target):
    """A target that runs a program instead of make."""

    code: int = 0
    said: str = "done"

    def command(self) -> list[str]:
        return [sys.executable, "-c", f"print({self.said!r}); raise SystemExit({self.code})"]


def test_the_short_pass_names_tests_that_are_there() -> None:
    assert [name for name in portable.SHORT if not (ROOT / name).exists()] == []


def test_every_target_that_tests_is_in_the_list_and_in_ci_or_named_by_contributing() -> None:
    made = set(re.findall(r"^((?:test|fuzz|rehearse)(?:-\w+)?):", MAKEFILE, re.M))
    assert "test" in made
    assert made - {"test-all"} <= {target.name for target in TARGETS}
    in_ci = set(re.findall(r"^make ([\w-]+)", (ROOT / ".ci" / "run").read_text(), re.M))
    assert {"test"} <= in_ci <= made
    assert "make test-all " in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_it_goes_on_after_a_failure_and_says_all_at_the_end(capfd: Capsys) -> None:
    found = [
        Fake("bad", said=PYTEST, code=1),
        Fake("stuck", said="make: *** [x] Error 2\nno room", code=2),
        Fake("lacking", ("no-such-program",)),
        Fake("good", said="1 skipped: no real data: set X\n3 passed, 1 skipped in 0.5s"),
    ]
    assert everything.main([], found) == 1
    out = capfd.readouterr().out
    rows = {cells[1]: cells for line in out.splitlines() if len(cells := line.split()) > 3}
    assert {name: rows[name][3] for name in ("bad", "stuck", "lacking", "good")} == {
        "bad": "FAILED", "stuck": "FAILED", "lacking": "skipped", "good": "passed",
    }  # fmt: skip
    table = out[out.index("remarks") :]
    for words in (
        "1 failed, 7 passed, 2 skipped in 3.21s",
        "FAILED tests/a/test_b.py::test_c[1-2]",
        "2 skipped: no Chromium on this machine",
        "exit code 2",
        "no room",
        "no no-such-program on this machine",
        "1 skipped: no real data: set X",
    ):
        assert words in table
    assert out.splitlines()[-1] == "targets: 1 passed, 2 failed, 1 skipped"


def test_the_exit_code() -> None:
    good, bad = Fake("a"), Fake("b", code=1)
    assert everything.main([], [good]) == everything.main(["a"], [good, bad]) == 0
    assert everything.main([], [bad, good]) == everything.main(["b"], [good, bad]) == 1
    assert everything.main(["c"], [good]) == 2  # nothing ran


def test_what_is_named_is_not_skipped() -> None:
    """A named target runs even if a program is missing, and then fails."""
    lacking = [Fake("a", ("no-such-program",), code=127)]
    assert everything.main([], lacking) == 1  # nothing passed
    assert everything.main(["a"], lacking) == 1
    assert everything.main(["a"], [Fake("a", ("no-such-program",))]) == 0

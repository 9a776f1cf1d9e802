"""The page in a real Chromium: judged by keys, undone, reloaded, the server killed; by touch."""

import json
import re
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from paraloom.pipeline.cli import main
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.judging.sampling import Pair, ScoredRun, sample_pairs
from paraloom.pipeline.judging.server import JudgingServer
from tests.browser import browser, needs_browser, opened
from tests.run_helpers import Capsys, WriteConfig, started

__all__ = ["browser"]

pytestmark = needs_browser


class Served:
    """`paraloom judge` at work on a run; `url` is the address of the page."""

    def __init__(self, run: Path, *options: str) -> None:
        # A shell in the background ignores SIGINT, and so would its children.
        heed = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
        self.process = started("judge", str(run), *options, preexec_fn=heed)
        assert self.process.stdout
        self.printed: list[str] = []
        for line in self.process.stdout:
            self.printed.append(line.strip())
            if found := re.search(r"http://\S+", line):
                self.url = found.group()
                return
        raise AssertionError(self.process.communicate()[1])

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        """Send a signal; gives the exit code and what was printed since the address."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err


@contextmanager
def serving(run: Path, *options: str) -> Iterator[Served]:
    """The server, killed at the end if it still runs."""
    served = Served(run, *options)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.stop(signal.SIGKILL)


def shows(page: Page, text: str) -> None:
    shown = "text => document.getElementById('count').textContent === text"
    page.wait_for_function(shown, arg=text)


def saved(run: Path, judge: str = "Anna") -> dict[str, tuple[float, int | None]]:
    found = read_judgments(str(run))
    return {one.id: (one.score, one.fluency) for one in found if one.judge == judge}


def test_judging_by_keys(
    write_run: WriteConfig, browser: Browser, capsys: Capsys, request: pytest.FixtureRequest
) -> None:
    run = write_run(200)
    pairs = sample_pairs(ScoredRun(str(run)), 30)
    expected: dict[str, tuple[float, int | None]] = {}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = f"{free.getsockname()[1]}"  # the browser knows the name again by the port
    served = Served(run, "--pairs", "30", "--port", port)
    request.addfinalizer(served.process.kill)
    page, complaints = opened(browser, served.url)
    page.keyboard.type("Anna")
    page.keyboard.press("Enter")

    def judge(first: int, last: int) -> None:
        for i in range(first, last):
            shows(page, f"Pair {i + 1} of 30")
            assert page.text_content("#reference") == pairs[i].reference
            assert page.text_content("#translation") == pairs[i].translation
            for key in (str(i % 10), "ArrowRight", "jkl"[i % 3], "Enter"):
                page.keyboard.press(key)
            expected[pairs[i].id] = (10 * (i % 10) + 1, i % 3)

    judge(0, 10)
    shows(page, "Pair 11 of 30")
    assert saved(run) == expected  # before the next pair appears
    assert page.evaluate("document.activeElement.id") == "pair"

    # Undone twice: the earlier answer is there to be changed.
    page.keyboard.press("u")
    page.keyboard.press("Control+z")
    shows(page, "Pair 9 of 30")
    assert page.text_content("#value") == "81"
    assert saved(run) == {pair.id: expected[pair.id] for pair in pairs[:8]}
    judge(8, 12)
    shows(page, "Pair 13 of 30")  # the last one is saved

    page.reload()
    judge(12, 15)
    shows(page, "Pair 16 of 30")
    assert saved(run) == expected

    # Killed: what was not saved is not lost on the page either.
    assert served.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    for key in "7lk":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.get_by_text("No answer: the last action is not saved").wait_for()
    assert page.text_content("#value") == "70"
    file = run / "judgments" / "Anna.jsonl"
    with file.open("a") as stream:
        stream.write('{"id": "p-')  # as if it had been killed while it wrote
    with serving(run, "--pairs", "30", "--port", port) as served:
        assert served.printed[0] == "pairs judged by Anna: 15"
        assert main(["judge", str(run)]) == 2
        assert "another paraloom judge is running here" in capsys.readouterr().err
        page.goto(served.url)  # the name is remembered
        judge(15, 20)
        shows(page, "Pair 21 of 30")
        page.keyboard.press("s")
        shows(page, "Pair 22 of 30")
        # Enter without an answer asks for it; keys are not lost while a judgment is being saved.
        page.keyboard.press("Enter")
        page.get_by_text("First choose how much").wait_for()
        for i in range(21, 30):
            for key in ("y", "l", "Enter"):
                page.keyboard.press(key)
            expected[pairs[i].id] = (100, 2)
        page.get_by_text("29 of 30 pairs judged, 1 skipped").wait_for()
        assert saved(run) == expected
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert len(lines) == 29 + 1 + 2 * 2
        assert not any("decile" in line or "unigram_f1" in line for line in lines)
        code, out, err = served.stop()
        assert (code, err) == (0, "")
        assert "pairs judged by Anna: 29" in out
    assert complaints == []


PHONE: dict[str, Any] = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}


@contextmanager
def in_this_process(run: Path, pairs: Sequence[Pair], *options: str) -> Iterator[str]:
    """The server without the command; gives its address."""
    server = JudgingServer(ScoredRun(str(run)), pairs, *options)  # type: ignore[arg-type]
    Thread(target=server.serve, daemon=True).start()
    yield server.url
    server.close()


def test_judging_by_touch(write_run: WriteConfig, browser: Browser) -> None:
    run = write_run(60, candidates=3)
    pairs = sample_pairs(ScoredRun(str(run)), 3)
    with in_this_process(run, pairs, "0-100", "Ota") as url:
        page, complaints = opened(browser, url, **PHONE)
        shows(page, "Pair 1 of 3")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.tap('label:has-text("Understandable")')
        page.tap("#confirm")
        page.get_by_text("First choose how much").wait_for()
        page.tap("#score")  # in the middle
        page.tap("#source-toggle")
        assert page.locator("#source").is_visible()
        assert page.get_attribute("#source", "lang") == "cs"
        for side in ("#reference", "#source"):
            direction = page.locator(side).evaluate("of => getComputedStyle(of).direction")
            assert direction == "ltr"  # by its text
        page.tap("#confirm")
        shows(page, "Pair 2 of 3")
        assert not page.locator("#source").is_visible()
        page.tap("#skip")
        shows(page, "Pair 3 of 3")
        page.tap("#undo")
        shows(page, "Pair 2 of 3")
        assert list(saved(run, "Ota").values()) == [(50, 1)]
    assert complaints == []


def test_yes_and_no_and_two_judges(write_run: WriteConfig, browser: Browser) -> None:
    run = write_run(100)
    pairs = sample_pairs(ScoredRun(str(run)), 2)
    with in_this_process(run, pairs, "yes-no") as url:
        page, complaints = opened(browser, url)
        page.fill("#name", "../x")
        page.keyboard.press("Enter")
        page.get_by_text("cannot be a judge's name").wait_for()
        for name in ("Eva", "Jan"):
            page.fill("#name", name)
            page.keyboard.press("Enter")
            shows(page, "Pair 1 of 2")
            assert page.text_content("#reference") == pairs[0].reference
            for key in ("y", "l", "Enter", "n", "5", "j", "Enter"):
                page.keyboard.press(key)
            page.get_by_text("2 of 2 pairs judged").wait_for()
            page.click("#change")
        expected = {pairs[0].id: (100, 2), pairs[1].id: (0, 0)}
        assert saved(run, "Eva") == saved(run, "Jan") == expected
    assert complaints == []

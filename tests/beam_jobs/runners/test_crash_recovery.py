"""What an attempt learns from the ends of earlier ones: only a witnessed crash is evidence."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from paraloom.beam_jobs.runners import crash_recovery
from paraloom.beam_jobs.runners.crash_recovery import Attempt, begin
from paraloom.beam_jobs.runners.local.fork_server import CRASHED, WORKER

Try = Callable[..., Attempt]


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """An attempt in a new worker that records what is in progress, and ends there.

    `crash` says whether the fork server sees it crash, and tells the next worker.
    """
    numbers, crashed = count(), list[str]()

    def make(*under_way: list[list[int]], crash: bool = True, key: str = "key") -> Attempt:
        worker = f"worker-{next(numbers)}"
        monkeypatch.setenv(WORKER, worker)
        monkeypatch.setenv(CRASHED, " ".join(crashed))
        monkeypatch.setattr(crash_recovery, "_ACTIVE", [])  # a new process
        found = begin(str(tmp_path), "part-0", key)
        for groups in under_way:
            found.under_way(groups)
        if crash:
            crashed.append(worker)
        return found

    return make


def test_from_window_to_batch_to_sentence(attempt: Try) -> None:
    first = attempt()
    assert (first.number, first.isolated, first.poison) == (1, [], [])
    second = attempt([[0, 1], [2, 3]], [[2, 3], [4, 5]])
    assert (second.number, second.isolated) == (2, [])
    third = attempt([[2, 3]], [[4, 5]])
    assert (third.number, third.isolated) == (3, [[2, 3], [4, 5]])
    once = attempt([[2, 3]], [[4, 5]])
    assert once.isolated == [[2, 3], [4, 5]], "one death alone may have another reason"
    divided = attempt([[2, 3]], [[4]], [[5]])
    assert (divided.isolated, divided.poison) == ([[2, 3], [4], [5]], [])
    assert attempt([[2, 3]], [[4]], [[5]]).poison == []
    last = attempt()
    assert (last.number, last.isolated, last.poison) == (7, [[2, 3], [4]], [5])


def test_kills_of_the_command_are_no_evidence(attempt: Try) -> None:
    """Nobody saw these workers crash: they ended with the command."""
    for _ in range(20):
        found = attempt([[7]], crash=False)
        assert (found.isolated, found.poison) == ([], [])


def test_a_kill_of_the_command_between_crashes_hides_nothing(attempt: Try) -> None:
    attempt()
    for _ in range(2):
        attempt([[7]])
        attempt([[1]], crash=False)
    assert attempt().poison == [7]


def test_a_unit_beside_it_is_as_suspicious(attempt: Try, tmp_path: Path) -> None:
    """Some runners let a process work on several units at a time."""
    attempt()
    for _ in range(10):
        attempt([[7]])
        other = begin(str(tmp_path), "part-1", "key")
        other.under_way([[3]])
    found = attempt()
    assert (found.isolated, found.poison) == ([[7]], [])
    attempt([[7]])
    begin(str(tmp_path), "part-1", "key").over()
    attempt([[7]])
    assert attempt().isolated == [[7]], "the other unit began after the rows were recorded"
    for _ in range(2):
        alone = attempt()
        begin(str(tmp_path), "part-1", "key").over()
        alone.under_way([[7]])
    assert attempt().poison == [7]


def test_what_a_try_knows_stays_known_though_it_dies_of_nothing(attempt: Try) -> None:
    attempt()
    attempt([[7]])
    attempt([[7]])
    assert attempt().poison == [7]
    assert attempt([[1], [2]], []).poison == [7]
    assert attempt().poison == [7]


def test_an_error_is_not_a_crash(attempt: Try) -> None:
    attempt()
    for _ in range(3):
        attempt([[7]]).failed()
    found = attempt()
    assert (found.isolated, found.poison) == ([], [])


def test_other_work_begins_anew(attempt: Try) -> None:
    attempt()
    attempt([[7]])
    attempt([[7]])
    other = attempt(key="another")
    assert (other.number, other.poison) == (1, [])


def test_a_finished_unit_is_forgotten(attempt: Try) -> None:
    attempt().over()
    assert attempt().number == 1


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, attempt: Try) -> None:
    (tmp_path / "attempts").mkdir()
    (tmp_path / "attempts" / "part-0.json").write_text("{")
    assert attempt().number == 1


def test_the_record_is_there_before_the_work(tmp_path: Path, attempt: Try) -> None:
    attempt()
    record = json.loads((tmp_path / "attempts" / "part-0.json").read_text())
    assert (record["number"], record["in_progress"]) == (1, [])

import json
from pathlib import Path

import pytest

from beam_jobs.runners.crash_recovery import Attempt, begin


def try_again(folder: Path, *under_way: list[list[int]], key: str = "key") -> Attempt:
    """A try that notes what is under way, and dies."""
    attempt = begin(str(folder), "part-0", key)
    for groups in under_way:
        attempt.under_way(groups)
    return attempt


def test_from_window_to_batch_to_sentence(tmp_path: Path) -> None:
    first = try_again(tmp_path)
    assert (first.number, first.isolated, first.poison) == (1, [], [])
    second = try_again(tmp_path, [[0, 1], [2, 3]], [[2, 3], [4, 5]])
    assert (second.number, second.isolated) == (2, [])
    third = try_again(tmp_path, [[2, 3]], [[4, 5]])
    assert (third.number, third.isolated) == (3, [[2, 3], [4, 5]])
    fourth = try_again(tmp_path, [[2, 3]], [[4]], [[5]])
    assert (fourth.isolated, fourth.poison) == ([[2, 3], [4], [5]], [])
    fifth = try_again(tmp_path)
    assert (fifth.number, fifth.isolated, fifth.poison) == (5, [[2, 3], [4]], [5])


def test_what_a_try_knows_stays_known_though_it_dies_of_nothing(tmp_path: Path) -> None:
    try_again(tmp_path)
    try_again(tmp_path, [[7]])
    assert try_again(tmp_path).poison == [7]
    assert try_again(tmp_path, [[1], [2]], []).poison == [7]
    assert try_again(tmp_path).poison == [7]


def test_other_work_begins_anew(tmp_path: Path) -> None:
    try_again(tmp_path)
    try_again(tmp_path, [[7]])
    other = try_again(tmp_path, key="another")
    assert (other.number, other.poison) == (1, [])


def test_a_finished_unit_is_forgotten(tmp_path: Path) -> None:
    try_again(tmp_path).over()
    assert try_again(tmp_path).number == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": "key"}'])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "attempts").mkdir()
    (tmp_path / "attempts" / "part-0.json").write_text(text)
    attempt = begin(str(tmp_path), "part-0", "key")
    assert (attempt.number, attempt.isolated, attempt.poison) == (1, [], [])


def test_the_record_is_there_before_the_work(tmp_path: Path) -> None:
    begin(str(tmp_path), "part-0", "key")
    record = json.loads((tmp_path / "attempts" / "part-0.json").read_text())
    assert (record["number"], record["under_way"]) == (1, [])

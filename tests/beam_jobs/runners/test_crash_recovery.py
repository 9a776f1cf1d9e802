"""What the records of attempts say after deaths, errors and kills."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paraloom.beam_jobs.runners.crash_recovery import Attempt, begin, note_death, unfinished

Try = Callable[..., Attempt]


@pytest.fixture
def attempt(tmp_path: Path) -> Try:
    """An attempt in a worker that notes its rows and ends there; the launcher may see it die."""

    def make(*rows: int, dies: bool = True, key: str = "key") -> Attempt:
        found = begin(str(tmp_path), "part-0", key)
        found.under_way(rows)
        if dies:
            note_death(str(tmp_path))
        return found

    return make


def test_batches_get_smaller_after_the_second_death(attempt: Try) -> None:
    seen = [attempt(7) for _ in range(6)]
    assert [each.number for each in seen] == [1, 2, 3, 4, 5, 6]
    assert [each.deaths for each in seen] == [0, 1, 2, 3, 4, 5]
    assert [each.smaller for each in seen] == [1, 1, 4, 16, 64, 256]


def test_only_a_death_that_was_seen_counts(attempt: Try) -> None:
    """Errors and kills of the command leave records, too."""
    found = [attempt(7, dies=False) for _ in range(20)][-1]
    assert (found.number, found.deaths) == (20, 0)


def test_a_message_names_units_and_rows(tmp_path: Path, attempt: Try) -> None:
    assert note_death(str(tmp_path)) == ""
    attempt(dies=False)
    assert note_death(str(tmp_path)) == " at part-0"
    attempt(3, 4, dies=False)
    begin(str(tmp_path), "part-1", "key").under_way(range(9))
    assert note_death(str(tmp_path)) == " at part-0 (rows 3, 4), part-1 (rows 0, 1, 2, 3, 4, …)"


def test_other_work_begins_anew(tmp_path: Path, attempt: Try) -> None:
    attempt()
    other = attempt(key="another")
    assert (other.number, other.deaths) == (1, 0)
    other.over()
    assert unfinished(str(tmp_path)) == {}
    (tmp_path / "_attempts" / "part-0.json").write_text("{")
    assert attempt().number == 1

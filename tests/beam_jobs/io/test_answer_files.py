"""The answers of generators are kept as they come, on disk and in object stores."""

from pathlib import Path

import pytest

from paraloom.beam_jobs.io import answer_files
from paraloom.beam_jobs.io.answer_files import AnswerFiles
from paraloom.models.chat.answers import Answer


def add(files: AnswerFiles, keys: range) -> None:
    """Keep an answer for each key."""
    for key in keys:
        files.add(Answer(key=f"{key}", tokens_in=key))


def test_an_attempt_reads_what_all_earlier_ones_left(place: str) -> None:
    """Those that failed, too."""
    for keys in (range(2), range(2, 3)):
        with pytest.raises(RuntimeError), AnswerFiles(place, "part-0") as files:
            add(files, keys)
            raise RuntimeError
    with AnswerFiles(place, "part-0") as files:
        add(files, range(3, 4))
    found = AnswerFiles(place, "part-0").read()
    assert {key: answer.tokens_in for key, answer in found.items()} == {str(n): n for n in range(4)}
    assert AnswerFiles(place, "part-1").read() == {}


def test_a_killed_attempt_leaves_every_answer_on_disk(tmp_path: Path) -> None:
    files = AnswerFiles(str(tmp_path), "part-0")  # and is never closed
    add(files, range(3))
    (path,) = (tmp_path / "_answers" / "part-0").iterdir()
    with path.open("ab") as stream:
        stream.write(b'{"key": "cut o')
    assert AnswerFiles(str(tmp_path), "part-0").read().keys() == {"0", "1", "2"}


def test_a_killed_attempt_leaves_all_but_the_last_answers_in_a_store(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = AnswerFiles(bucket, "part-0")
    add(files, range(450))
    assert len(AnswerFiles(bucket, "part-0").read()) == 400
    monkeypatch.setattr(answer_files, "_SECONDS", 0.0)  # they have waited long enough
    add(files, range(450, 451))
    assert len(AnswerFiles(bucket, "part-0").read()) == 451

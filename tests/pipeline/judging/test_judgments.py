"""The judges' files: what is read from them, undoing, half-written lines, the lock."""

import os
from pathlib import Path
from typing import Any

import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline.judging.judgments import (
    Action,
    JudgeFile,
    judging,
    judgments_digest,
    read_judgments,
)
from tests.run_helpers import Patch


def action(id: str, score: float | None = 50, *, undone: bool = False) -> Action:
    if undone:
        return Action(id=id, undone=True)
    return Action(id=id, reference=f"r {id}", translation=f"t {id}", score=score)


def scores(run: Path) -> dict[str, float]:
    return {f"{found.judge} {found.id}": found.score for found in read_judgments(str(run))}


def test_lines_are_on_the_disk_when_append_returns(tmp_path: Path, monkeypatch: Patch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", lambda file: flushed.append(os.fstat(file).st_size))
    file = JudgeFile(str(tmp_path), "a")
    path = tmp_path / "judgments" / "a.jsonl"
    file.append([action("1"), action("2")])
    assert flushed == [path.stat().st_size]
    file.append([action("3")])
    assert flushed[1:] == [path.stat().st_size]


def test_the_last_action_counts(tmp_path: Path) -> None:
    file = JudgeFile(str(tmp_path), "a")
    file.append([action("1", 10), action("2", 20), action("3", 30), action("4", 0)])
    before = judgments_digest(str(tmp_path))
    file.append([action("1", 100), action("2", undone=True), action("3", None)])
    JudgeFile(str(tmp_path), "b").append([action("2", 70)])
    assert scores(tmp_path) == {"a 1": 100, "a 4": 0, "b 2": 70}
    assert [key for key, _ in file.actions] == ["4", "1", "3"]
    assert JudgeFile(str(tmp_path), "a").actions == file.actions
    assert judgments_digest(str(tmp_path)) != before


def test_judgments_are_sorted_by_judge_id_and_candidate(tmp_path: Path) -> None:
    for judge in "ba":
        actions = [action("2"), action("1")]
        actions += [action("3").model_copy(update={"candidate": n}) for n in (2, 10, 1)]
        JudgeFile(str(tmp_path), judge).append(actions)
    found = [(j.judge, j.id, j.candidate) for j in read_judgments(str(tmp_path))]
    keys: list[tuple[str, int | None]] = [("1", None), ("2", None), ("3", 1), ("3", 2), ("3", 10)]
    assert found == [(judge, *key) for judge in "ab" for key in keys]


def test_the_digest_depends_on_all_that_was_said(tmp_path: Path) -> None:
    texts = [{"reference": "x"}, {"translation": "x"}]
    changes: list[dict[str, Any]] = [{}, {"id": "2"}, {"candidate": 1}, *texts, {"score": 51.0}]
    digests = set()
    for number, change in enumerate([*changes, {"fluency": 1}]):
        (tmp_path / str(number)).mkdir()
        made = action("1").model_copy(update=change)
        JudgeFile(str(tmp_path / str(number)), "Anna").append([made])
        digests.add(judgments_digest(str(tmp_path / str(number))))
    assert len(digests) == 7


def test_a_half_written_line_is_ignored_and_cut(tmp_path: Path) -> None:
    JudgeFile(str(tmp_path), "a").append([action("1"), action("2")])
    path = tmp_path / "judgments" / "a.jsonl"
    whole = path.read_bytes()
    for end in range(len(whole) // 2 + 1, len(whole) - 1):
        path.write_bytes(whole[:end])
        assert scores(tmp_path) == {"a 1": 50}
        JudgeFile(str(tmp_path), "a").append([action("3")])
        assert scores(tmp_path) == {"a 1": 50, "a 3": 50}


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"", b"\r", b" ", b"\n", b"\r\n"])
def test_a_whole_line_counts_however_it_ends(tmp_path: Path, before: bytes, end: bytes) -> None:
    """As files end that were made elsewhere."""
    JudgeFile(str(tmp_path), "a").append([action("1"), action("2")])
    path = tmp_path / "judgments" / "a.jsonl"
    lines = before + path.read_bytes().removesuffix(b"\n") + end
    path.write_bytes(lines)
    assert scores(tmp_path) == {"a 1": 50, "a 2": 50}
    file = JudgeFile(str(tmp_path), "a")  # as the page opens it
    assert path.read_bytes().startswith(lines)
    file.append([action("3")])
    assert scores(tmp_path) == {"a 1": 50, "a 2": 50, "a 3": 50}


ONE, TWO = b'{"id": "1", "score": 50}', b'{"id": "2", "score": 60}'


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (ONE + b"\n" + TWO[:-1], {"a 1": 50}),
        (ONE + b"\n" + TWO[:8] + bytes(9), {"a 1": 50}),  # as a machine without power leaves it
        (ONE + bytes(9), {"a 1": 50}),
        (ONE + b"\n\n" + TWO + b"\n \n" + bytes(9), {"a 1": 50, "a 2": 60}),
        (bytes(9), {}),
        (b"\xef\xbb\xbf", {}),
        (ONE + b"\n" + '{"id": "2", "reference": "é'.encode()[:-1], {"a 1": 50}),
    ],
)
def test_what_a_crash_left(tmp_path: Path, data: bytes, whole: dict[str, float]) -> None:
    (tmp_path / "judgments").mkdir()
    (tmp_path / "judgments" / "a.jsonl").write_bytes(data)
    assert scores(tmp_path) == whole
    JudgeFile(str(tmp_path), "a").append([action("3")])
    assert scores(tmp_path) == {**whole, "a 3": 50}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (ONE + b"\n" + TWO.replace(b"60", b"101"), 2),
        (ONE + b"\n" + TWO[:-1] + b', "remark": "good"}', 2),
        (ONE + b"\r" + TWO, 1),
        (ONE + b" " + TWO, 1),
        (b"[" + ONE + b", " + TWO + b"]", 1),
        ((ONE + b"\n" + TWO).decode().encode("utf-16"), 1),
        (ONE + b"\n2\tgood", 2),
        (bytes(9) + ONE, 1),
    ],
)
def test_what_is_no_judgment_stays_on_the_disk(tmp_path: Path, data: bytes, line: int) -> None:
    """Whatever it is, a process that died did not leave it."""
    path = tmp_path / "judgments" / "a.jsonl"
    path.parent.mkdir()
    path.write_bytes(data)
    for opens in (lambda: JudgeFile(str(tmp_path), "a"), lambda: read_judgments(str(tmp_path))):
        with pytest.raises(UserError, match=rf"a\.jsonl: line {line} is not a judgment"):
            opens()
    assert path.read_bytes() == data


@pytest.mark.parametrize("line", ["{", '{"id": "a", "score": 101}'])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    JudgeFile(str(tmp_path), "a").append([action("1")])
    with (tmp_path / "judgments" / "a.jsonl").open("a") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(UserError, match=r"a\.jsonl: line 2 is not a judgment"):
        read_judgments(str(tmp_path))


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: Patch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    file = JudgeFile(str(tmp_path), "a")
    file.append([action("1")])
    path = tmp_path / "judgments" / "a.jsonl"
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        file.append([action("2")])
    assert path.read_bytes() == before
    assert list(file.actions) == [("1", None)]


@pytest.mark.parametrize("name", ["", "a ", "../../x", ".a", "a\n", "a" * 61, "𠀀" * 51])
def test_names_that_are_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="cannot be a judge's name"):
        JudgeFile(str(tmp_path), name)
    assert list(tmp_path.iterdir()) == []


def test_one_judging_process_a_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run here"), judging(str(tmp_path)):
        pass
    (tmp_path / "run.json").write_text("{}")
    with (
        judging(str(tmp_path)),
        pytest.raises(UserError, match="another paraloom judge"),
        judging(str(tmp_path)),
    ):
        pass
    with judging(str(tmp_path)):
        assert read_judgments(str(tmp_path)) == []
        assert judgments_digest(str(tmp_path)) == ""
    with pytest.raises(UserError, match="need a run on this machine"), judging("s3://bucket/run"):
        pass

"""`paraloom publish` where `release` is of a run from elsewhere, or another process makes it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from paraloom.models.files import digest, open_lock
from paraloom.pipeline.publishing.provenance import files_of, write_sums
from paraloom.pipeline.publishing.release import alone, remove_temporary
from tests.pipeline.publishing.test_release import publish, said


@pytest.mark.parametrize("there", [True, False])
def test_a_link_out_of_the_run_is_refused(
    run: Path, tmp_path: Path, there: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere if there else tmp_path).mkdir(exist_ok=True)
    (run / "release").symlink_to(elsewhere)
    assert publish(run) == 2
    assert f"{run}/release: this link leads " in said(capsys)
    assert elsewhere.exists() == there and not [*elsewhere.glob("*")]
    assert publish(run, "--out", str(run / "release")) == 0  # the user's word
    assert (elsewhere / "SHA256SUMS").exists()


def forged(name: str, text: str) -> Callable[[Path], object]:
    """Adds or changes a file, and makes the checksums fit."""

    def harm(out: Path) -> None:
        (out / name).write_text(text)
        write_sums_again(out)

    return harm


def write_sums_again(out: Path) -> None:
    (out / "SHA256SUMS").unlink()
    write_sums(out)


def without_splits(out: Path) -> None:
    about = json.loads((out / "provenance/release.json").read_text())
    del about["splits"]
    forged("provenance/release.json", json.dumps(about))(out)


FORGED = {
    "a program": forged("evil.py", "print(1)"),
    "a card": forged("README.md", "other words"),
    "rows": forged("data/train-00000-of-00001.parquet", "none"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_release_is_made_again(
    run: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(run) == 0
    out = run / "release"
    before = {name: digest(out / name) for name in files_of(out)}
    FORGED[case](out)
    capsys.readouterr()
    assert publish(run) == 0
    assert "made and checked" in capsys.readouterr().out
    assert {name: digest(out / name) for name in files_of(out)} == before


def linked(out: Path) -> None:
    (out / "linked").symlink_to(out.parent / "manifest.json")
    write_sums_again(out)


def linked_sums(out: Path) -> None:
    (out / "SHA256SUMS").rename(out.parent / "sums")
    (out / "SHA256SUMS").symlink_to(out.parent / "sums")


def linked_folder(out: Path) -> None:
    (out / "data").rename(out.parent / "elsewhere")
    (out / "data").symlink_to(out.parent / "elsewhere")


def piped(name: str) -> Callable[[Path], object]:
    def harm(out: Path) -> None:
        (out / name).unlink()
        os.mkfifo(out / name)

    return harm


def deep(out: Path) -> None:
    (out / "data/deeper").mkdir()


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link": (linked, "release/linked: is not as"),
    "a link to the checksums": (linked_sums, "release/SHA256SUMS: is not as"),
    "a link to a folder": (linked_folder, "release/data: is not as"),
    "a pipe": (piped("README.md"), "release/README.md: is not as"),
    "a pipe of checksums": (piped("SHA256SUMS"), "release/SHA256SUMS: is not as"),
    "a pipe that tells": (piped("provenance/release.json"), "exists and is no release"),
    "nested": (forged("provenance/release.json", "[" * 200_000), "exists and is no release"),
    "no splits": (without_splits, "exists and is no release"),
    "deep": (deep, "release/data/deeper: is not as"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_no_release_has_is_one_line(
    run: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    harm, message = HOSTILE[case]
    assert publish(run) == 0
    harm(run / "release")
    capsys.readouterr()
    assert publish(run) == 2
    assert message in said(capsys)


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """Whatever part of a release it had come to, a licence's text too."""
    parts = ("data", "pairs", "provenance", "README.md", "LICENSE", "SHA256SUMS", "release")
    for number, part in enumerate(parts):
        (tmp_path / f".release.abcdef_{number}" / part).mkdir(parents=True)
    (tmp_path / ".release.mybackup" / "LICENSE").mkdir(parents=True)
    (tmp_path / ".release.mybackup" / "mine").mkdir()
    remove_temporary(tmp_path / "release")
    assert [path.name for path in tmp_path.iterdir()] == [".release.mybackup"]


def test_a_second_process_is_kept_out(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half = run / ".release.abcd_123" / "data"
    half.mkdir(parents=True)
    with alone(run / "release"):
        assert publish(run) == 2
        assert f"{run}/release: another paraloom publish is at work here" in said(capsys)
        assert half.exists()
    assert publish(run) == 0
    assert not [*run.glob(".release*")]


def test_a_lock_that_the_process_before_removed(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def open_late(path: Path) -> IO[bytes]:
        stream = open_lock(path)
        path.unlink()
        return stream

    monkeypatch.setattr("paraloom.pipeline.publishing.release.open_lock", open_late)
    assert publish(run) == 2
    assert "another paraloom publish is at work here" in said(capsys)


def test_a_run_that_is_not_there_gets_no_folder(tmp_path: Path) -> None:
    assert publish(tmp_path / "none") == 2
    assert not [*tmp_path.glob("none*")]


def test_a_licence_whose_name_no_file_can_have(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(run, "--license", "mine", "--license-link", "n" * 300) == 2
    assert "is no file and no address (https://…): File name too long" in said(capsys)

"""`paraloom publish --push` against a Hub on loopback.

It takes every file as a regular one. Large files travel by another protocol (Xet), which only the
Hub itself speaks; that part is `huggingface_hub`'s and is not tested here.
"""

from pathlib import Path

import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.publishing import files
from paraloom.pipeline.publishing.release import files_of
from tests.pipeline.publishing.hub_stand_in import Hub

REPO = "me/captions"


def push(run: Path, *options: str) -> int:
    return main(["publish", str(run), "--held-out", "0.1", "--repo", REPO, "--push", *options])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("paraloom: ")
    return line


def sent(hub: Hub) -> dict[str, bytes]:
    return {name: data for name, data in hub.repositories[REPO].items() if name != ".gitattributes"}


def release(run: Path) -> dict[str, bytes]:
    folder = run / "release"
    return {name: (folder / name).read_bytes() for name in files_of(folder)}


def test_every_file_is_sent_and_the_data_set_is_private(
    run: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push(run) == 0
    assert f"sent to {hub.endpoint}/datasets/{REPO}" in capsys.readouterr().out
    assert sent(hub) == release(run)
    assert hub.private == {REPO: True}
    assert hub.cards[-1] == (run / "release" / "README.md").read_text()


def test_a_dry_run_sends_nothing(run: Path, hub: Hub) -> None:
    assert push(run, "--dry-run") == 0
    assert main(["publish", str(run), "--held-out", "0.1"]) == 0
    assert hub.repositories == {} and hub.cards == []


def test_the_next_release_replaces_the_files(
    run: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 20)
    monkeypatch.setattr(files, "FILE_ROWS", 20)
    assert push(run) == 0
    assert len(sent(hub)) > 12
    hub.repositories[REPO]["data/notes.txt"] = b"mine"
    monkeypatch.setattr(files, "FILE_ROWS", 1000)
    assert any("test-" in name for name in sent(hub))
    assert push(run, "--held-out", "0") == 0
    assert sent(hub) == {**release(run), "data/notes.txt": b"mine"}
    assert not any("train-00001" in name or "test-" in name for name in sent(hub))


def test_what_others_sent_is_not_touched(
    run: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.repositories[REPO] = {"data/train-00000-of-00001.parquet": b"theirs"}
    assert push(run) == 2
    assert f"--repo {REPO}: holds files that `paraloom publish` did not send" in said(capsys)
    assert sent(hub) == {"data/train-00000-of-00001.parquet": b"theirs"}


@pytest.mark.parametrize("offline", [True, False])
def test_a_hub_that_does_not_take_it(
    run: Path,
    hub: Hub,
    offline: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    hub.refuse = 403
    assert push(run) == 2
    line = said(capsys)
    assert f"--push: {REPO} was not sent, or not all of it; the same command goes on" in line
    assert ("offline" if offline else "403") in line
    assert (run / "release").exists()


def test_no_token(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert push(run) == 2
    assert "there is no token of the Hub here" in said(capsys)
    assert not (run / "release").exists()

"""`paraloom publish --push` with a stand-in for `huggingface_hub.HfApi`."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.release import files
from paraloom.pipeline.release.release import files_of
from tests.run_helpers import Capsys, Patch, one_line

REPO = "me/captions"


class Hub:
    """The methods that a push needs; files by repository."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.refuses = ""

    def create_repo(self, repo: str, *, repo_type: str, private: bool, exist_ok: bool) -> str:
        if self.refuses:
            raise OSError(self.refuses)
        assert repo_type == "dataset" and exist_ok
        if repo not in self.repositories:
            self.repositories[repo], self.private[repo] = {".gitattributes": b""}, private
        return f"https://hub/datasets/{repo}"

    def list_repo_files(self, repo: str, *, repo_type: str) -> list[str]:
        return [*self.repositories[repo]]

    def upload_folder(
        self, *, folder_path: Path, repo_id: str, delete_patterns: list[str], **more: str
    ) -> None:
        assert more["repo_type"] == "dataset" and more["commit_message"]
        stay = {
            name: data
            for name, data in self.repositories[repo_id].items()
            if not any(fnmatch(name, pattern) for pattern in delete_patterns)
        }
        sent = {name: (folder_path / name).read_bytes() for name in files_of(folder_path)}
        self.repositories[repo_id] = {**stay, **sent}


@pytest.fixture
def hub(monkeypatch: Patch) -> Hub:
    """An empty Hub."""
    found = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", lambda **_: found)
    return found


def push(run: Path, *options: str) -> int:
    return main(["publish", str(run), "--held-out", "0.1", "--repo", REPO, "--push", *options])


def sent(hub: Hub) -> dict[str, bytes]:
    return {name: data for name, data in hub.repositories[REPO].items() if name != ".gitattributes"}


def release(run: Path) -> dict[str, bytes]:
    folder = run / "release"
    return {name: (folder / name).read_bytes() for name in files_of(folder)}


def test_every_file_is_sent_and_the_set_is_private(run: Path, hub: Hub, capsys: Capsys) -> None:
    assert push(run, "--dry-run") == 0
    assert hub.repositories == {}
    assert push(run) == 0
    assert f"sent to https://hub/datasets/{REPO}" in capsys.readouterr().out
    assert sent(hub) == release(run)
    assert hub.private == {REPO: True}


def test_the_next_release_replaces_the_files(run: Path, hub: Hub, monkeypatch: Patch) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 20)
    monkeypatch.setattr(files, "FILE_ROWS", 20)
    assert push(run) == 0
    assert len(sent(hub)) > 12 and any("test-" in name for name in sent(hub))
    hub.repositories[REPO]["data/notes.txt"] = b"mine"
    hub.repositories[REPO]["triplets/train-00000-of-00001.parquet"] = b"no longer asked for"
    monkeypatch.setattr(files, "FILE_ROWS", 1000)
    assert push(run, "--held-out", "0") == 0
    assert sent(hub) == {**release(run), "data/notes.txt": b"mine"}
    assert not any("train-00001" in name or "test-" in name for name in sent(hub))


def test_a_push_that_is_refused(run: Path, hub: Hub, capsys: Capsys) -> None:
    hub.repositories[REPO] = {"data/train-00000-of-00001.parquet": b"theirs"}
    assert push(run) == 2
    assert f"--repo {REPO}: holds files that `paraloom publish` did not send" in one_line(capsys)
    assert sent(hub) == {"data/train-00000-of-00001.parquet": b"theirs"}
    hub.refuses = "403 Forbidden\nFor more information see the documentation"
    assert push(run) == 2
    line = one_line(capsys)
    assert f"--push: {REPO} was not sent, or not all of it; the same command goes on" in line
    assert "403 Forbidden For more" in line
    assert (run / "release").exists()

import hashlib
import os
from pathlib import Path

import pytest

from paraloom.beam_jobs.io import digests, storage
from paraloom.models.errors import UserError


@pytest.fixture(params=["local", "bucket", "google_bucket"])
def path(request: pytest.FixtureRequest, empty_cache: None, tmp_path: Path) -> str:
    """The path of an input file."""
    place = tmp_path if request.param == "local" else request.getfixturevalue(request.param)
    return storage.join(str(place), "train.en")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read for their digest; what was changed a moment ago counts as old."""
    paths: list[str] = []
    whole = storage.file_digest

    def recorded(path: str) -> str:
        paths.append(path)
        return whole(path)

    monkeypatch.setattr(storage, "file_digest", recorded)
    monkeypatch.setattr(digests, "_SETTLED", -10.0)
    return paths


def expected(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_file_is_read_once_until_it_changes(path: str, read: list[str]) -> None:
    for data, times in ((b"one", 1), (b"two", 2), (b"three", 3)):  # of one length, and of another
        storage.write_bytes(path, data)
        assert [digests.file_digest(path) for _ in range(3)] == [expected(data)] * 3
        assert len(read) == times


@pytest.mark.parametrize("how", ["in place", "replaced"])
def test_times_that_were_set_back_do_not_hide_a_change(
    tmp_path: Path, read: list[str], how: str, empty_cache: None
) -> None:
    file = tmp_path / "train.en"
    file.write_bytes(b"one")
    assert digests.file_digest(str(file)) == expected(b"one")
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    if how == "in place":
        file.write_bytes(b"two")
        os.utime(file, ns=times)
    else:
        (tmp_path / "new").write_bytes(b"two")
        os.utime(tmp_path / "new", ns=times)
        (tmp_path / "new").replace(file)
    assert file.stat().st_mtime_ns == times[1]
    assert digests.file_digest(str(file)) == expected(b"two")


def test_a_file_that_changes_while_it_is_read_is_not_remembered(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch, empty_cache: None
) -> None:
    """Nor is one that changed a moment ago: it may change again with the same times."""
    file = tmp_path / "train.en"
    file.write_bytes(b"one")
    whole = storage.file_digest

    def grows(path: str) -> str:
        found = whole(path)
        file.write_bytes(b"more")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(storage, "file_digest", grows)
        digests.file_digest(str(file))
    monkeypatch.setattr(digests, "_SETTLED", 2.0)
    assert [digests.file_digest(str(file)) for _ in range(2)] == [expected(b"more")] * 2
    assert len(read) == 3


def test_a_cache_that_cannot_be_written(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "train.en").write_bytes(b"one")
    assert digests.file_digest(str(tmp_path / "train.en")) == expected(b"one")


def test_a_file_that_is_not_there(path: str) -> None:
    with pytest.raises(UserError, match=r"train\.en: cannot be read"):
        digests.file_digest(path)

"""Files and folders that are complete or absent, when a disk is full; locks."""

import errno
import fcntl
import hashlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import save_file

from paraloom.models import files
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file, atomic_folder, check_writable, locked
from tests.run_helpers import ROOT, Patch, calls_of
from tests.small_encoder import small_encoder


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("name", "size"), [("word-avg", 200), ("word-avg", 20_000), ("gran", 200)]
)  # the weights, or the tokeniser
def test_a_full_disk_while_an_encoder_is_saved(tmp_path: Path, name: str, size: int) -> None:
    model = small_encoder((f"w{number}" for number in range(4000)), name, dim=2)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "former").touch()
    with small_files(size), pytest.raises(UserError) as error:
        model.save(tmp_path / "model")
    assert str(error.value).startswith(f"{tmp_path}/model: cannot be written (")
    assert "File too large" in str(error.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "former"]


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="a bug"), atomic_folder(tmp_path / "a"):
        raise RuntimeError("a bug")
    with pytest.raises(UserError, match="b is damaged"), atomic_folder(tmp_path / "a"):
        raise UserError("b is damaged (os error 5)")


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


KILLED = """
import os, signal, sys
from pathlib import Path
from paraloom.models import files
from paraloom.models.files import atomic_folder
replace, path = Path.replace, Path(sys.argv[1])
def killed(self, target):
    moved = replace(self, target) if sys.argv[2] != "0" else None
    sys.argv[2] = str(int(sys.argv[2]) - 1)
    return moved if int(sys.argv[2]) >= 0 else os.kill(os.getpid(), signal.SIGKILL)
Path.replace, files._exchanged = killed, lambda *paths: False
with atomic_folder(path) as new:
    (new / "a").write_text("new")
"""


@pytest.mark.parametrize(
    ("replaced", "found"), [(0, "former"), (1, "new"), (2, "new")]
)  # before the first rename, between both, after them
def test_a_folder_that_was_being_replaced(tmp_path: Path, replaced: int, found: str) -> None:
    path = tmp_path / "release[1]"
    path.mkdir()
    (path / "a").write_text("former")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", KILLED, str(path), str(replaced)]
    assert subprocess.run(arguments, env=environment).returncode == -signal.SIGKILL * (replaced < 2)
    assert path.exists() == (replaced != 1)
    assert bool(leftovers(tmp_path)) == (replaced < 2)
    with pytest.raises(RuntimeError), atomic_folder(path):
        assert (path / "a").read_text() == found
        assert len(leftovers(tmp_path)) == 1
        raise RuntimeError("another fault")
    assert ((path / "a").read_text(), leftovers(tmp_path)) == (found, [])


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """A folder that is to be replaced."""
    (tmp_path / "former").mkdir()
    (tmp_path / "former" / "a").write_text("former")
    return tmp_path / "former"


def test_there_is_a_folder_at_every_moment(former: Path, monkeypatch: Patch) -> None:
    (former.parent / "other").mkdir()
    if not files._exchanged(former.parent / "other", former):
        pytest.skip("this file system exchanges no folders")
    assert files._exchanged(former.parent / "other", former)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", None)
        with atomic_folder(former) as new:
            (new / "a").write_text("new")
    former.rename(former.parent / "elsewhere")
    former.symlink_to("elsewhere")
    with atomic_folder(former) as new:
        (new / "a").write_text("newer")
    assert (former / "a").read_text() == "newer" and not former.is_symlink()
    assert (former.parent / "elsewhere" / "a").read_text() == "new"
    assert leftovers(former.parent) == []


@pytest.mark.parametrize("fails", [OSError(errno.EIO, "no disk"), KeyboardInterrupt()])
def test_an_error_between_two_renames(
    former: Path, monkeypatch: Patch, fails: BaseException
) -> None:
    replace, moved = Path.replace, []

    def second_fails(self: Path, target: Path) -> Path:
        moved.append(target)
        if len(moved) == 2:
            raise fails
        return replace(self, target)

    monkeypatch.setattr(files, "_exchanged", lambda *paths: False)
    monkeypatch.setattr(Path, "replace", second_fails)
    with pytest.raises((UserError, KeyboardInterrupt)), atomic_folder(former) as new:
        (new / "a").write_text("new")
    assert [path.name for path in moved] == ["former.former", "former", "former"]
    assert ((former / "a").read_text(), leftovers(former.parent)) == ("new", [])


def test_a_disk_that_fails_between_two_renames(former: Path, monkeypatch: Patch) -> None:
    replace = Path.replace

    def fails(self: Path, target: Path) -> Path:
        if target == former:
            raise OSError(errno.EIO, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(files, "_exchanged", lambda *paths: False)
    with monkeypatch.context() as patch, pytest.raises(UserError, match="Input/output error"):
        patch.setattr(Path, "replace", fails)
        with atomic_folder(former) as new:
            (new / "a").write_text("new")
    assert not former.exists()
    files.finish_killed(former)
    assert ((former / "a").read_text(), leftovers(former.parent)) == ("new", [])


def test_hidden_folders_of_users_stay(former: Path) -> None:
    for name in ("20261127", "backup01", "abcdef0", "abcdef012"):
        (former.parent / f".former.{name}").mkdir()
    (former.parent / ".former.abcdef01").write_text("a file")
    (former.parent / ".formerly.abcdef01").mkdir()
    before = leftovers(former.parent)
    with atomic_folder(former):
        pass
    assert leftovers(former.parent) == before
    assert not any(files.temporary_path(former).name[-8:].isdigit() for _ in range(500))


def test_nothing_of_a_living_writer_goes(tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / ".model.training").mkdir()
    (tmp_path / ".model.abcdef01").mkdir()  # of a process that was killed
    with atomic_folder(tmp_path / "model") as first:
        (first / "a").write_text("first")
        with atomic_folder(tmp_path / "model") as second:
            (second / "a").write_text("second")
        assert (tmp_path / "model" / "a").read_text() == "second"
        monkeypatch.setenv("PARALOOM_LOCKS", "off")
        with atomic_folder(tmp_path / "model"):
            assert (first / "a").read_text() == "first"
    assert (tmp_path / "model" / "a").read_text() == "first"
    assert leftovers(tmp_path) == [".model.training"]


def test_the_umask_decides_who_may_read_a_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch(0o600)
    for umask, mode in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(umask)
        try:
            with atomic_folder(tmp_path / "model") as folder:
                save_file({"a": torch.zeros(3)}, folder / "head.safetensors")
                (folder / "link").symlink_to(tmp_path / "elsewhere")
        finally:
            os.umask(before)
        assert (tmp_path / "model/head.safetensors").stat().st_mode & 0o777 == mode
        assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o600


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: Patch) -> None:
    path, flushed = tmp_path / "file", []

    def flush(descriptor: int) -> None:
        flushed.append((os.fstat(descriptor).st_ino, path.exists()))

    monkeypatch.setattr(os, "fsync", flush)
    with atomic_file(path) as temporary:
        temporary.write_text("new")
    assert flushed == [(path.stat().st_ino, False)]


def test_a_shared_lock_delays_a_writer_and_an_exclusive_one_stops_it(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.touch()
    stream = path.open()
    fcntl.flock(stream, fcntl.LOCK_SH)  # as `paraloom status` does for a moment
    Timer(0.1, stream.close).start()
    with locked(path, "busy"), pytest.raises(UserError, match="busy"), locked(path, "busy"):
        pytest.fail("two processes have the lock")


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: Patch) -> None:
    error_of_system = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=error_of_system))
    path = tmp_path / "run" / ".lock"
    with pytest.raises(UserError) as error, locked(path, "busy"):
        pytest.fail("the work began")
    assert str(error.value).startswith(f"{path}: cannot be locked ({os.strerror(errno.ENOLCK)}); ")
    assert "PARALOOM_LOCKS=off" in str(error.value)
    monkeypatch.setenv("PARALOOM_LOCKS", "off")
    with locked(path, "busy"), locked(path):
        pass


def test_a_special_file_or_a_folder_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for out in (tmp_path / "pipe", tmp_path / "link"):
        message = rf"^{out}: cannot be written \(it is not a regular file; choose another path\)$"
        with pytest.raises(UserError, match=message):
            check_writable(out)
        for writes in (atomic_file, atomic_folder):
            with pytest.raises(UserError, match=message), writes(out):
                pytest.fail("the work began")
        assert out.is_fifo()
    with pytest.raises(UserError, match=r"^.*: cannot be written \(Is a directory\)$"):
        check_writable(tmp_path)


def test_a_file_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("precious")
    message = r"pairs\.tsv: cannot be written \(Not a directory\)$"
    with pytest.raises(UserError, match=message), atomic_folder(tmp_path / "pairs.tsv"):
        pytest.fail("the work began")
    assert (tmp_path / "pairs.tsv").read_text() == "precious"


def test_a_file_takes_the_place_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "to-file").symlink_to("victim")
    (tmp_path / "dangling").symlink_to("new")
    for name in ("to-file", "dangling"):
        with atomic_file(tmp_path / name) as temporary:
            temporary.write_text("new")
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "new").exists()


def test_what_is_hidden_does_not_count(tmp_path: Path) -> None:
    """Such as the cache of the Hub's client, which has files with other names.

    Python's cache changes when a package, such as a pipeline of spaCy, is installed again.
    """
    (tmp_path / "config.json").write_text("{}")
    before = files.digest(tmp_path)
    (tmp_path / ".cache" / "huggingface").mkdir(parents=True)
    (tmp_path / "__pycache__").mkdir()
    for name in (".gitattributes", ".cache/huggingface/config.json.metadata", "__pycache__/a.pyc"):
        (tmp_path / name).write_text("hidden")
    assert files.digest(tmp_path) == before


def test_a_large_file_of_a_folder_is_read_once(tmp_path: Path, monkeypatch: Patch) -> None:
    """Until it changes, even to the same size and time; a small one is read again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "_SETTLED", -10.0)  # what changed a moment ago counts as old
    folder = tmp_path / "model"
    folder.mkdir()
    large, small = folder / "model.bin", folder / "config.json"
    large.write_bytes(bytes(1 << 20))
    small.write_text("{}")
    streams = calls_of(monkeypatch, hashlib, "file_digest")
    first = files.digest(folder)
    assert files.digest(folder) == first
    assert [stream.name for stream in streams] == [str(small), str(large), str(small)]
    moved = folder.rename(tmp_path / "moved")
    assert files.digest(moved) == first
    assert [stream.name for stream in streams].count(str(moved / large.name)) == 1
    times = (moved / large.name).stat()
    (moved / large.name).write_bytes(b"\1" * (1 << 20))
    os.utime(moved / large.name, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert files.digest(moved) != first

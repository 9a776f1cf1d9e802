"""Folders that are complete or absent, when a disk is full; locks and logs that are links."""

import errno
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import pytest
import torch
from safetensors.torch import save_file

from paraloom.models.embeddings.encoders import build_encoder
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.training.checkpoint import TrainingFolder
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError
from paraloom.models.files import (
    atomic_file,
    atomic_folder,
    check_writable,
    lock,
    locked_folder,
    open_lock,
    open_log,
)


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def encoder(name: str, words: int) -> SentenceEncoder:
    vocabulary = Vocabulary([f"w{number}" for number in range(words)])
    options = EmbeddingOptions(model=name, dim=2)
    built = build_encoder(options, {"words": torch.zeros(len(vocabulary), 2)})
    return SentenceEncoder(built, {"words": vocabulary}, options)


@pytest.mark.parametrize(
    ("name", "size"),
    [("word-avg", 200), ("word-avg", 20_000), ("gran", 200)],
)  # the weights, or the tokeniser
def test_a_full_disk_while_an_encoder_is_saved(tmp_path: Path, name: str, size: int) -> None:
    model = encoder(name, 4000)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "former").touch()
    with small_files(size), pytest.raises(UserError) as error:
        model.save(tmp_path / "model")
    assert str(error.value) == f"{tmp_path}/model: cannot be written (File too large)"
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "former"]


def test_a_full_disk_while_a_checkpoint_is_saved(tmp_path: Path) -> None:
    folder = TrainingFolder(tmp_path / "training", {})
    with small_files(200), pytest.raises(UserError, match=r"step-3: cannot be written \(File too"):
        folder.save(3, {}, {"a": torch.zeros(1000)})
    assert folder.last() is None


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="a bug"), atomic_folder(tmp_path / "a"):
        raise RuntimeError("a bug")
    with pytest.raises(UserError, match="b is damaged"), atomic_folder(tmp_path / "a"):
        raise UserError("b is damaged (os error 5)")


def test_everybody_may_read_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch(0o600)
    with atomic_folder(tmp_path / "model") as folder:
        save_file({"a": torch.zeros(3)}, folder / "head.safetensors")
        (folder / "run.sh").touch(0o700)
        (folder / "link").symlink_to(tmp_path / "elsewhere")
    modes = {path.name: path.lstat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert (modes["head.safetensors"], modes["run.sh"]) == (0o644, 0o744)
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def private() -> Iterator[None]:
    """A umask that lets nobody else read new files."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.usefixtures("private")
def test_the_umask_decides_on_new_files(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "file") as temporary:
        temporary.touch()
    with atomic_folder(tmp_path / "folder") as folder:
        save_file({"a": torch.zeros(3)}, folder / "head.safetensors")
    found = [tmp_path / "file", tmp_path / "folder", tmp_path / "folder" / "head.safetensors"]
    assert [mode(path) for path in found] == [0o600, 0o700, 0o600]


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flushed = tmp_path / "file", []

    def flush(descriptor: int) -> None:
        flushed.append((os.fstat(descriptor).st_ino, path.exists()))

    monkeypatch.setattr(os, "fsync", flush)
    with atomic_file(path) as temporary:
        temporary.write_text("new")
    assert flushed == [(path.stat().st_ino, False)]


def test_what_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    for bits in (0o600, 0o664):
        file, folder = tmp_path / f"file{bits}", tmp_path / f"folder{bits}"
        file.touch()
        file.chmod(bits)
        folder.mkdir()
        folder.chmod(bits | 0o111)
        with atomic_file(file) as temporary:
            assert mode(temporary) == 0o600  # nobody else reads what is half written
            temporary.unlink()
            temporary.write_text("new")  # as some libraries do
        with atomic_folder(folder) as temporary:
            (temporary / "new").touch()
        assert (mode(file), mode(folder)) == (bits, bits | 0o111)
        assert file.read_text() == "new" and (folder / "new").exists()


def test_a_folder_does_not_have_the_mode_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "model").touch(0o600)
    with atomic_folder(tmp_path / "model"):
        pass
    assert mode(tmp_path / "model") & 0o700 == 0o700


@pytest.mark.parametrize("opens", [open_lock, open_log])
def test_a_link_is_neither_followed_nor_emptied(
    tmp_path: Path, opens: Callable[[Path], IO[Any]]
) -> None:
    victim, link, dangling = (tmp_path / name for name in ("victim", "link", "dangling"))
    victim.write_text("precious")
    link.symlink_to(victim)
    dangling.symlink_to(tmp_path / "new")
    for path in (link, dangling):
        with pytest.raises(UserError) as error:
            opens(path)
        assert str(error.value) == f"{path}: cannot be written (it is a symbolic link)"
    assert victim.read_text() == "precious"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("opens", "why"),
    [(open_lock, "it is not a regular file"), (open_log, "No such device or address")],
)
def test_a_pipe_does_not_hang(tmp_path: Path, opens: Callable[[Path], IO[Any]], why: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError) as error:
        opens(tmp_path / "pipe")
    assert str(error.value) == f"{tmp_path}/pipe: cannot be written ({why})"


def test_a_folder_in_the_place_of_a_lock(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^.*: cannot be written \(Is a directory\)$"):
        open_lock(tmp_path)


def test_the_lock_of_a_folder_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "victim")
    with (
        pytest.raises(UserError, match=r"/run/\.lock: cannot be written \(it is a symbolic link"),
        locked_folder(tmp_path / "run", "run", "busy"),
    ):
        pass
    assert (tmp_path / "victim").read_text() == "precious"


def refuse(code: int) -> Callable[..., NoReturn]:
    def refusing(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    return refusing


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EPERM])
def test_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr("fcntl.flock", refuse(code))
    path = tmp_path / "run" / ".lock"
    with pytest.raises(UserError) as error, locked_folder(tmp_path / "run", "run", "busy"):
        pytest.fail("the work began")
    assert str(error.value).startswith(f"{path}: cannot be locked ({os.strerror(code)}); ")
    assert "PARALOOM_LOCKS=off" in str(error.value)
    with pytest.raises(UserError, match="PARALOOM_LOCKS=off"), open_lock(path) as stream:
        lock(stream, path)
    monkeypatch.setenv("PARALOOM_LOCKS", "off")
    with locked_folder(tmp_path / "run", "run", "busy"), open_lock(path) as stream:
        lock(stream, path)


def test_two_at_a_time(tmp_path: Path) -> None:
    with (
        locked_folder(tmp_path / "run", "run", "busy"),
        pytest.raises(UserError, match="busy"),
        locked_folder(tmp_path / "run", "run", "busy"),
    ):
        pytest.fail("the work began")


def test_a_file_system_without_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for name in ("chmod", "fchmod", "lchmod"):
        monkeypatch.setattr(os, name, refuse(errno.EPERM), raising=False)
    with atomic_file(tmp_path / "file") as temporary:
        temporary.write_text("new")
    with atomic_folder(tmp_path / "folder") as temporary:
        (temporary / "file").write_text("new")
    assert (tmp_path / "file").read_text() == (tmp_path / "folder/file").read_text() == "new"


def test_logs_are_appended_to(tmp_path: Path) -> None:
    for line in ("one\n", "two\n"):
        with open_log(tmp_path / "log") as stream:
            stream.write(line)
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_nothing_is_put_among_the_devices() -> None:
    """/dev/stdout is a link; if it leads to a file, that link would be replaced."""
    for name in ("stdout", "new"):
        with pytest.raises(UserError, match=f"^/dev/{name}: cannot be written"):
            check_writable(Path("/dev", name))


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")


@pytest.mark.parametrize("make", [make_pipe, make_device])
@pytest.mark.parametrize("linked", [False, True])
def test_a_special_file_is_not_replaced(
    tmp_path: Path, make: Callable[[Path], None], linked: bool
) -> None:
    special = out = tmp_path / "special"
    make(special)
    if linked:
        out = tmp_path / "link"
        out.symlink_to(special)
    before = out.lstat().st_mode
    message = f"{out}: cannot be written (it is not a regular file); choose another path"
    with pytest.raises(UserError) as checked:
        check_writable(out)
    assert str(checked.value) == message
    for writes in (atomic_file, atomic_folder):
        with pytest.raises(UserError) as written, writes(out):
            pytest.fail("the work began")
        assert str(written.value) == message
    assert out.lstat().st_mode == before and not special.is_file()


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^.*: cannot be written \(Is a directory\)$"):
        check_writable(tmp_path)


def test_a_path_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="cannot be written"), atomic_file("."):
        pass


def test_a_file_takes_the_place_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "to-file").symlink_to("victim")
    (tmp_path / "dangling").symlink_to("new")
    for name in ("to-file", "dangling"):
        check_writable(tmp_path / name)
        with atomic_file(tmp_path / name) as temporary:
            temporary.write_text("new")
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "new").exists()

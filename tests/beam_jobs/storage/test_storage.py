"""Files on disk and in object stores, their copies and digests, and the answers of generators."""

import gc
import hashlib
import io
import os
import random
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pytest
from google.api_core.exceptions import TooManyRequests
from moto.s3.models import s3_backends

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.storage import clients, remote
from paraloom.beam_jobs.transforms import answer_files
from paraloom.beam_jobs.transforms.answer_files import AnswerFiles
from paraloom.models import files
from paraloom.models.chat.answers import Answer
from paraloom.models.errors import UserError
from paraloom.models.files import STAGE_RECORD, digest
from tests.google_store import GoogleStore
from tests.run_helpers import Patch, calls_of

Write = Callable[[str, bytes], object]


@pytest.fixture
def folder(place: str) -> str:
    return storage.join(place, "run")


def test_what_is_written_is_read(folder: str) -> None:
    path, copy = (storage.join(folder, "a", name) for name in ("b.gz", "c"))
    data = b"\x1f\x8bnot really" * 1000  # nothing decompresses it on the way
    assert not storage.exists(path)
    with pytest.raises(storage.MissingError):
        storage.size(path)
    storage.write_bytes(path, data)
    assert storage.exists(path)
    assert storage.read_bytes(path) == data
    assert storage.size(path) == len(data)
    assert storage.file_digest(path) == hashlib.sha256(data).hexdigest()
    storage.copy(path, copy)
    assert storage.names(storage.join(folder, "a")) == ["b.gz", "c"]
    storage.write_bytes(path, b"new")
    assert (storage.read_bytes(path), storage.read_bytes(copy)) == (b"new", data)
    storage.copy(path, copy)
    assert storage.read_bytes(copy) == b"new"
    storage.remove(path)
    storage.remove(path)
    assert not storage.exists(path)


def test_names_are_sorted_and_a_missing_folder_has_none(folder: str) -> None:
    assert storage.names(storage.join(folder, "nowhere")) == []
    assert storage.sizes(storage.join(folder, "nowhere")) == {}
    for name in ("b", "a", "c"):
        storage.write_bytes(storage.join(folder, name), b"x" * ord(name))
    storage.write_bytes(storage.join(folder, "below", "d"), b"x")
    if not storage.is_remote(folder):
        Path(folder, ".hidden").touch()
    assert storage.names(folder) == ["a", "b", "c"]
    assert storage.sizes(folder) == {"a": 97, "b": 98, "c": 99}


def test_more_names_than_a_store_lists_at_once(bucket: str) -> None:
    name, _, prefix = bucket.removeprefix("s3://").partition("/")
    for number in range(1001):  # into moto itself, which is in this process
        s3_backends["123456789012"]["aws"].put_object(name, f"{prefix}/{number:04}", b"x")
    assert storage.names(bucket) == [f"{number:04}" for number in range(1001)]


def test_an_interrupt_ends_the_digest_of_a_large_file(tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / "large").write_bytes(b"x")
    reads, ended = threading.Event(), threading.Event()

    class Endless(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            reads.set()
            chunk = b"" if ended.wait(0.01) else b"x"
            storage.several(len, ["a"])  # calls in other threads do not lose the interrupt
            return chunk

    monkeypatch.setattr(storage, "open_file", lambda path: Endless())

    def interrupt() -> None:
        reads.wait(60)
        time.sleep(0.5)  # until the main thread waits
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    stop = threading.Timer(30, ended.set)
    stop.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            storage.several(storage.file_digest, [str(tmp_path / "large")])
    finally:
        signal.signal(signal.SIGINT, before)
        stop.cancel()
    assert not ended.is_set() and not storage._interrupted.is_set()


@pytest.mark.parametrize("size", [4, 17 << 20])  # bytes: a part of the first piece, and more
def test_a_stream_that_fails_leaves_what_was_there(folder: str, size: int) -> None:
    path = storage.join(folder, "corpus.tsv.gz")
    storage.write_bytes(path, b"old")
    with pytest.raises(KeyboardInterrupt), storage.writing(path) as stream:
        stream.write(bytes(size))
        raise KeyboardInterrupt
    gc.collect()  # a stream that is let go closes itself
    assert storage.read_bytes(path) == b"old"
    assert storage.names(folder) == ["corpus.tsv.gz"]


def test_a_large_stream_and_a_part_of_it(folder: str) -> None:
    path = storage.join(folder, "corpus.tsv.gz")
    data = random.Random(1).randbytes(17 << 20)
    with storage.writing(path) as stream:
        for start in range(0, len(data), 1 << 20):
            assert stream.write(data[start : start + (1 << 20)]) == 1 << 20
    with storage.open_file(path) as stream:
        assert stream.seek(-(9 << 20), os.SEEK_END) == 8 << 20
        assert stream.read(5) + stream.read() == data[8 << 20 :]
        stream.seek(1)
        assert (stream.read(3), stream.tell()) == (data[1:4], 4)


def test_patterns(stored: tuple[str, list[str]]) -> None:
    bucket, _ = stored
    for name in ("a/x.tsv", "a/y.tsv", "a/b/z.tsv", "a2"):
        storage.write_bytes(f"{bucket}/{name}", b"x")

    def names(pattern: str) -> list[str]:
        found = storage.match(f"{bucket}/{pattern}")
        return [entry.path.removeprefix(f"{bucket}/") for entry in found]

    assert names("a/*.tsv") == ["a/x.tsv", "a/y.tsv"]
    assert names("a/**") == ["a/b/z.tsv", "a/x.tsv", "a/y.tsv"]
    assert names("a*") == names("a2") == ["a2"]
    assert names("b*") == []


def test_one_request_an_object(google: GoogleStore, google_bucket: str) -> None:
    path = f"{google_bucket}/a/x"
    for operation in (
        lambda: storage.write_bytes(path, b"y"),
        lambda: storage.read_bytes(path),
        lambda: storage.exists(path),
        lambda: storage.size(path),
        lambda: storage.names(google_bucket),
        lambda: storage.remove(path),
        lambda: storage.remove(path),
        lambda: storage.read_bytes(path),
    ):
        before = google.requests.total()
        with suppress(storage.MissingError):
            operation()
        time.sleep(0.02)  # Google's client asks for the bucket in a thread of its own
        assert google.requests.total() == before + 1


def test_a_bucket_that_is_not_there_is_named(bucket: str) -> None:
    with pytest.raises(UserError, match=r"^s3://nobody/x: cannot be written \(.*NoSuchBucket") as e:
        storage.write_bytes("s3://nobody/x", b"x")
    assert "\n" not in str(e.value)


def test_missing_is_not_unreadable(google: GoogleStore, folder: str, monkeypatch: Patch) -> None:
    path = storage.join(folder, "x")
    storage.write_bytes(path, b"x")
    with pytest.raises(storage.MissingError, match="y: cannot be read") as missing:
        storage.read_bytes(storage.join(folder, "y"))
    assert "\n" not in str(missing.value)
    for read in (storage.open_file, storage.known_digest):
        with pytest.raises(storage.MissingError):
            read(storage.join(folder, "y"))
    if not storage.is_remote(folder):
        return

    def fails(*args: object) -> NoReturn:
        raise TooManyRequests("Slow Down")  # type: ignore[no-untyped-call]

    monkeypatch.setattr(type(clients.store(path)[0]), "read", fails)
    with pytest.raises(UserError, match=r"x: cannot be read \(Slow Down\)") as error:
        storage.read_bytes(path)
    assert not isinstance(error.value, storage.MissingError)


def stream(path: str, data: bytes) -> None:
    with storage.writing(path) as file:
        file.write(data)


writers = pytest.mark.parametrize("write", [storage.write_bytes, stream])


@writers
def test_a_file_in_place_of_a_folder_and_the_other_way_round(tmp_path: Path, write: Write) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"file/part.parquet: cannot be written \(.+\)$"):
        write(str(tmp_path / "file" / "part.parquet"), b"x")
    for read in (storage.open_file, storage.read_bytes):
        with pytest.raises(UserError, match=r": cannot be read \(Is a directory\)$"):
            read(str(tmp_path))


@writers
def test_a_full_disk_is_one_line_and_leaves_nothing(full_disk: Path, write: Write) -> None:
    with pytest.raises(UserError, match=r"part.parquet: cannot be written \(No space left"):
        write(str(full_disk / "part.parquet"), bytes(100_000))
    assert list(full_disk.iterdir()) == []


def test_temporary_files_of_a_killed_process_go(tmp_path: Path) -> None:
    kept = ["part-00000.parquet", ".lock", ".gitignore", ".notes.markdown"]
    for name in [
        *kept,
        *(files.temporary_path(Path(of)).name for of in ("part.parquet", "00000-0")),
    ]:
        (tmp_path / name).touch()
    storage.remove_temporary(str(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(kept)


@pytest.fixture
def read(monkeypatch: Patch) -> list[str]:
    """The files that were read for their digest; what was changed a moment ago counts as old."""
    monkeypatch.setattr(files, "_SETTLED", -10.0)
    return calls_of(monkeypatch, storage, "file_digest")


def expected(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_file_is_read_once_until_it_changes(place: str, read: list[str]) -> None:
    path = storage.join(place, "train.en")
    for data, times in ((b"one", 1), (b"two", 2), (b"three", 3)):  # of one length, and of another
        storage.write_bytes(path, data)
        assert [storage.known_digest(path) for _ in range(3)] == [expected(data)] * 3
        assert len(read) == times


def test_times_that_were_set_back_hide_no_change(
    tmp_path: Path, read: list[str], empty_cache: None
) -> None:
    file = tmp_path / "train.en"
    file.write_bytes(b"one")
    assert storage.known_digest(str(file)) == expected(b"one")
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_bytes(b"two")
    os.utime(file, ns=times)
    assert file.stat().st_mtime_ns == times[1]
    assert storage.known_digest(str(file)) == expected(b"two")


def test_a_file_that_changes_while_it_is_read_is_not_remembered(
    tmp_path: Path, read: list[str], monkeypatch: Patch, empty_cache: None
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
        storage.known_digest(str(file))
    monkeypatch.setattr(files, "_SETTLED", 2.0)
    assert [storage.known_digest(str(file)) for _ in range(2)] == [expected(b"more")] * 2
    assert len(read) == 3


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


def test_a_killed_attempt_leaves_all_but_the_last_answers(bucket: str, monkeypatch: Patch) -> None:
    files = AnswerFiles(bucket, "part-0")
    add(files, range(450))
    assert len(AnswerFiles(bucket, "part-0").read()) == 400
    monkeypatch.setattr(answer_files, "_SECONDS", 0.0)  # they have waited long enough
    add(files, range(450, 451))
    assert len(AnswerFiles(bucket, "part-0").read()) == 451


Stored = tuple[str, list[str]]


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A model, as libraries write one: files, a folder, and a hidden cache."""
    made = tmp_path / "model"
    for name, text in {
        "a.txt": "a",
        "deep/b.bin": "b" * 1000,
        ".cache/c": "not part of it",
        "deep/.cache/d": "nor this",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def test_a_folder_there_and_back_replaces_the_one_before(
    stored: Stored, model_folder: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    bucket, _ = stored
    storage.write_bytes(f"{bucket}/model/old.txt", b"old")
    storage.write_bytes(f"{bucket}/model2/kept.txt", b"kept")
    made = digest(model_folder)
    for _ in range(2):  # the second time, the objects stay the same
        new = tmp_path / "new"
        shutil.copytree(model_folder, new)
        remote.publish(new, f"{bucket}/model")
        assert not new.exists()
    assert [e.path for e in storage.match(f"{bucket}/**")] == [
        f"{bucket}/model/a.txt",
        f"{bucket}/model/deep/b.bin",
        f"{bucket}/model2/kept.txt",
    ]
    first = remote.localise(f"{bucket}/model")
    assert digest(first) == made
    storage.write_bytes(f"{bucket}/model/{STAGE_RECORD}", b"{}")  # as a run writes it afterwards
    assert remote.localise(f"{bucket}/model") == first
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    copy = remote.localise(f"{bucket}/model/")
    assert (digest(copy), copy != first) == (made, True)
    assert Path(copy).name == "model"


def test_a_copy_is_made_once_until_its_source_changes(stored: Stored, monkeypatch: Patch) -> None:
    bucket, _ = stored
    path = f"{bucket}/vectors.txt"
    storage.write_bytes(path, b"a 1")
    copy = remote.localise(path)
    assert Path(copy).read_text() == "a 1"
    with monkeypatch.context() as patch:
        patch.setattr(storage, "open_file", None)
        assert remote.localise(path) == copy
    storage.write_bytes(path, b"b 2")  # as many bytes
    assert Path(remote.localise(path)).read_text() == "b 2"
    storage.write_bytes(f"{bucket}/same", b"b 2")
    assert Path(remote.localise(f"{bucket}/same")).name == "same"


def test_several_that_want_the_same_copy(bucket: str, monkeypatch: Patch) -> None:
    storage.write_bytes(f"{bucket}/model/a", b"a" * 100)
    fetched, fetch = [], remote._fetch

    def slowly(*args: Any) -> None:
        fetched.append(args)
        time.sleep(0.2)
        fetch(*args)

    monkeypatch.setattr(remote, "_fetch", slowly)
    with ThreadPoolExecutor(4) as pool:
        copies = set(pool.map(remote.localise, [f"{bucket}/model"] * 4))
    assert (len(fetched), len(copies)) == (1, 1)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "gone"), (b"who", "b: it changed while it was read; try again")]
)
def test_a_fetch_that_fails_leaves_no_copy(
    bucket: str, monkeypatch: Patch, content: bytes | None, message: str
) -> None:
    for name in "ab":
        storage.write_bytes(f"{bucket}/model/{name}", b"whole")
    whole = storage.open_file

    def fails(path: str) -> BinaryIO:
        if path.endswith("a"):
            return whole(path)
        if content is None:
            raise UserError("gone")
        return io.BytesIO(content)

    with monkeypatch.context() as patch, pytest.raises(UserError, match=message):
        patch.setattr(storage, "open_file", fails)
        remote.localise(f"{bucket}/model")
    assert storage.names(remote.localise(f"{bucket}/model")) == ["a", "b"]


def test_what_is_there(stored: Stored, tmp_path: Path) -> None:
    bucket, _ = stored
    storage.write_bytes(f"{bucket}/a/b", b"x")
    assert remote.exists(f"{bucket}/a")
    assert remote.exists(f"{bucket}/a/b")
    assert not remote.exists(f"{bucket}/a/c")
    assert remote.exists(str(tmp_path))
    assert not remote.exists(str(tmp_path / "x"))
    with pytest.raises(storage.MissingError, match=f"^{bucket}/a/c: no such file or folder$"):
        remote.localise(f"{bucket}/a/c")
    assert remote.localise(str(tmp_path)) == str(tmp_path)


def cannot_connect(arguments: list[str], path: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        connect(arguments, [path])
    assert "\n" not in str(error.value)


def test_a_client_lasts_as_long_as_the_options(stored: Stored) -> None:
    bucket, options = stored
    storage.write_bytes(f"{bucket}/a", b"a")
    first = clients.store(bucket)[0]
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: clients.store(bucket)[0], range(9))) == {first}
    connect([*options, "--project", "another"])
    assert storage.exists(f"{bucket}/a")
    assert clients.store(bucket)[0] is not first


def test_a_bucket_that_is_there(s3: list[str], bucket: str, monkeypatch: Patch) -> None:
    storage.write_bytes(f"{bucket}/a", b"a")
    looked: list[Any] = []
    monkeypatch.setattr(remote, "check_access", looked.append)
    connect(["--s3_endpoint_url", "http://127.0.0.1:9"])
    connect(s3, [bucket, f"{bucket}/x", "s3://other/x", "local/folder"])
    assert looked == [f"{bucket}/x", "s3://other/x"]  # once a bucket
    assert storage.read_bytes(f"{bucket}/a") == b"a"  # by the options given last


@pytest.mark.parametrize(
    ("listens", "message"),
    [(False, 'Could not connect.* URL: "{}/.*"$'), (True, "no answer from the object store in 2")],
)
def test_an_endpoint_that_refuses_or_does_not_answer(
    bucket: str, monkeypatch: Patch, listens: bool, message: str
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:  # else a busy machine may take longer than that to be refused
            monkeypatch.setattr(remote, "_TIMEOUT", 2.0)
            silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        cannot_connect(["--s3_endpoint_url", url], bucket, f"^{bucket}: {message.format(url)}")


def test_no_credentials_of_google(google_bucket: str, monkeypatch: Patch, tmp_path: Path) -> None:
    storage.write_bytes(f"{google_bucket}/a", b"a")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    cannot_connect([], google_bucket, "^gs://.*: Your default credentials were not found")
    with pytest.raises(UserError, match="credentials"):  # in a worker, which checks nothing
        storage.read_bytes(f"{google_bucket}/a")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "nowhere.json")  # not to be sent
    connect(["--no_auth"], [google_bucket])
    assert storage.read_bytes(f"{google_bucket}/a") == b"a"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gs://bucket/run", r"a library is missing: pip install 'paraloom\[dataflow\]'"),
        ("s3://bucket/run", r"a library is missing: pip install 'paraloom\[s3\]'"),
    ],
)
def test_a_file_system_that_is_not_there(path: str, message: str, monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)
    monkeypatch.setattr("apache_beam.io.aws.clients.s3.boto3_client.boto3", None)
    cannot_connect([], path, f"^{path}: {message}$")

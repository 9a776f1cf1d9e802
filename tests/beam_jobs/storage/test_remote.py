import io
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.storage import clients, remote
from paraloom.models.errors import UserError
from paraloom.models.files import STAGE_RECORD, digest
from tests.run_helpers import Patch

Stored = tuple[str, list[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
    stored: Stored, folder: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    bucket, _ = stored
    storage.write_bytes(f"{bucket}/model/old.txt", b"old")
    storage.write_bytes(f"{bucket}/model2/kept.txt", b"kept")
    made = digest(folder)
    remote.publish(folder, f"{bucket}/model")
    assert not folder.exists()
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


def test_a_copy_is_made_once_until_what_it_is_of_changes(
    stored: Stored, monkeypatch: Patch
) -> None:
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


def test_a_workplace_a_run() -> None:
    place = remote.local_workdir("s3://bucket/runs/cs-en")
    assert place == remote.local_workdir("s3://bucket/runs/cs-en/")
    assert place != remote.local_workdir("s3://other/runs/cs-en")
    assert place.name.startswith("cs-en-")
    assert str(remote.local_workdir("runs/x")) == "runs/x"


def within_a_minute(arguments: list[str], path: str, message: str) -> None:
    started = time.monotonic()
    with pytest.raises(UserError, match=message) as error:
        connect(arguments, [path])
    assert time.monotonic() - started < 60
    assert "\n" not in str(error.value)


def test_a_client_lasts_as_long_as_the_options(stored: Stored, monkeypatch: Patch) -> None:
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
        within_a_minute(["--s3_endpoint_url", url], bucket, f"^{bucket}: {message.format(url)}")


def test_missing_credentials_of_google(
    google_bucket: str, monkeypatch: Patch, tmp_path: Path
) -> None:
    storage.write_bytes(f"{google_bucket}/a", b"a")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    started = time.monotonic()
    within_a_minute([], google_bucket, "^gs://.*: Your default credentials were not found")
    with pytest.raises(UserError, match="credentials"):  # in a worker, which checks nothing
        storage.read_bytes(f"{google_bucket}/a")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "nowhere.json")  # not to be sent
    connect(["--no_auth"], [google_bucket])
    assert storage.read_bytes(f"{google_bucket}/a") == b"a"
    assert time.monotonic() - started < 15  # Beam would wait 20 seconds


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
    within_a_minute([], path, f"^{path}: {message}$")

from pathlib import Path

import pytest
from apache_beam.io.filesystem import FileMetadata, FileSystem
from apache_beam.io.localfilesystem import LocalFileSystem

from beam_jobs import storage
from models.errors import UserError


class ToyStore(LocalFileSystem):
    """An object store as Beam sees one: `toy://…` stands for a local folder."""

    root = Path()

    @classmethod
    def scheme(cls):
        return "toy"

    def _local(self, path: str) -> str:
        return str(self.root / path.removeprefix("toy://"))

    def join(self, base, *paths):
        return "/".join([base.rstrip("/"), *paths])

    def create(self, path, *args, **kwargs):
        Path(self._local(path)).parent.mkdir(parents=True, exist_ok=True)
        return super().create(self._local(path), *args, **kwargs)

    def open(self, path, *args, **kwargs):
        return super().open(self._local(path), *args, **kwargs)

    def exists(self, path):
        return super().exists(self._local(path))

    def delete(self, paths):
        for path in paths:
            Path(self._local(path)).unlink()

    def match(self, patterns, limits=None):
        found = super().match([self._local(p) for p in patterns], limits)
        for result in found:
            result.metadata_list = [
                FileMetadata(f"toy://{Path(m.path).relative_to(self.root)}", m.size_in_bytes)
                for m in result.metadata_list
            ]
        return found


@pytest.fixture(params=["local", "remote"])
def folder(request, tmp_path, monkeypatch) -> str:
    monkeypatch.setattr(ToyStore, "root", tmp_path)
    return str(tmp_path / "run") if request.param == "local" else "toy://run"


def test_the_toy_store_is_known_to_beam():
    assert ToyStore in FileSystem.get_all_subclasses()


def test_what_is_written_is_read(folder):
    path = storage.join(folder, "a", "b.bin")
    assert not storage.exists(path)
    storage.write_bytes(path, b"\x00\xff" * 1000)
    assert storage.exists(path)
    assert storage.read_bytes(path) == b"\x00\xff" * 1000
    assert storage.size(path) == 2000
    assert storage.names(storage.join(folder, "a")) == ["b.bin"]
    storage.write_bytes(path, b"new")
    assert storage.read_bytes(path) == b"new"
    storage.remove(path)
    storage.remove(path)
    assert not storage.exists(path)


def test_names_are_sorted_and_a_missing_folder_has_none(folder):
    assert storage.names(storage.join(folder, "nowhere")) == []
    for name in ("b", "a", "c"):
        storage.write_bytes(storage.join(folder, name), b"")
    assert storage.names(folder) == ["a", "b", "c"]


def test_gzip_is_not_decompressed_on_the_way(folder):
    path = storage.join(folder, "x.gz")
    storage.write_bytes(path, b"\x1f\x8bnot really")
    assert storage.read_bytes(path) == b"\x1f\x8bnot really"


def test_digest_of_a_file_is_that_of_its_bytes(folder):
    import hashlib

    path = storage.join(folder, "x")
    storage.write_bytes(path, b"abc" * 10)
    assert storage.file_digest(path) == hashlib.sha256(b"abc" * 10).hexdigest()


def test_a_stream_that_fails_leaves_what_was_there(tmp_path):
    path = str(tmp_path / "corpus.tsv.gz")
    storage.write_bytes(path, b"old")
    with pytest.raises(RuntimeError), storage.writing(path) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert storage.read_bytes(path) == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["corpus.tsv.gz"]


def test_a_stream_that_ends_well(folder):
    path = storage.join(folder, "x.gz")
    with storage.writing(path) as stream:
        stream.write(b"whole")
    assert storage.read_bytes(path) == b"whole"


def test_a_missing_file_is_named(folder):
    path = storage.join(folder, "missing")
    with pytest.raises(UserError, match="missing: cannot be read") as error:
        storage.read_bytes(path)
    assert "\n" not in str(error.value)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    path = str(tmp_path / "file" / "part.parquet")
    for write in (lambda: storage.write_bytes(path, b"x"), lambda: _stream(path)):
        with pytest.raises(UserError, match=r"file/part.parquet: cannot be written \(.+\)$"):
            write()


def test_a_full_disk_is_one_line_and_leaves_nothing(full_disk):
    path = str(full_disk / "part.parquet")
    for write in (
        lambda: storage.write_bytes(path, bytes(100_000)),
        lambda: _stream(path, bytes(100_000)),
    ):
        with pytest.raises(UserError, match=r"part.parquet: cannot be written \(No space left"):
            write()
        assert list(full_disk.iterdir()) == []


def test_temporary_files_of_a_killed_process_go(tmp_path):
    kept = ["part-00000.parquet", ".lock", ".gitignore"]
    for name in [*kept, ".part-00000.parquet.abcd_123", ".part-00000.json.abcdefgh"]:
        (tmp_path / name).touch()
    storage.remove_temporary(str(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(kept)


def _stream(path, data=b"x"):
    with storage.writing(path) as stream:
        stream.write(data)

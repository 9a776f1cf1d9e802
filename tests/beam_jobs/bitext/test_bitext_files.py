"""Finding and opening bitext files, and what a user can get wrong about them."""

import bz2
import gzip
import hashlib
import io
import lzma
import random
import tarfile
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import Bitext, Paths, find_bitext, find_ranges, read_bitext
from paraloom.beam_jobs.bitext.lines import blocks
from paraloom.beam_jobs.bitext.preview import preview
from paraloom.models.errors import UserError

ROW = b"1\t1\ta\tb\n"
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": lambda data: bytes(pa.Codec("zstd").compress(data, asbytes=True)),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def count(bitexts: list[Bitext]) -> int:
    return sum(block.rows for bitext in bitexts for block in read_bitext(bitext))


def write(folder: Path, **files: bytes) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_globs_are_sorted_and_a_file_is_taken_once(tmp_path: Path) -> None:
    write(tmp_path, **{"b": ROW, "a": ROW, "c.gz": ROW})
    (tmp_path / "folder").mkdir()
    found = find_bitext("czeng16", [str(tmp_path / "b"), str(tmp_path / "*")])
    names = ["b", "a", "c.gz"]
    assert [bitext.paths for bitext in found] == [(str(tmp_path / name),) for name in names]
    assert [bitext.name for bitext in found] == ["1-b", "2-a", "3-c"]


def test_moses_pairs_sorted_files_as_many_of_each_side(tmp_path: Path) -> None:
    write(tmp_path, **{f"{part}.{side}": b"x\n" for part in "ba" for side in ("cs", "en")})
    sides: Paths = {"source": str(tmp_path / "*.cs"), "reference": [str(tmp_path / "*.en")]}
    found = find_bitext("moses", sides)
    assert [[Path(path).name for path in bitext.paths] for bitext in found] == [
        ["a.cs", "a.en"],
        ["b.cs", "b.en"],
    ]
    (tmp_path / "b.en").unlink()
    with pytest.raises(UserError, match=r"\*\.cs gives 2 and .*\*\.en\S* 1"):
        find_bitext("moses", sides)
    wrong: list[Paths] = [[str(tmp_path / "a.cs")], {"source": "a.cs"}]
    for paths in wrong:
        with pytest.raises(UserError, match=r"moses takes \{source: …, reference: …\}"):
            find_bitext("moses", paths)


def test_a_name_with_a_wildcard_in_it_stands_for_itself(tmp_path: Path) -> None:
    write(tmp_path, **{"a[1] \udce9.tsv": b"a\tb\n", "a1.tsv": b"c\td\n"})
    (bitext,) = find_bitext("tsv", [str(tmp_path / "a[1] \udce9.tsv")])
    (block,) = read_bitext(bitext)
    assert block.pairs.to_pylist() == [{"id": "1-a_1___.tsv:1", "source": "a", "reference": "b"}]


def test_files_in_an_object_store(google_bucket: str) -> None:
    for name, data in (("a", ROW), ("b", gzip.compress(ROW * 2))):
        storage.write_bytes(f"{google_bucket}/{name}", data)
    assert count(find_bitext("czeng16", [f"{google_bucket}/*"])) == 3
    with pytest.raises(UserError, match=r"gs://.*/x\*: no file matches"):
        find_bitext("czeng16", [f"{google_bucket}/x*"])
    with pytest.raises(UserError, match=r"gs://.*/x: no such file"):
        find_bitext("czeng16", [f"{google_bucket}/x"])
    for path in ("unknown://a/b", "unknown://a/*"):
        with pytest.raises(UserError, match=r"unknown://a/b?: there is no file system unknown://"):
            find_bitext("czeng16", [path])


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["{}/none"], "{}/none: no such file"),
        (["{}/*.none"], r"{}/\*.none: no file matches"),
        (["{}"], "{}: cannot be read"),
        ([], "input.paths: names no file"),
        ({"source": "a", "reference": "a"}, "input.paths: czeng16 takes a list"),
    ],
)
def test_wrong_paths(tmp_path: Path, paths: Paths, message: str) -> None:
    found = [path.format(tmp_path) for path in paths] if isinstance(paths, list) else paths
    with pytest.raises(UserError, match=message.format(tmp_path)) as error:
        find_bitext("czeng16", found)
    assert "\n" not in str(error.value)


def tar() -> bytes:
    """An archive of a text file."""
    out, text = io.BytesIO(), b"a\tb\n"
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("a.tsv")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return out.getvalue()


def test_marks_of_html_in_a_pair_are_text(tmp_path: Path) -> None:
    write(tmp_path, a=b"<html>\t<html>\nx\ty\n")
    assert find_bitext("tsv", [str(tmp_path / "a")])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows"),
        (gzip.compress(b"", mtime=0), "no rows"),
        (b"\xef\xbb\xbf", "no rows"),
        (gzip.compress("\ufeff".encode("utf-16-be"), mtime=0), "no rows"),
        (b"PK\x03\x04", "is ZIP"),
        (tar(), "is a tar archive"),
        (gzip.compress(tar(), mtime=0), "is a tar archive"),
        (b"%PDF-1.7\n", "is PDF"),
        (b"\n<!DOCTYPE html>\n<html>", "is HTML"),
        (gzip.compress(b"<HTML lang='en'>\n<body>", mtime=0), "is HTML"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a file of Office"),
        (b"{\\rtf1 text}", "is RTF"),
        (b"7z\xbc\xaf\x27\x1c", "is a 7z archive"),
    ],
)
def test_an_empty_file_and_what_is_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    write(tmp_path, a=content)
    with pytest.raises(UserError, match=f"a: {message}"):
        find_bitext("czeng16", [str(tmp_path / "a")])


@pytest.mark.parametrize(("kind", "compress"), COMPRESSIONS.items())
def test_other_compressions_are_known_by_content(
    tmp_path: Path, kind: str, compress: Callable[[bytes], bytes]
) -> None:
    text = b"".join(b"%d\t1\ta %d\tb\n" % (i, i) for i in range(3000))
    whole = compress(b"\xef\xbb\xbf" + text[:5000]) + compress(text[5000:])  # as cat makes them
    write(tmp_path, plain=text, packed=whole)
    plain, packed = (find_bitext("czeng16", [str(tmp_path / n)])[0] for n in ("plain", "packed"))
    expected = [block.pairs for block in read_bitext(plain)]
    packed = replace(packed, sha256=(hashlib.sha256(whole).hexdigest(),))
    assert [block.pairs for block in read_bitext(packed)] == expected
    (part,) = find_ranges(packed, 1000)
    assert part.lines == 3000
    assert [block.pairs for block in read_bitext(packed, part=part)] == expected
    seen = preview([packed], rows=10, max_characters=100)
    assert (seen.rows, seen.counted) == (3000, True)
    second = len(compress(b"\xef\xbb\xbf" + text[:5000]))
    for data in (whole[:-9], whole[: second + 8] + b"\xff" * 9 + whole[second + 17 :]):
        write(tmp_path, packed=data)
        with pytest.raises(UserError, match=f"packed: truncated or corrupt {kind} .*fetch the"):
            list(read_bitext(packed))


def test_gzip_is_known_by_content_and_may_have_members_and_padding(tmp_path: Path) -> None:
    packed = gzip.compress(ROW[:3]) + gzip.compress(ROW[3:] + ROW) + b"\0" * 512
    write(tmp_path, **{"a.gz": ROW, "b": packed})
    assert count(find_bitext("czeng16", [str(tmp_path / "*")])) == 3


def rows(n: int) -> bytes:
    digits = random.Random(1)
    return b"".join(b"%d\t1\t%d\tb\n" % (i, digits.getrandbits(99)) for i in range(n))


def test_truncated_or_corrupt_gzip_ends_the_run_wherever_it_is(tmp_path: Path) -> None:
    whole = gzip.compress(rows(1_000))
    damaged = [whole + b"no gzip"]
    for size in (3, 9, 12, len(whole) // 2, len(whole) - 9, len(whole) - 5, len(whole) - 1):
        damaged.append(whole[:size])
    for place in (len(whole) // 2, len(whole) - 6):  # the checksum
        damaged.append(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
    for content in damaged:
        write(tmp_path, a=content)
        with pytest.raises(UserError, match=r"a: truncated or corrupt gzip .*fetch the file again"):
            count(find_bitext("czeng16", [str(tmp_path / "a")]))


class Short(io.BytesIO):
    """A stream that gives a few bytes at a time, as sockets do."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self.size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.size)


@pytest.mark.parametrize("length", range(16))
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"", b"\r"])
def test_long_lines_are_cut_alike_however_they_are_read(length: int, end: bytes) -> None:
    line = bytes(range(ord("a"), ord("a") + length))
    content = line + end
    expected = [line if length <= 7 else line[:7] + b"\n"] if content else []
    for tail in (b"", b"x\r\n") if end.endswith(b"\n") else (b"",):
        for size in range(1, 20):
            found = list(blocks(Short(content + tail, size), 10, limit=7))
            assert found == ([expected + [b"x"] * bool(tail)] if content else [])


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a", "wb", compresslevel=1) as stream:
        stream.write(ROW)
        for _ in range(64):
            stream.write(b"x" * (1 << 20))
    (bitext,) = find_bitext("czeng16", [str(tmp_path / "a")])
    tracemalloc.start()
    (block,) = read_bitext(bitext)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert block.rejected["reason"].to_pylist() == ["line longer than 25,000 bytes"]
    assert block.pairs.num_rows == 1
    assert peak < 16 << 20


PARQUET = io.BytesIO()
pq.write_table(pa.table({"source": ["a"], "reference": ["b"]}), PARQUET)
EMPTY = io.BytesIO()
pq.write_table(pa.table({"source": pa.nulls(0), "reference": pa.array([], pa.string())}), EMPTY)
TMX = b"<tmx><body>%s</body></tmx>"
UNIT = b'<tu><tuv xml:lang="cs"><seg>a</seg></tuv><tuv xml:lang="en"><seg>b</seg></tuv></tu>'
SHARDS = [
    ("parquet", PARQUET.getvalue(), EMPTY.getvalue()),
    ("jsonl", b'{"source": "a", "reference": "b"}', b""),
    ("jsonl", b'{"source": "a", "reference": "b"}', gzip.compress(b"")),
    ("csv", b"source,reference\na,b\n", b"source,reference\n"),
    ("csv", b"source,reference\na,b\n", b"\n\n"),
    ("tmx", TMX % UNIT, TMX % b""),
    ("tsv", b"a\tb\n", b""),
]


@pytest.mark.parametrize(("form", "some", "none"), SHARDS)
def test_an_empty_shard_is_no_error_unless_all_are(
    tmp_path: Path, form: str, some: bytes, none: bytes
) -> None:
    paths = [str(tmp_path / name) for name in "abc"]
    for path, content in zip(paths, (none, some, none), strict=True):
        Path(path).write_bytes(content)
    (bitext,) = find_bitext(form, paths)
    assert (bitext.paths, bitext.name) == ((paths[1],), "2-b")
    assert [block.pairs["source"].to_pylist() for block in read_bitext(bitext)] == [["a"]]
    with pytest.raises(UserError, match=r"/c: no rows, the file is empty"):
        find_bitext(form, [paths[0], paths[2]])


def test_an_empty_side_is_an_error(tmp_path: Path) -> None:
    for name, text in (("1.cs", ""), ("1.en", "a\n"), ("2.cs", "a\n"), ("2.en", "b\n")):
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=r"1\.cs: no rows, the file is empty"):
        find_bitext("moses", {"source": f"{tmp_path}/*.cs", "reference": f"{tmp_path}/*.en"})

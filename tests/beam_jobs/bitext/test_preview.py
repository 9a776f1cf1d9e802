import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from paraloom.beam_jobs.bitext import Paths, find_bitext, preview
from paraloom.beam_jobs.bitext import lines as lines_module
from paraloom.beam_jobs.bitext.preview import BitextPreview
from paraloom.models.errors import UserError
from tests.run_helpers import Patch


def looked_at(paths: Paths) -> BitextPreview:
    return preview.preview(find_bitext("tsv", paths), rows=50, max_characters=100)


def lines(count: int, start: int = 0) -> str:
    return "".join(f"věta číslo {i}\tsentence number {i}\n" for i in range(start, start + count))


def members(text: bytes) -> bytes:
    """Gzip of two members."""
    return gzip.compress(text[:50]) + gzip.compress(text[50:])


@pytest.mark.parametrize("write", [bytes, members])
@pytest.mark.parametrize("end", ["\n", ""])
def test_small_files_are_counted(tmp_path: Path, write: Callable[[bytes], bytes], end: str) -> None:
    for name, count in (("a", 120), ("b", 7)):
        (tmp_path / name).write_bytes(write((lines(count).removesuffix("\n") + end).encode()))
    seen = looked_at([str(tmp_path / "?")])
    assert (seen.rows, seen.counted, seen.files, seen.rejected) == (127, True, 2, 0)
    assert len(seen.pairs) == 25 + 7  # as many of each file, where it has them
    assert seen.pairs["source"][25].as_py() == "věta číslo 0"


@pytest.mark.parametrize("write", [lambda text: text, gzip.compress], ids=["plain", "gzip"])
def test_large_files_are_estimated(
    tmp_path: Path, monkeypatch: Patch, write: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(lines_module, "_HEAD", 20_000)
    (tmp_path / "a").write_bytes(write(lines(50_000, 100_000).encode()))
    (tmp_path / "b").write_bytes(write(lines(20_000, 100_000).encode()))
    seen = looked_at([str(tmp_path / "?")])
    assert not seen.counted
    assert seen.rows == pytest.approx(70_000, rel=0.1)


def test_gzip_is_estimated_from_a_bounded_part(tmp_path: Path) -> None:
    text = b"a\tb\n" * 25_000_000
    (tmp_path / "a").write_bytes(gzip.compress(text))
    tracemalloc.start()
    try:
        seen = looked_at([str(tmp_path / "a")])
        assert tracemalloc.get_traced_memory()[1] < 80_000_000  # all of it: 100 MB and more
    finally:
        tracemalloc.stop()
    assert not seen.counted
    assert seen.rows == pytest.approx(25_000_000, rel=0.5)


def test_of_many_files_some_are_looked_into(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(preview, "_FILES", 4)
    for i in range(10):
        (tmp_path / str(i)).write_text(lines(10, 100 * i + 1000), encoding="utf-8")
    seen = looked_at([str(tmp_path / "*")])
    assert (seen.files, seen.counted, seen.rows) == (4, False, 100)
    assert {int(text.split()[-1]) // 100 - 10 for text in seen.pairs["source"].to_pylist()} == {
        0, 2, 5, 7,
    }  # fmt: skip


def test_none_that_can_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\t\nb\t\n")
    with pytest.raises(UserError, match="input: none of the rows at the beginning of the files"):
        looked_at([str(tmp_path / "a")])


def test_small_inputs_have_small_shards(tmp_path: Path, monkeypatch: Patch) -> None:
    def step(*counts: int, write: Callable[[bytes], bytes] = bytes) -> int:
        for file, count in enumerate(counts):
            (tmp_path / f"{count}-{file}").write_bytes(write(lines(count).encode()))
        paths = [str(tmp_path / f"{count}-{file}") for file, count in enumerate(counts)]
        return preview.rows_per_shard(find_bitext("tsv", paths))

    assert step(1) == step(5_000) == step(30_000) == step(*[15_000] * 2) == 500
    assert step(30_001) == step(*[20_000] * 3) == 1_000
    monkeypatch.setattr(lines_module, "_HEAD", 20_000)  # estimated from here on
    assert step(150_000) == step(150_000, write=gzip.compress) == 2_000
    assert step(*[20_000] * 25) == 5_000
    assert step(*[150_000] * 8) == 10_000

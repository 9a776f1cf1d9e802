"""A bitext read in ranges is the bitext read at once."""

import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs.bitext import Bitext, Format, Range, find_bitext, find_ranges, read_bitext
from paraloom.beam_jobs.bitext import lines as lines_module
from paraloom.models.errors import UserError

BOM = b"\xef\xbb\xbf"
MAX = 20  # characters; lines of more than 1,240 bytes are cut
FIELDS = [b"pes", b"a dog", b"", b" ", b"\xff", b"k\xc5\xaf\xc5\x88", b"x" * 30, b"z" * 1300]
SEPARATORS = [b"\t", b"\t\t", b""]
ENDS = [b"\n", b"\r\n", b"\n\n", b"\r", b"\n" + BOM]

texts = st.lists(
    st.tuples(st.sampled_from(FIELDS), st.sampled_from(SEPARATORS), st.sampled_from(ENDS)),
    max_size=40,
).map(lambda rows: b"".join(b"".join((a, sep, a, end)) for a, sep, end in rows))
cuts = st.lists(st.integers(0, 400), max_size=5)


def members(text: bytes, at: Sequence[int], *, packed: bool, mark: bool) -> bytes:
    """The text, with a mark before it, as it is or as gzip with members that begin at `at`."""
    if not packed:
        return BOM * mark + text
    text = BOM * mark + text
    places = [0, *sorted({min(place, len(text)) for place in at}), len(text)]
    return b"".join(gzip.compress(text[a:b], mtime=0) for a, b in pairwise(places))


def content(bitext: Bitext, rows: int, part: Range | None = None) -> Any:
    blocks = read_bitext(bitext, rows=rows, max_characters=MAX, part=part)
    return [(b.pairs.to_pylist(), b.rejected.to_pylist(), b.lines.tolist(), b.rows) for b in blocks]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "CHUNK", 64)


def check(bitext: Bitext, rows: int, shards: int) -> list[Range]:
    """Compare, the errors too; the ranges."""
    try:
        whole = content(bitext, rows)
    except UserError as error:
        whole = str(error)
    try:
        parts = find_ranges(bitext, shards * rows)
        found = [content(bitext, rows, part) for part in parts]
        before = [part.before for part in parts]
        assert all(number % rows == 0 for number in before)
        assert before == [sum(part.lines for part in parts[:i]) for i in range(len(parts))]
    except UserError as error:
        assert str(error) == whole or ("has" in str(error) and "differ in length" in whole)
        return []
    assert [block for blocks in found for block in blocks] == whole
    return parts


@given(
    format=st.sampled_from(["tsv", "czeng16", "czeng20", "text"]),
    text=texts, at=cuts, packed=st.booleans(), mark=st.booleans(),
    rows=st.integers(1, 4), shards=st.sampled_from([1, 2, 5, 99]),
)  # fmt: skip
@settings(max_examples=40)
def test_ranges_of_any_file_are_the_file(
    format: Format, text: bytes, at: list[int], packed: bool, mark: bool, rows: int,
    shards: int,
) -> None:  # fmt: skip
    with TemporaryDirectory() as folder:
        path = Path(folder, "a")
        path.write_bytes(members(text, at, packed=packed, mark=mark))
        bitext = Bitext(format=format, paths=(str(path),), name="1-a")
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        check(replace(bitext, sha256=(sha256,)), rows, shards)
        check(bitext, rows, shards)


@given(
    sides=st.tuples(texts, texts), at=st.tuples(cuts, cuts), packed=st.tuples(*2 * [st.booleans()]),
    rows=st.integers(1, 4), shards=st.sampled_from([1, 2, 99]),
)  # fmt: skip
@settings(max_examples=20)
def test_ranges_of_a_moses_pair_are_the_pair(
    sides: tuple[bytes, bytes], at: tuple[list[int], list[int]], packed: tuple[bool, bool],
    rows: int, shards: int,
) -> None:  # fmt: skip
    lines = max(side.count(b"\n") + (side[-1:] not in (b"", b"\n")) for side in sides)
    whole = (b"\n".join([*side.split(b"\n"), *lines * [b"x"]][:lines]) + b"\n" for side in sides)
    for texts in (sides, tuple(whole)):
        with TemporaryDirectory() as folder:
            paths = [Path(folder, name) for name in ("a", "b")]
            for path, text, places, pack in zip(paths, texts, at, packed, strict=True):
                path.write_bytes(members(text, places, packed=pack, mark=False))
            bitext = Bitext(format="moses", paths=tuple(map(str, paths)), name="1-a")
            check(bitext, rows, shards)


def test_plain_files_are_divided(tmp_path: Path) -> None:
    text = [b"%d\ta\tb\n" % i for i in range(100)]
    files = [b"".join(text), gzip.compress(b"".join(text))]
    starts = []
    for number, data in enumerate(files):
        path = tmp_path / f"{number}.tsv"
        path.write_bytes(data)
        bitext = Bitext(format="tsv", paths=(str(path),), name="1-a")
        starts.append([part.before for part in check(bitext, 5, 2)])
    assert starts == [list(range(0, 100, 10)), [0]]


def test_a_range_is_read_as_it_was_indexed_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    lines = [f"zdroj {i}\tsource {i}\n" for i in range(30)]
    path.write_text("".join(lines))
    (bitext,) = find_bitext("tsv", [str(path)])
    first, second, _ = find_ranges(bitext, 10)
    lines[15] = lines[15].upper()
    path.write_text("".join(lines))
    assert content(bitext, 10, first)
    with pytest.raises(UserError, match="changed while the run read it"):
        content(bitext, 10, second)
    path.write_text("".join(lines[:18]))
    with pytest.raises(UserError, match="changed while the run read it"):
        content(bitext, 10, second)

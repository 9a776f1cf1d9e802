"""Corpora that grow: ids stay while files and rows come, go and move."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from paraloom.beam_jobs.bitext import Paths, find_bitext
from paraloom.beam_jobs.ingest import Reading, _ids, _units
from paraloom.beam_jobs.transforms.equal_texts import counted_if_shared

Pair = tuple[str, str]
Rows = list[tuple[str, str, str]]


def plain_id(source: str, reference: str) -> str:
    """80 bits of XXH3, 5 by 5 from the lowest: 12 letters of 8 bytes, 4 of the other 8."""
    digest = xxhash.xxh3_128_digest(f"{source}\x1f{reference}".encode())
    words = [int.from_bytes(digest[at : at + 8], "little") for at in (0, 8)]
    places = [(words[0], 5 * i) for i in range(12)] + [(words[1], 5 * i) for i in range(4)]
    return "".join("0123456789abcdefghjkmnpqrstvwxyz"[word >> by & 31] for word, by in places)


def lines(path: Path, rows: list[str]) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return path


def tsv(path: Path, pairs: list[Pair]) -> Path:
    return lines(path, [f"{source}\t{reference}" for source, reference in pairs])


def moses(path: Path, pairs: list[Pair]) -> Path:
    lines(path.with_suffix(".en"), [reference for _, reference in pairs])
    return lines(path.with_suffix(".cs"), [source for source, _ in pairs])


def jsonl(path: Path, pairs: list[Pair]) -> Path:
    return lines(path, [json.dumps({"source": a, "reference": b}) for a, b in pairs])


def parquet(path: Path, pairs: list[Pair]) -> Path:
    columns = dict(zip(("source", "reference"), zip(*pairs, strict=True), strict=True))
    pq.write_table(pa.table(columns), path, row_group_size=3)
    return path


def tmx(path: Path, pairs: list[Pair]) -> Path:
    unit = '<tu><tuv lang="cs"><seg>{}</seg></tuv><tuv lang="en"><seg>{}</seg></tuv></tu>'
    units = "".join(unit.format(*map(escape, pair)) for pair in pairs)
    path.write_text(f"<tmx><body>{units}</body></tmx>", "utf-8")
    return path


Write = Callable[[Path, list[Pair]], Path]
WRITERS: list[Write] = [tsv, moses, jsonl, parquet, tmx]


def ingested(write: Write, files: dict[str, list[Pair]], folder: Path) -> Rows:
    """The rows with their ids, as `Ingest` finds them, but that no runner moves the hashes."""
    folder.mkdir()
    written = [str(write(folder / name, files[name])) for name in sorted(files)]
    paths: Paths = list(written)
    if write is moses:
        paths = {"source": written, "reference": [path[:-2] + "en" for path in written]}
    reading = Reading(shard_rows=2, max_characters=100)
    units = _units(find_bitext(write.__name__, paths), "", reading, str(folder / "spans"))
    found = [(unit.index, *of) for unit in units for of in reading.id_hashes(unit)]
    index, hashes, rows = zip(*found, strict=True)
    of_unit = np.repeat(index, [*map(len, rows)])
    lines = np.concatenate(rows)
    numbers = counted_if_shared(np.concatenate(hashes), of_unit, lines)
    made: Rows = []
    for unit in units:
        here = (of_unit == unit.index) & (numbers > 0)
        for block in reading.blocks(unit):
            ids = _ids(block, np.column_stack([lines, numbers])[here])
            texts = (block.pairs[side].to_pylist() for side in ("source", "reference"))
            made += zip(ids.to_pylist(), *texts, strict=True)
    return made


def change(random: Random, files: dict[str, list[Pair]], number: int) -> None:
    """Change a file, which always has a row, or the files."""

    def pair() -> Pair:
        return random.choice("abc") + f" <{random.randrange(9)}>", random.choice("xy")

    rows = files[random.choice(sorted(files))]
    at = random.randrange(len(rows))
    source, reference = rows[at]
    kind = number % 8
    if kind == 0:
        files[random.choice("am") + f"{number}"] = [pair() for _ in range(random.randrange(1, 9))]
    elif kind == 1:
        rows.extend(pair() for _ in range(3))
    elif kind == 2:
        rows.insert(at, pair())
    elif kind == 3:
        rows[at] = f"{source} {number}", reference
    elif kind == 4:
        rows[at] = source, f"{reference} {number}"
    elif kind == 5:
        random.shuffle(rows)
    elif kind == 6 and len(rows) > 1:
        del rows[at]
    elif kind == 7 and len(files) > 1:
        del files[random.choice(sorted(files))]


@pytest.mark.parametrize("write", WRITERS)
def test_what_stays_keeps_its_id(tmp_path: Path, write: Write) -> None:
    random, before = Random(1), Counter[Pair]()
    files = {"m": [("a <1>", "x"), ("a <1>", "x"), ("b", "y"), ("a <1>", "y")]}
    earlier: set[str] = set()
    for number in range(30):
        found = ingested(write, files, tmp_path / f"{number}")
        pairs = [pair for name in sorted(files) for pair in files[name]]
        assert [(source, reference) for _, source, reference in found] == pairs
        counts = Counter[Pair]()
        for id, source, reference in found:
            counts[source, reference] += 1
            again = counts[source, reference]
            assert id == plain_id(source, reference) + (f"-{again}" if again > 1 else "")
        ids = {id for id, *_ in found}
        assert len(ids) == len(found)
        assert len(ids & earlier) == (counts & before).total()
        earlier, before = ids, counts
        change(random, files, number)

"""Corpora that grow: ids stay while files and rows come, go and move."""

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
import xxhash

from paraloom.beam_jobs.bitext import find_bitext
from paraloom.beam_jobs.ingest import Reading, _ids, _units
from paraloom.beam_jobs.transforms.equal_texts import counted_if_shared
from tests.growth import WRITERS, Files, Pair, Write, change, write_files

Rows = list[tuple[str, str, str]]


def plain_id(source: str, reference: str) -> str:
    """80 bits of XXH3, 5 by 5 from the lowest: 12 letters of 8 bytes, 4 of the other 8."""
    digest = xxhash.xxh3_128_digest(f"{source}\x1f{reference}".encode())
    words = [int.from_bytes(digest[at : at + 8], "little") for at in (0, 8)]
    places = [(words[0], 5 * i) for i in range(12)] + [(words[1], 5 * i) for i in range(4)]
    return "".join("0123456789abcdefghjkmnpqrstvwxyz"[word >> by & 31] for word, by in places)


def ingested(write: Write, files: Files, folder: Path) -> Rows:
    """The rows with their ids, as `Ingest` finds them, but that no runner moves the hashes."""
    paths = write_files(write, folder, files)
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


@pytest.mark.parametrize("write", WRITERS)
def test_what_stays_keeps_its_id(tmp_path: Path, write: Write) -> None:
    random, before = Random(1), Counter[Pair]()

    def pair() -> Pair:
        return random.choice("abc") + f" <{random.randrange(9)}>", random.choice("xy")

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
        change(random, files, number, pair)

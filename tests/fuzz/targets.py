"""What is fuzzed: one function for each kind of input that may come from others."""

import gzip
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import yaml

from paraloom.beam_jobs.io import score_files, shards
from paraloom.beam_jobs.io.bitext import READERS, Format, find_bitext, read_bitext
from paraloom.models.embeddings.datasets.similarity import read_labelled
from paraloom.models.text.vectors import load_vectors
from paraloom.papers.datasets.phrases import read_phrase_pairs
from paraloom.papers.datasets.synonyms import read_synonyms
from tests.fuzz.harness import Case, allowed, command
from tests.fuzz.model_targets import MODEL_TARGETS
from tests.fuzz.mutations import damaged
from tests.sample import sample_rows

ONE = ("--", "--direct_num_workers", "1")
_OF_LINES: tuple[Format, ...] = ("czeng16", "czeng20", "tsv", "text")


@cache
def _rows() -> list[list[bytes]]:
    """Columns of the first rows of the sample: id, score, source, reference."""
    found = [row.split(b"\t") for _, row in zip(range(400), sample_rows(), strict=False)]
    return [row for row in found if len(row) == 4]


def _bitext(format: str, random: Random) -> bytes:
    start, count = random.randrange(200), random.choice((1, 3, 40))
    fields: dict[str, Callable[[list[bytes]], list[bytes]]] = {
        "czeng16": lambda row: row,
        "czeng20": lambda row: [row[0], b"1", b"1", b"1", *row[2:]],
        "tsv": lambda row: [row[0], *row[2:]] if start % 2 else row[2:],
        "text": lambda row: row[3:],
    }
    return b"".join(b"\t".join(fields[format](r)) + b"\n" for r in _rows()[start : start + count])


def _count(data: bytes) -> int | None:
    """Lines of a file, plain or gzip; None if it is damaged gzip."""
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return None
    return data.count(b"\n") + (not data.endswith(b"\n") and data not in (b"", b"\xef\xbb\xbf"))


def bitext(random: Random, folder: Path) -> None:
    """Rows in are rows out and rejected rows, in every format."""
    format = random.choice(_OF_LINES)
    data = damaged(_bitext(format, random), random)
    (folder / "corpus").write_bytes(data)
    rows = random.choice((1, 7, 10_000))
    limit = random.choice((20, 2000))

    def read() -> int:
        (found,) = find_bitext(format, [str(folder / "corpus")])
        total = 0
        for block in read_bitext(found, rows=rows, max_characters=limit):
            block.pairs.validate(full=True)
            block.rejected.validate(full=True)
            assert block.rows == block.pairs.num_rows + block.rejected.num_rows
            assert all(reason for reason in block.rejected["reason"].to_pylist())
            total += block.rows
        return total

    total = allowed(read)
    if total is not None and not READERS[format].skip_empty_lines:
        assert total == _count(data), f"{total} rows of {_count(data)}"


def moses(random: Random, folder: Path) -> None:
    """Two files of as many lines."""
    start, count = random.randrange(200), random.choice((1, 3, 40))
    chosen = _rows()[start : start + count]
    sides = [b"".join(row[side] + b"\n" for row in chosen) for side in (2, 3)]
    damage = random.randrange(2)
    sides[damage] = damaged(sides[damage], random)
    paths = {name: str(folder / name) for name in ("source", "reference")}
    for name, data in zip(paths, sides, strict=True):
        (folder / name).write_bytes(data)

    def read() -> int:
        (found,) = find_bitext("moses", dict(paths))
        blocks = list(read_bitext(found, rows=random.choice((1, 7, 10_000))))
        assert all(b.rows == b.pairs.num_rows + b.rejected.num_rows for b in blocks)
        return sum(block.rows for block in blocks)

    total = allowed(read)
    assert total is None or total == _count(sides[0]) == _count(sides[1])


def ingest(random: Random, folder: Path) -> None:
    """The real command: the receipts account for every row."""
    format = random.choice(_OF_LINES)
    data = damaged(_bitext(format, random), random)
    (folder / "corpus.tsv").write_bytes(data)
    config = {
        "run": str(folder / "run"),
        "input": {"format": format, "paths": [str(folder / "*.tsv")], "shard_rows": 5},
        "nmt": {"model": str(folder), "forward_model": str(folder) if format == "text" else None},
        "score": {"scorers": ["trigram_overlap"]},
        "select": {"by": "trigram_overlap"},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    if command(["ingest", "--config", str(folder / "config.yaml"), *ONE]) == 0:
        found = shards.receipts(str(folder / "run" / "ingest"))
        assert found and all(r.rows_in == r.rows_out + sum(r.rejected.values()) for r in found)
        if not READERS[format].skip_empty_lines:
            assert sum(receipt.rows_in for receipt in found) == _count(data)


@cache
def _vectors() -> list[bytes]:
    generator = np.random.default_rng(0)
    words = ["the", "d'être", "日本", "a_b", "0.5", "x"]
    matrix = generator.standard_normal((len(words), 5)).astype("<f4")
    text = "".join(
        f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, matrix, strict=True)
    ).encode()
    pairs = zip(words, matrix, strict=True)
    binary = b"6 5\n" + b"".join(w.encode() + b" " + row.tobytes() + b"\n" for w, row in pairs)
    return [text, b"6 5\n" + text, text.replace(b" ", b"\t"), binary, gzip.compress(binary)]


def vectors(random: Random, folder: Path) -> None:
    """Word vectors in all forms."""
    path = folder / "vectors"
    data = damaged(random.choice(_vectors()), random)
    if random.random() < 0.3:
        data = b"%d %d\n" % (random.choice((6, 10**9)), random.choice((5, 10**8, 10**11))) + data
    path.write_bytes(data)
    found = allowed(lambda: load_vectors(path))
    if found is not None:
        assert np.isfinite(found.matrix).all() and len(found) == len(found.matrix)
        found.at(found.rows(["the", "none", *found.words.to_pylist()[:3]]))


_DATA = {
    "phrases": b"[NP] ||| a big dog ||| a large dog ||| p=1\n[X] ||| two men ||| men |||\n",
    "pairs": b"a big dog\ta large dog\ntwo men\tmen here\n",
    "lexicon": b"dog hound cur\nmen man\n",
    "sts": b"4.5\tA dog runs.\tA dog is running.\n1\tTwo men.\tA cat.\n" * 3,
    "judged": b"score\treference\ttranslation\n80\ta dog\tthe dog\n1\tb\tc\n",
    "scores": b"id\tvalue\n1-a:1\t0.5\n1-a:2\t-3e2\n",
}


def data(random: Random, folder: Path) -> None:
    """Phrase pairs, thesauri, labelled pairs, and scores that were computed elsewhere."""
    name, content = random.choice(list(_DATA.items()))
    path = folder / f"{name}.tsv"
    path.write_bytes(damaged(content, random))
    allowed(lambda: read_phrase_pairs(path))
    allowed(lambda: read_synonyms(path))
    allowed(lambda: read_labelled(path))

    def scores() -> None:
        for file in score_files.find_score_files("value", str(path), candidates=False):
            for ids, values in score_files.read_scores(file):
                assert len(ids) == len(values)

    allowed(scores)


TARGETS: dict[str, tuple[Case, float]] = {
    "bitext": (bitext, 8),
    "moses": (moses, 3),
    "ingest": (ingest, 1),
    "vectors": (vectors, 3),
    "data": (data, 3),
    **MODEL_TARGETS,
}
"""The targets, and how often each is tried compared with the others."""

"""What is fuzzed: one function for each kind of input that may come from others."""

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
import yaml

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.bitext import READERS, Format
from paraloom.beam_jobs.engine import shards
from paraloom.beam_jobs.transforms import score_files
from paraloom.models import files
from paraloom.models.embeddings.datasets.similarity import read_labelled
from paraloom.models.text.vectors import load_vectors
from paraloom.papers.datasets.phrases import read_phrase_pairs
from paraloom.papers.datasets.splits import read_synonyms
from paraloom.pipeline.judging.judgments import JudgeFile
from tests.fuzz.harness import Case, allowed, command
from tests.fuzz.model_targets import MODEL_TARGETS
from tests.fuzz.mutations import damaged
from tests.run_helpers import ONE
from tests.sample import sample_rows

_OF_LINES: tuple[Format, ...] = ("czeng16", "czeng20", "tsv", "text", "moses")


@cache
def _rows() -> list[list[bytes]]:
    """Columns of the first rows of the sample: id, score, source, reference."""
    found = [row.split(b"\t") for _, row in zip(range(400), sample_rows(), strict=False)]
    return [row for row in found if len(row) == 4]


def _bitext(format: Format, random: Random) -> dict[str, bytes]:
    """The files of some rows, one of them damaged."""
    start, count = random.randrange(200), random.choice((1, 3, 40))
    fields: dict[str, dict[str, Callable[[list[bytes]], list[bytes]]]] = {
        "czeng16": {"corpus": lambda row: row},
        "czeng20": {"corpus": lambda row: [row[0], b"1", b"1", b"1", *row[2:]]},
        "tsv": {"corpus": lambda row: [row[0], *row[2:]] if start % 2 else row[2:]},
        "text": {"corpus": lambda row: row[3:]},
        "moses": {"source": lambda row: row[2:3], "reference": lambda row: row[3:]},
    }
    files = {
        name: b"".join(b"\t".join(of(row)) + b"\n" for row in _rows()[start : start + count])
        for name, of in fields[format].items()
    }
    name = random.choice(list(files))
    return {**files, name: damaged(files[name], random)}


def _count(data: bytes) -> int | None:
    """Lines of a file, plain or gzip; None if it is damaged gzip."""
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return None
    return data.count(b"\n") + (not data.endswith(b"\n") and data not in (b"", b"\xef\xbb\xbf"))


def bitext(random: Random, folder: Path) -> None:
    """The real command, in every format of lines: the receipts account for every row."""
    format = random.choice(_OF_LINES)
    files = _bitext(format, random)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    paths = {name: str(folder / name) for name in files}
    config = {
        "run": str(folder / "run"),
        "input": {
            "format": format,
            "paths": paths if format == "moses" else list(paths.values()),
            "shard_rows": random.choice((1, 7, 10_000)),
        },
        "nmt": {"model": str(folder), "forward_model": str(folder) if format == "text" else None},
        "score": {"scorers": ["trigram_overlap"]},
        "select": {"by": "trigram_overlap"},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    if command(["ingest", "--config", str(folder / "config.yaml"), *ONE]) == 0:
        found = shards.receipts(str(folder / "run" / "ingest"))
        assert found and all(r.rows_in == r.rows_out + sum(r.rejected.values()) for r in found)
        if not READERS[format].skip_empty_lines:
            total = sum(receipt.rows_in for receipt in found)
            assert {_count(content) for content in files.values()} == {total}


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


def kept(random: Random, folder: Path) -> None:
    """What people judged is never lost, and a damaged record of a digest is never believed."""
    (folder / "judgments").mkdir()
    path = folder / "judgments" / "a.jsonl"
    whole = b'{"id": "a", "score": 50}\n{"id": "b", "reference": "\xc3\xa9"}'
    path.write_bytes(before := damaged(whole, random))
    allowed(lambda: JudgeFile(str(folder), "a"))
    after = path.read_bytes()
    assert after.startswith(before[: before.rfind(b"\n") + 1])
    lost = before[len(after) :].rstrip(b"\0").removeprefix(b"\xef\xbb\xbf")
    assert not lost or allowed(lambda: [json.loads(lost)]) is None

    with mock.patch.dict(os.environ, XDG_CACHE_HOME=str(folder)):
        place, sha256 = str(path), storage.file_digest(str(path))
        record = files.digest_record(place, files.file_state(path)[0])
        record.parent.mkdir(parents=True)
        record.write_bytes(damaged(sha256.encode(), random))
        assert re.fullmatch("[0-9a-f]{64}", storage.known_digest(place))


TARGETS: dict[str, tuple[Case, float]] = {
    "bitext": (bitext, 8),
    "vectors": (vectors, 3),
    "data": (data, 3),
    "kept": (kept, 1),
    **MODEL_TARGETS,
}
"""The targets, and how often each is tried compared with the others."""

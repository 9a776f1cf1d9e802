"""What is fuzzed: one function for each kind of input that may come from others."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import yaml

from paraloom.beam_jobs.io import orphans, part_files, score_files, shards, storage
from paraloom.beam_jobs.io.bitext import READERS, find_bitext, read_bitext
from paraloom.beam_jobs.runners import crash_recovery
from paraloom.beam_jobs.runners.local.fork_server import CRASHED
from paraloom.models.embeddings.datasets.phrases import read_phrase_pairs
from paraloom.models.embeddings.datasets.similarity import read_labelled
from paraloom.models.embeddings.datasets.synonyms import read_synonyms
from paraloom.models.structured import parse_yaml
from paraloom.models.text.vectors import compact_vectors, load_vectors, open_vectors
from paraloom.pipeline.config.options import Config
from tests.fuzz.harness import Case, allowed, command, write_json
from tests.fuzz.model_targets import MODEL_TARGETS
from tests.fuzz.mutations import NASTY, changed, configured, damaged
from tests.pipeline.report.made_run import make_run
from tests.sample import ROOT, sample_rows

ONE = ("--", "--direct_num_workers", "1")


# --- bitext ---------------------------------------------------------------------------------------


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
    format = random.choice([name for name in READERS if name != "moses"])
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
    format = random.choice([name for name in READERS if name != "moses"])
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
        command(["status", str(folder / "run")])
        shard = found[0].shards[0] if found[0].shards else None
        if shard and shard.rows:
            name = shards.read_shard(shard)["id"][0].as_py()
            assert command(["explain", str(folder / "run"), name]) == 0


# --- configurations -------------------------------------------------------------------------------


@cache
def _configs() -> list[dict[str, Any]]:
    found = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "configs").glob("*.yaml"))]
    return [config for config in found if isinstance(config, dict)]


def configuration(random: Random, folder: Path) -> None:
    """A command reads a configuration that names no file that is there."""
    config = random.choice(_configs())
    how = random.random()
    config = configured(config, Config, random) if how < 0.6 else changed(config, random)
    text = yaml.safe_dump(config).encode("utf-8", "surrogatepass")
    if how > 0.8:
        text = damaged(text, random)
    path = folder / "config.yaml"
    path.write_bytes(text)
    name = random.choice(("corpus", "train-embeddings", "estimate", "bucket", "train-nmt"))
    fixed = ["--set", f"run={folder / 'run'}", "--set", f"input.paths=[{folder / 'none'}]"]
    more = ["--set", f"{random.choice(('seed', 'nmt.beam', 'a.b', ''))}={random.choice(NASTY)}"]
    arguments = [*fixed, *(more if random.random() < 0.2 else ())]
    command([name, "--config", str(path), *arguments, *ONE])


def yaml_text(random: Random, folder: Path) -> None:
    """Any text is YAML or one line."""
    base = yaml.safe_dump(random.choice(_configs())).encode()
    allowed(lambda: parse_yaml(damaged(base, random).decode("utf-8", "replace"), "a.yaml"))


# --- vectors and other data -----------------------------------------------------------------------


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


def compact(random: Random, folder: Path) -> None:
    """The compact form of word vectors."""
    (folder / "text").write_bytes(_vectors()[0])
    compact_vectors(folder / "text", folder / "compact")
    file = folder / "compact" / random.choice(("words.arrow", "matrix.f32"))
    file.write_bytes(damaged(file.read_bytes(), random))
    found = allowed(lambda: open_vectors(folder / "compact"))
    if found is not None:
        found.at(found.rows(["the", "none"]))


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


# --- run folders ----------------------------------------------------------------------------------


@cache
def _run() -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest of a finished run, and its files."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "run")
        manifest = make_run(folder).record
        found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return manifest, {str(p.relative_to(folder)): p.read_bytes() for p in found}


def run_folder(random: Random, folder: Path) -> None:
    """Commands on a run folder from elsewhere, with a damaged manifest, receipt or part file."""
    manifest, files = _run()
    run = folder / "run"
    for name, content in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(content)
    write_json(run / "manifest.json", manifest)
    kind = random.random()
    if kind < 0.45:
        write_json(run / "manifest.json", changed(manifest, random))
    elif kind < 0.55:
        path = run / "manifest.json"
        path.write_bytes(damaged(path.read_bytes(), random))
    else:
        receipts = [n for n in files if "receipts/" in n]
        name = random.choice(receipts if kind < 0.9 else list(files))
        content = files[name]
        if name in receipts and random.random() < 0.8:
            write_json(run / name, changed(json.loads(content), random))
        else:
            (run / name).write_bytes(damaged(content, random))
    name = random.choice(("status", "status", "explain", "compare", "publish", "statistics",
                          "agreement", "extract-phrases", "judge"))  # fmt: skip
    other = {
        "explain": ["c-3"],
        "compare": [str(run)],
        "publish": ["--license", "mit", "--out", str(folder / "out")],
        "judge": ["--import", str(folder / "judged.tsv")],
        "status": ["--gpu-hour", "2"],
    }
    (folder / "judged.tsv").write_bytes(damaged(b"id\tscore\tjudge\nc-1\t80\tme\n", random))
    beam = () if name == "judge" else ONE
    command([name, str(run), *other.get(name, []), *beam])


def receipts(random: Random, folder: Path) -> None:
    """What a stage removes before and after it runs, by the names in damaged receipts."""
    table = pa.table({"id": ["a", "b"]})
    nothing = table.slice(0, 0).append_column("reason", pa.array([], pa.string()))
    place = str(folder / "stage")
    for part in ("part-0", "part-1"):
        shards.commit(place, part, "key", 2, [(part, table, nothing)], started=0)
    path = folder / "stage" / "receipts" / "part-0.json"
    value = changed(json.loads(path.read_text()), random)
    if isinstance(value, dict) and random.random() < 0.5:
        ups = "/".join(".." for _ in range(random.randint(1, 6)))
        value["name"] = f"{ups}/victim/a"
    write_json(path, value)
    for receipt in shards.receipts(place):
        shards.outdate(place, [receipt])
        shards.finished(place, receipt.name, "key")
    orphans.remove_orphans(place, shards.receipts(place)[:1])


def part_file(random: Random, folder: Path) -> None:
    """A damaged part file with the right checksum is read, and gets a further column."""
    table = pa.table({"id": ["a", "b", "c"], "translation_score": pa.array([0.5, 1, 2], "float")})
    content = damaged(part_files.encode(table), random)
    (folder / "part-0.parquet").write_bytes(content)
    shard = shards.Shard(str(folder / "part-0.parquet"), 3, storage.digest(content))
    allowed(lambda: shards.read_shard(shard))
    added = pa.table({"overlap": pa.array([0.5, 0.25, 0.125], "float")})
    schema = pa.schema([*table.schema, *added.schema])
    part = allowed(lambda: shards.with_columns(shard, content, added, schema))
    if part is not None:
        assert part_files.decode(part.data, ["overlap"]).equals(added)


_ATTEMPT: dict[str, Any] = {
    "key": "key", "number": 2, "worker": "w", "alone": True, "in_progress": [[3, 4], [5]],
    "suspects": [{"rows": [5], "deaths": 1}, {"rows": [1, 2], "deaths": 0}], "poison": [6],
}  # fmt: skip


def attempts(random: Random, folder: Path) -> None:
    """The records of attempts that crashed name rows that there are."""
    (folder / "attempts").mkdir()
    path = folder / "attempts" / "part-0.json"
    write_json(path, changed(_ATTEMPT, random))
    if random.random() < 0.2:
        path.write_bytes(damaged(path.read_bytes(), random))
    with mock.patch.dict(os.environ, {CRASHED: random.choice(("w", ""))}):
        found = crash_recovery.begin(str(folder), "part-0", "key", rows=8)
    assert all(found.isolated)
    assert {row for rows in (*found.isolated, found.poison) for row in rows} <= set(range(8))
    assert len(crash_recovery.unfinished(str(folder))) == 1
    found.over()


TARGETS: dict[str, tuple[Case, float]] = {
    "bitext": (bitext, 8),
    "moses": (moses, 3),
    "ingest": (ingest, 1),
    "configuration": (configuration, 4),
    "yaml": (yaml_text, 2),
    "vectors": (vectors, 3),
    "compact": (compact, 2),
    "data": (data, 3),
    "run": (run_folder, 4),
    "receipts": (receipts, 2),
    "part files": (part_file, 3),
    "attempts": (attempts, 2),
    **MODEL_TARGETS,
}
"""The targets, and how often each is tried compared with the others."""

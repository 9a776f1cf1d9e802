"""A run as the stages leave it, written without them: enough for its report and data card."""

import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import yaml

from paraloom.beam_jobs import bucket
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import commit
from paraloom.beam_jobs.transforms.criteria import decide
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.folder import versions
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import rejected_rows
from tests.shards import accepted, bucketed_pairs

SCORERS = ("translation_score", "trigram_overlap", "unigram_f1", "word_order")
ROWS, SHARDS = 360, 3
_FOUND = {"letters": {"pearson": 61.23, "spearman": 58.74}}
_STS = {"data_sets": {"images": {"pairs": 30, "models": _FOUND}}, "mean": _FOUND}
RESULTS = {"models": ["letters"], "groups": {"STS 2015": _STS}}
WORDS = "a the dog cat boy girl runs sits on in red old street house & <b>x</b> | näive".split()  # noqa: SIM905


class MadeRun(NamedTuple):
    """A run: its folder, the values of its manifest, and all scored pairs."""

    folder: str
    record: dict[str, Any]
    pairs: pa.Table


def make_run(folder: Path) -> MadeRun:
    """Write the part files and receipts of a run into a new folder; its manifest is not written."""
    pairs = scored_pairs()
    config = {
        "run": str(folder),
        "input": {"format": "tsv", "paths": ["captions.tsv"], "license": "CC BY 4.0"},
        "nmt": {"model": "somewhere"},
        "score": {"scorers": list(SCORERS)},
        "select": {
            "by": "unigram_f1",
            "deciles": [4, 5, 6, 7, 8],
            "max_tokens": 11,
            "where": ["trigram_overlap <= 0.6"],
        },
    }
    path = folder.parent / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    resolved = read_config(path)
    criteria = Run(resolved).criteria("unigram_f1", [4, 5, 6, 7, 8])
    bucketed, selected = [], []
    for i in range(SHARDS):
        part = pairs.slice(i * ROWS // SHARDS, ROWS // SHARDS)
        columns = {n: (part[n].to_numpy(), part[schema.decile(n)].to_numpy()) for n in SCORERS}
        deciles = {name: bucket._by_decile(*of) for name, of in columns.items()}
        numbers = bucket.BucketMeasurements(deciles=deciles)
        bucketed.append(accepted(folder / "bucket", f"part-{i}", part, numbers=numbers))
        reasons, _ = decide(part, criteria)
        out = pa.array(reasons != "")
        rejected = part.select(["id"]).append_column("reason", pa.array(reasons, pa.string()))
        pieces = [(f"part-{i}", part.filter(pa.array(reasons == "")), rejected.filter(out))]
        place = str(folder / "corpus"), f"part-{i}", "k"
        selected.append(commit(*place, len(part), pieces, started=0))
    summary = {score: of.model_dump() for score, of in bucket.summarise(bucketed).items()}
    rejected = {"empty reference": 30, "a reason that needs more than one line " * 2: 10}
    inputs = [{"path": "/data/captions.tsv", "bytes": 12345, "sha256": "0" * 64}]
    record = {
        "config": resolved.model_dump(),
        "versions": versions(),
        "stages": {
            "ingest": {**account(ROWS + 40, ROWS, rejected), "inputs": inputs},
            "back_translate": {**account(ROWS, ROWS, {}), "model": {"sha256": "1" * 64}},
            "bucket": {**account(ROWS, ROWS, {}), "deciles": summary},
            "select": account(ROWS, sum(r.rows_out for r in selected), rejected_rows(selected)),
            "evaluate": {"results": RESULTS, "seconds": 0.5},
        },
    }
    return MadeRun(str(folder), record, pairs)


def scored_pairs() -> pa.Table:
    """Random texts with their real scores; the deciles have no ties across their bounds."""
    rng = random.Random(5)
    reference = [[rng.choice(WORDS) for _ in range(rng.randint(4, 12))] for _ in range(ROWS)]
    translation = [[w if rng.random() < 0.7 else rng.choice(WORDS) for w in r] for r in reference]
    sides = [pa.array([" ".join(words) for words in side]) for side in (reference, translation)]
    numbers = PairScorer(SCORERS[1:]).score(*sides)
    numbers["translation_score"] = -np.random.default_rng(5).exponential(0.4, ROWS)
    columns: dict[str, Any] = {
        "id": [f"c-{i}" for i in range(ROWS)],
        "source": [f"Věta {i} o psovi." for i in range(ROWS)],
        **{"reference": sides[0], "translation": sides[1], **numbers},
    }
    return bucketed_pairs(columns, SCORERS)


def account(rows_in: int, rows_out: int, rejected: dict[str, int]) -> dict[str, Any]:
    """As the manifest has it of a stage of pairs."""
    assert rows_in == rows_out + sum(rejected.values())
    return {
        "rows_in": rows_in,
        "rows_out": rows_out,
        "rows_rejected": rows_in - rows_out,
        "rejected": rejected,
        "shards": SHARDS,
        "seconds": 1.5,
        "worker_seconds": 1.25,
    }

"""A resource of a scorer, as its stage makes it from a few references, without a run."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import yaml

from paraloom.beam_jobs.engine import schema
from paraloom.pipeline.config import read_config
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.records import PairsRecord
from paraloom.pipeline.stage import Run, Stage
from tests.shards import accepted


def ingested(folder: Path, references: Sequence[str], **score: object) -> Run:
    """A run that has ingested some references; `score` are keys of its configuration."""
    rows = len(references)
    columns = [[f"id-{i}" for i in range(rows)], ["zdroj"] * rows, list(references)]
    accepted(folder / "ingest", "part-0", pa.table(columns, schema=schema.INGEST), "key")
    values = {
        "run": str(folder),
        "input": {"format": "tsv", "paths": ["bitext.tsv"]},
        "nmt": {"model": "somewhere"},
        "score": score,
        "select": {"by": "translation_score"},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(values))
    arguments = ["--direct_num_workers", "1"]
    run = Run(read_config(folder / "run.yaml"), Manifest(str(folder)), arguments)
    run.manifest.stages["ingest"] = PairsRecord(digest=" ".join(references))
    return run


def made_resource(folder: Path, stage: Stage, scorer: str, references: Sequence[str]) -> Path:
    """What the scorer opens, after its stage has made it."""
    run = ingested(folder, references, scorers=["translation_score", scorer])
    assert stage.enabled(run.config)
    stage.make(run, "key")
    return folder / stage.name / (stage.resource or "")

"""Lets a stage make the resource of a scorer from a few references, without a whole run."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import yaml

from paraloom.beam_jobs.engine import schema
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.journal import Journal
from paraloom.pipeline.run.make import _make_stages, _State
from paraloom.pipeline.run.plan import PlannedStage
from paraloom.pipeline.run.records import PairsRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.run.stage import Stage
from tests.shards import accepted


def ingested(folder: Path, references: Sequence[str], **score: object) -> Run:
    """Return a run that has ingested references. `score` has keys of the section `score`."""
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
    run = Run.open(read_config(folder / "run.yaml"), arguments)
    run.records["ingest"] = PairsRecord(digest=" ".join(references))
    return run


def make_stage(run: Run, stage: Stage) -> None:
    """Bring a stage of the run up to date."""
    _make_stages(Journal(run), [PlannedStage(run, stage)], _State(forced=set()))


def made_resource(folder: Path, stage: Stage, scorer: str, references: Sequence[str]) -> Path:
    """Make the scorer's resource, and return the path that the scorer opens."""
    run = ingested(folder, references, scorers=["translation_score", scorer])
    assert stage.enabled(run.config)
    stage.make(run, "key")
    return folder / stage.name / (stage.resource or "")

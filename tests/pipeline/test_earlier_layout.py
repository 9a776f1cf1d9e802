from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest

from paraloom.beam_jobs.io import storage
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.names import folder_of
from tests.run_helpers import STAGES, Runs, parts, table


def as_of_0_2(run: str, stages: Iterable[str]) -> None:
    """Give a run's files the names that version 0.2 gave them."""

    def move(source: str, target: str) -> None:
        storage.copy(source, target)
        storage.remove(source)

    for stage in stages:
        folder = storage.join(run, folder_of(stage))
        for kind in ("receipts", "rejected"):
            for name in storage.names(f"{folder}/_{kind}"):
                move(f"{folder}/_{kind}/{name}", f"{folder}/{kind}/{name}")
    for name in ("README.md", "corpus.tsv.gz"):
        move(f"{run}/{name}", f"{run}/corpus/{name}")


def test_a_run_of_version_0_2_is_up_to_date(a_run: Path, runs: Runs) -> None:
    before = parts(a_run)
    as_of_0_2(str(a_run / "run"), STAGES)
    for stage in STAGES:
        (a_run / "run" / folder_of(stage) / "_receipts").rmdir()
    assert runs("select", a_run) == []
    assert parts(a_run) == before
    assert (a_run / "run" / "README.md").exists()


@pytest.mark.parametrize("stored", ["s3", "gs"], indirect=True)
def test_also_in_a_store(a_run: Path, stored: tuple[str, list[str]]) -> None:
    run = f"{stored[0]}/run"
    files = [path for path in (a_run / "run").rglob("*") if path.is_file() and path.stat().st_size]
    for path in files:
        storage.write_bytes(f"{run}/{path.relative_to(a_run / 'run')}", path.read_bytes())
    before = {entry.path for entry in storage.match(f"{run}/**")}
    as_of_0_2(run, STAGES)
    assert {entry.path for entry in storage.match(f"{run}/**")} != before
    Manifest(run)
    assert {entry.path for entry in storage.match(f"{run}/**")} == before


def test_readers_of_data_sets_see_the_rows_of_a_stage(a_run: Path) -> None:
    for stage in STAGES:
        found = pd.read_parquet(a_run / "run" / folder_of(stage))
        assert found["id"].tolist() == table(a_run, stage)["id"].to_pylist(), stage

"""`paraloom select --dry-run` counts and shows what the run selects, and writes nothing."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs.io.shards import read_shard, receipts
from paraloom.beam_jobs.select import preview
from paraloom.models.errors import UserError
from paraloom.pipeline.commands.corpus.select import sample, scored
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.records import PairsRecord
from tests.run_helpers import Capsys, again


def read(folder: Path, *changes: str) -> Config:
    return read_config(str(folder / "config.yaml"), changes)


def state(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("change", ["select.max_tokens=null", "select.where=['trigram_overlap<1']"])
@pytest.mark.parametrize("size", [5, None])
def test_a_dry_run_counts_what_the_run_selects(
    a_run: Path, change: str, size: int | None, capsys: Capsys
) -> None:
    changes = ["--set", change, "--set", f"select.size={size or 'null'}"]
    before = state(a_run)
    assert again("select", a_run, *changes, "--dry-run", "--show", "3") == 0
    out = capsys.readouterr().out
    assert state(a_run) == before
    shards, criteria = scored(read(a_run, *changes[1::2]))
    found = preview(shards, criteria)
    assert f"{found.counts['selected']:,}" in out
    assert "translation" in out

    assert again("select", a_run, *changes) == 0
    corpus = Manifest(str(a_run / "run")).stages["select"]
    assert isinstance(corpus, PairsRecord)
    assert found.counts == {**corpus.rejected, "selected": corpus.rows_out}


@given(st.integers(0, 200))
@settings(max_examples=10, deadline=None)
def test_shown_pairs_are_selected(finished_run: Path, size: int) -> None:
    shards, criteria = scored(read(finished_run))
    found = preview(shards, criteria)
    shown = sample(shards, found, size, criteria)
    assert shown.num_rows == min(size, found.counts["selected"])
    there = [read_shard(s) for r in receipts(str(finished_run / "run/corpus")) for s in r.shards]
    assert texts(shown) <= texts(*there)


def texts(*tables: pa.Table) -> Counter[tuple[str, str]]:
    sides = ([t[side].to_pylist() for side in ("reference", "translation")] for t in tables)
    return Counter(pair for side in sides for pair in zip(*side, strict=True))


def test_a_dry_run_needs_deciles_of_this_configuration(a_run: Path, capsys: Capsys) -> None:
    other = ["--set", "score.scorers=[trigram_overlap,unigram_f1]"]
    assert again("select", a_run, *other, "--dry-run") == 2
    assert "--dry-run needs the stage bucket of this configuration" in capsys.readouterr().err
    assert again("select", a_run, "--show", "3") == 2
    assert "--show is for --dry-run" in capsys.readouterr().err
    labelled = ["--set", "select.labelled=x.tsv", "--set", "select.by=auto"]
    with pytest.raises(UserError, match="needs the stage auto_select"):
        scored(read(a_run, *labelled[1::2]))

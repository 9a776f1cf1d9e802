"""Named selections, from the configuration or a command; what `select --dry-run` counts."""

import json
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs.transforms.criteria import preview
from paraloom.models.errors import UserError
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.corpus.select import sample, scored
from paraloom.pipeline.commands.run.compare import compare
from paraloom.pipeline.commands.summary import show_summary
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.config.read import parse_config
from paraloom.pipeline.run.folder import with_selections
from paraloom.pipeline.stages import TARGETS, folder_of
from paraloom.pipeline.stages.select import _common
from tests.pipeline.pages.made_run import RESULTS
from tests.run_helpers import (
    ONE,
    Capsys,
    Patch,
    Runs,
    WriteConfig,
    again,
    manifest,
    one_line,
    ran,
    record_of,
    refuses,
    small_config,
    table,
    write_record,
)

STRICT: dict[str, Any] = {"deciles": [2, 3], "where": ["reference_tokens >= 8"]}
SET = ["--set", "select.deciles=[2, 3]", "--set", "select.where=['reference_tokens >= 8']"]


def files(folder: Path, stage: str) -> dict[str, bytes]:
    found = (folder / "run" / folder_of(stage)).iterdir()
    return {p.name: p.read_bytes() for p in found if p.suffix in (".parquet", ".gz")}


def keys(folder: Path) -> dict[str, str]:
    return {name: of["key"] for name, of in manifest(folder)["stages"].items()}


def test_a_selection_has_the_rows_of_a_run_that_selects_so(
    a_run: Path, write_config: WriteConfig, capsys: Capsys, runs: Runs
) -> None:
    before, own = keys(a_run), files(a_run, "corpus")
    write_config(a_run, select={"named": {"strict": STRICT, "loose": {"deciles": None}}})
    assert again("select", a_run) == 0
    made = ["selections/strict/select", "selections/loose/select"]
    assert set(ran(capsys.readouterr().err)) == set(made)
    found = manifest(a_run)["stages"]
    assert {name: of["key"] for name, of in found.items() if name not in made} == before
    assert files(a_run, "corpus") == own
    strict = files(a_run, made[0])
    record = found[made[0]]
    assert record["rows_in"] == record["rows_out"] + record["rows_rejected"]
    assert record["rows_out"] == table(a_run, made[0]).num_rows
    assert record["rejected"]["not reference_tokens >= 8"]
    card = (a_run / "run/selections/strict/README.md").read_text("utf-8")
    assert "deciles 2–3 of `trigram_overlap`, `reference_tokens >= 8`" in card
    assert f"{record['rows_out']} pairs of English" in card and card.count("selections/") == 0

    assert runs("select", a_run) == []
    place = a_run / "run" / folder_of(made[0])
    (place / "_receipts").rename(a_run / "lost")  # as if killed at the start
    assert runs("select", a_run) == made[:1]
    assert files(a_run, made[0]) == strict

    earlier, strict_ids = ({*table(a_run, of)["id"].to_pylist()} for of in ("corpus", made[0]))
    write_config(a_run, select=STRICT)
    capsys.readouterr()
    assert again("select", a_run) == 0
    assert files(a_run, "corpus") == strict
    record = manifest(a_run)["stages"]["select"]
    counts = len(earlier & strict_ids), len(earlier)
    assert (record["still"], record["earlier"]) == counts
    said = "{:,} of {:,} earlier pairs are still in the corpus.".format(*counts)
    assert said in capsys.readouterr().out
    assert "earlier" not in found["select"] and "earlier" not in found[made[0]]


def test_variables_of_earlier_selections(tmp_path: Path, monkeypatch: Patch) -> None:
    own = {"where": ['domain != "${DOMAIN}"'], "size": 5}
    monkeypatch.setenv("DOMAIN", "news")
    config = small_config(tmp_path / "run", "a.tsv")
    config["input"]["keep"] = ["domain"]
    named = {**config, "select": {**config["select"], "named": {"n": own}}}
    write_record(tmp_path / "run", {"config": parse_config(named).written, "stages": {}})
    found = with_selections(parse_config(config))
    assert found.select.selections["n"].where == ['domain != "news"']
    monkeypatch.delenv("DOMAIN")
    with refuses(r"select\.named\.n\.where\[0\]: the environment variable DOMAIN is not set"):
        with_selections(parse_config(config))
    assert not with_selections(parse_config(config, ["select.named.n=null"])).select.selections


def test_many_shards_are_compared_with_a_large_earlier_corpus(monkeypatch: Patch) -> None:
    """The earlier ids are sorted once, not for each shard."""
    sort = Mock(wraps=np.sort)
    monkeypatch.setattr(np, "sort", sort)
    earlier = np.random.default_rng(1).integers(2**64, size=1_000_000, dtype=np.uint64)
    blocks = [np.append(block[:3], np.uint64(n)) for n, block in enumerate(np.split(earlier, 500))]
    assert _common(earlier, blocks) == 1500
    assert sort.call_count == 1


def test_a_named_selection_stays_until_forgotten(a_run: Path, capsys: Capsys, runs: Runs) -> None:
    own = files(a_run, "corpus")
    assert again("select", a_run, "--name", "strict", *SET) == 0
    path = "selections/strict/select"
    assert ran(capsys.readouterr().err) == [path]
    assert manifest(a_run)["config"]["select"]["named"] == {"strict": STRICT}
    more = ["--name", "more", "--set", "select.where+=reference_tokens >= 9", "--dry-run"]
    assert again("select", a_run, *more) == 0
    assert "not reference_tokens >= 9" in capsys.readouterr().out
    report = (a_run / "run/report/index.html").read_text("utf-8")
    assert "pairs in the corpus" in report and path in report

    assert runs("select", a_run, "--set", "select.deciles=[1]") == ["select"]
    assert "config" not in manifest(a_run)["stages"][path]  # it is of the present configuration
    config = read_config(str(a_run / "config.yaml"))
    assert scored(config, "strict")[1].deciles == (2, 3)
    assert again("select", a_run) == 0
    assert files(a_run, "corpus") == own and path in keys(a_run)

    empty = ["--name", "empty", "--set", "select.where=['reference_tokens > 999']"]
    assert again("select", a_run, *empty) == 2
    assert again("select", a_run) == 2  # the run has it
    error = capsys.readouterr().err
    assert error.count("paraloom: select.named.empty: select: none of ") == 2
    assert "`--set select.named.empty=null` removes the selection from the run" in error
    assert again("select", a_run, "--set", "select.named.empty=null") == 0
    assert again("select", a_run, "--set", "select.named.strict=null") == 0
    assert path not in manifest(a_run)["planned"]
    assert again("select", a_run, "--name", "strict") == 2
    assert again("select", a_run, "--name", "") == 2
    assert "the run has no selection 'strict', only the corpus" in capsys.readouterr().err


def test_the_encoder_is_trained_on_a_selection(
    a_run: Path, write_config: WriteConfig, capsys: Capsys, runs: Runs
) -> None:
    """And commands take its name."""
    run = str(a_run / "run")
    embeddings = {"dim": 8, "epochs": 1, "batch_size": 2}
    named = {"named": {"strict": STRICT}}
    write_config(a_run, select=named, embeddings=embeddings)
    assert again("train-embeddings", a_run, "--selection", "strict") == 0
    of_it = [f"selections/strict/{name}" for name in ("select", "embeddings")]
    assert ran(capsys.readouterr().err) == of_it
    later, planned = TARGETS["corpus"][1:], manifest(a_run)["planned"]
    assert "embeddings" in planned
    assert runs("corpus", a_run) == [name for name in later if name in planned]
    rows = manifest(a_run)["stages"][of_it[0]]["rows_out"]
    scored = manifest(a_run)["stages"]["score"]["rows_out"]
    assert runs(
        "train-embeddings", a_run, select=named, embeddings={**embeddings, "selection": "strict"}
    ) == ["embeddings"]
    places = [a_run / "run" / place for place in ("embeddings", of_it[1])]
    own, strict = ((place / "model.safetensors").read_bytes() for place in places)
    assert own == strict
    for place in places:
        card = (place / "README.md").read_text("utf-8")
        assert f"corpus of the run `run-strict` ({rows} pairs)" in card

    assert [c.rows[0] for c in compare(run, run, "strict")] == [rows, scored - rows]
    arguments = [run, "--selection", "strict", "--license", "cc-by-4.0", "--held-out", "0"]
    assert main(["publish", *arguments, *ONE]) == 0
    about = json.loads((a_run / "run/release-strict/provenance/release.json").read_text())
    assert about["rows"] == rows
    capsys.readouterr()
    for wrong in (["compare", run, run], ["publish", run]):
        assert main([*wrong, "--selection", "stirct", *ONE]) == 2
        assert "the run has no selection 'stirct', only strict; `paraloom sel" in one_line(capsys)
    assert main(["publish", f"{run}-none", "--selection", "strict"]) == 2
    assert "run-none: no run with a corpus here" in one_line(capsys)


def test_results_of_the_encoder_of_a_selection_are_printed(capsys: Capsys) -> None:
    stages = {"selections/strict/evaluate": {"results": RESULTS}}
    config: dict[str, Any] = {"select": {"named": {"strict": {}}}}
    show_summary("a", record_of({"config": config, "stages": stages, "wanted": [*stages]}), set())
    out = " ".join(capsys.readouterr().out.split())
    assert "strict, letters: correlation with human scores × 100" in out


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ({"named": {"a/b": {}}}, "select.named: 'a/b' cannot be the name of a selection"),
        ({"named": {"a": {"decils": [1]}}}, "select.named.a.decils: unknown key"),
        ({"named": {"a": {"where": ["x <= 1"]}}}, r"select.named.a.where\[0\]: x is not a column"),
        ({"named": {"a": {"by": "x"}}}, "select.named.a.by: x is not among score.scorers"),
        ({"named": {"a": {"named": {"b": {}}}}}, "select.named.a.named: a named selection"),
    ],
)
def test_wrong_keys_are_named(
    tmp_path: Path, write_config: WriteConfig, select: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_config(str(write_config(tmp_path, select=select)))


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
    corpus = manifest(a_run)["stages"]["select"]
    assert found.counts == {**corpus["rejected"], "selected": corpus["rows_out"]}


@given(st.integers(0, 200))
@settings(max_examples=10, deadline=None)
def test_shown_pairs_are_selected(finished_run: Path, size: int) -> None:
    shards, criteria = scored(read(finished_run))
    found = preview(shards, criteria)
    shown = sample(shards, found, size, criteria)
    assert shown.num_rows == min(size, found.counts["selected"])
    assert texts(shown) <= texts(table(finished_run, "corpus"))


def texts(pairs: pa.Table) -> Counter[tuple[str, str]]:
    return Counter(zip(*(pairs[s].to_pylist() for s in ("reference", "translation")), strict=True))


def test_a_dry_run_needs_deciles_of_this_configuration(a_run: Path, capsys: Capsys) -> None:
    other = ["--set", "score.scorers=[trigram_overlap,unigram_f1]"]
    assert again("select", a_run, *other, "--dry-run") == 2
    assert "--dry-run needs the stage bucket of this configuration" in capsys.readouterr().err
    assert again("select", a_run, "--show", "3") == 2
    assert "--show and --json need --dry-run" in capsys.readouterr().err
    labelled = [f"select.labelled={a_run}/x.tsv", "select.by=auto"]
    with pytest.raises(UserError, match=r"select.labelled: .*x.tsv does not exist"):
        scored(read(a_run, *labelled))
    (a_run / "x.tsv").write_text("5\ta dog\ta hound\n1\ta dog\ta cat\n")
    with pytest.raises(UserError, match="needs the stage auto_select"):
        scored(read(a_run, *labelled))
    with pytest.raises(UserError, match=r"select.exclude\[0\]: nowhere.tsv does not exist"):
        scored(read(a_run, "select.exclude=[nowhere.tsv]"))

"""`loop.rounds`: what each round leaves, what is kept of them, and what runs again when."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.transforms.criteria import Criteria, decide
from paraloom.models.embeddings.model import load_encoder
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run.status import status
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import TARGETS, folder_of, loop
from paraloom.pipeline.stages.select import criteria as criteria_of
from paraloom.pipeline.stages.selection import auto_select
from tests.once import made_once
from tests.run_helpers import (
    Capsys,
    Patch,
    Runs,
    WriteConfig,
    again,
    changed_manifest,
    kill_in,
    manifest,
    part_file,
    parts,
    ran,
    table,
)
from tests.sample import SIMILARITY

FIRST = ["rounds/1/select", "rounds/1/embeddings", "rounds/1/evaluate"]
RESULT = ["loop", *TARGETS["corpus"]]


def of_round(number: int) -> list[str]:
    stages = ("score", "bucket", "select", "embeddings", "evaluate")
    return [f"rounds/{number}/{stage}" for stage in stages]


def write_labelled(folder: Path) -> None:
    """Three data sets of the sample's labelled pairs, as SemEval's of three years."""
    rows = [row for path in sorted(SIMILARITY.rglob("*.tsv")) for row in path.open()]
    for number, (year, name) in enumerate(((2012, "OnWN"), (2014, "images"), (2015, "images"))):
        (folder / str(year)).mkdir()
        text = "".join(rows[150 * number :][:150])
        (folder / str(year) / f"{name}.tsv").write_text(text)


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of the configuration of the other tests' run: two rounds, small encoders."""
    sts = made_once(tmp_path_factory, "labelled", write_labelled)
    return {
        "select": {
            "deciles": [2, 3, 4, 5, 6],
            "labelled": [str(sts / "2012"), str(sts / "2014" / "images.tsv")],
            "where": ["translation_score >= -1.2"],
        },
        "embeddings": {"dim": 16, "epochs": 1, "batch_size": 10, "mega_batch": 2},
        "evaluate": {"sts": str(sts)},
        "loop": {"rounds": 2},
    }


@pytest.fixture(scope="module")
def grown(
    write_config: WriteConfig, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """A run that grew from a copy of another one under a changed configuration."""

    def grow(name: str, before: Path, **changes: Any) -> Path:
        def make(folder: Path) -> None:
            shutil.copytree(before / "run", folder / "run")
            write_config(folder, **changes)
            assert again("corpus", folder) == 0

        return made_once(tmp_path_factory, name, make)

    return grow


@pytest.fixture(scope="module")
def one_round(finished_run: Path, grown: Callable[..., Path], changes: dict[str, Any]) -> Path:
    """A finished run with one round; not to be changed."""
    return grown("one-round", finished_run, **{**changes, "loop": {"rounds": 1}})


@pytest.fixture(scope="module")
def two_rounds(one_round: Path, grown: Callable[..., Path], changes: dict[str, Any]) -> Path:
    """The same with a second round, as a user adds it; not to be changed."""
    return grown("two-rounds", one_round, **changes)


@pytest.fixture
def copy(
    two_rounds: Path, write_config: WriteConfig, changes: dict[str, Any], tmp_path: Path
) -> Path:
    shutil.copytree(two_rounds / "run", tmp_path / "run")
    write_config(tmp_path, **changes)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    """Every file of results by its bytes, receipts (which say when) aside."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in (folder / "run").rglob("*")
        if path.name in ("corpus.tsv.gz", "model.safetensors", "evaluation.json", "README.md")
    }
    return parts(folder) | found


def test_a_round_selects_by_the_encoder_before(two_rounds: Path, changes: dict[str, Any]) -> None:
    """In a folder of its own."""
    run = two_rounds / "run"
    first_has = sorted(path.name for path in (run / "rounds/1").iterdir())
    assert first_has == ["corpus", "corpus.tsv.gz", "embeddings", "evaluate", "evaluation.json"]
    for name in ("score", "bucket", "corpus", "embeddings", "evaluation.json"):
        assert (run / "rounds/2" / name).exists()
    first, second = (table(two_rounds, place) for place in ("bucket", "rounds/2/bucket"))
    more = {"encoder_similarity", "encoder_similarity_decile"}
    assert set(second.column_names) - set(first.column_names) == more
    assert second.select(first.column_names).equals(first)
    encoder = load_encoder(run / "rounds/1/embeddings")
    texts = (second[side].combine_chunks() for side in ("reference", "translation"))
    similarity = encoder.similarity(*texts)
    assert second["encoder_similarity"].to_numpy() == pytest.approx(similarity, abs=1e-6)
    corpus = table(two_rounds, "rounds/2/corpus")
    assert set(corpus["encoder_similarity_decile"].to_pylist()) == set(changes["select"]["deciles"])
    assert min(corpus["translation_score"].to_pylist()) >= -1.2
    criteria = criteria_of(Run(read_config(two_rounds / "config.yaml")).children["rounds/2"])
    assert isinstance(criteria, Criteria)
    reasons, _ = decide(second, criteria)
    assert corpus["id"].to_pylist() == second["id"].filter(reasons == "").to_pylist()


def labels(folder: Path, number: int, path: Path) -> None:
    """Labelled pairs on which the encoder of a round is perfect."""
    pairs = table(folder, "bucket").slice(0, 60)
    texts = [pairs[side].combine_chunks() for side in ("reference", "translation")]
    encoder = load_encoder(folder / "run" / f"rounds/{number}/embeddings")
    cosines = 2.5 + 2.5 * encoder.similarity(*texts)
    rows = zip(cosines, *(side.to_pylist() for side in texts), strict=True)
    path.write_text("".join(f"{label:.9f}\t{a}\t{b}\n" for label, a, b in rows))


def test_whichever_round_is_best_is_kept_and_said(
    copy: Path, write_config: WriteConfig, changes: dict[str, Any], capsys: Capsys
) -> None:
    best = 3 - manifest(copy)["stages"]["loop"]["best"]
    labels(copy, best, copy / "labels.tsv")
    select = {**changes["select"], "labelled": str(copy / "labels.tsv")}
    write_config(copy, **{**changes, "select": select})
    assert again("corpus", copy) == 0
    captured = capsys.readouterr()
    assert set(ran(captured.err)) <= set(RESULT)
    loop = manifest(copy)["stages"]["loop"]
    assert loop["best"] == best
    assert loop["labelled"][best - 1] == pytest.approx(100, abs=1e-3)
    assert loop["labelled"][2 - best] < 99.9
    run = copy / "run"
    for name in ("corpus.tsv.gz", "embeddings/model.safetensors", "evaluation.json"):
        assert (run / name).read_bytes() == (run / f"rounds/{best}" / name).read_bytes()
    assert table(copy, "corpus").equals(table(copy, f"rounds/{best}/corpus"))
    said = f"Round {best} of 2 is best: 100.00 on the labelled pairs"
    for text in (captured.out, (run / "report/index.html").read_text()):
        assert said in " ".join(text.split())
    card = " ".join((run / "README.md").read_text().split())
    assert said in card
    assert ("`encoder_similarity_decile`" in card) == (best == 2)
    rates = {stage.name: stage.rate for stage in status(str(run))}
    assert rates["select"] is None and rates[f"rounds/{best}/select"]
    score = "encoder_similarity" if best == 2 else "trigram_overlap"
    chosen = set(table(copy, "corpus")["id"].to_pylist())
    for row in table(copy, "rounds/2/bucket").slice(40, 3).to_pylist():
        capsys.readouterr()
        assert main(["explain", str(copy / "run"), row["id"]]) == 0
        told = f"in the corpus: deciles 2–6 of `{score}`" in capsys.readouterr().out
        assert told == (row["id"] in chosen)


@pytest.mark.parametrize(
    ("pearson", "means", "best"),
    [
        ([(60, 80), (80, 60), (70, 70)], [70.0, 70.0, 70.0], 1),
        ([(60, 80), (90, 90), (90, 90)], [70.0, 90.0, 90.0], 2),
        ([(90, np.nan), (40, 44), (46, 46)], [45.0, 42.0, 46.0], 3),  # constant: 0
    ],
)
def test_of_equal_rounds_the_first_is_best(
    tmp_path: Path,
    monkeypatch: Patch,
    write_config: WriteConfig,
    pearson: list[tuple[float, float]],
    means: list[float],
    best: int,
) -> None:
    labelled = [SimpleNamespace(name=i, first=range(n)) for i, n in enumerate((3, 90))]
    number = {f"{tmp_path}/run/rounds/{n + 1}/embeddings": n for n in range(3)}
    monkeypatch.setattr(auto_select, "read_labelled", lambda paths: labelled)
    model = "paraloom.models.embeddings.model.load_encoder"
    monkeypatch.setattr(model, lambda path: SimpleNamespace(embed=number[path]))
    monkeypatch.setattr(
        "paraloom.models.embeddings.applications.evaluation.agreement",
        lambda embed, data: SimpleNamespace(pearson=pearson[embed][data.name]),
    )
    path = write_config(tmp_path, loop={"rounds": 3}, select={"labelled": "x.tsv"})
    run = Run(read_config(path))
    found = loop.make(run, "key")
    assert (found.labelled, found.best) == (means, best)
    assert (found.data_sets, found.pairs) == (2, 93)


def test_three_rounds_and_back_to_two_and_to_one(
    copy: Path, changes: dict[str, Any], one_round: Path, two_rounds: Path, runs: Runs
) -> None:
    assert runs("corpus", copy, **{**changes, "loop": {"rounds": 3}}) == [*of_round(3), *RESULT]
    third = table(copy, "rounds/3/bucket")
    assert third.column_names == table(copy, "rounds/2/bucket").column_names
    assert third["encoder_similarity"] != table(copy, "rounds/2/bucket")["encoder_similarity"]
    of_third = {name: data for name, data in files(copy).items() if name.startswith("run/rounds/3")}
    assert runs("corpus", copy, **changes) == RESULT
    assert files(copy) == files(two_rounds) | of_third
    record = copy / "run/rounds/1/corpus/_stage.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "versions": {"python": "3"}}))
    assert runs("corpus", copy, **{**changes, "loop": {"rounds": 1}}) == []  # it is only copied
    copied = json.loads((copy / "run/corpus/_stage.json").read_text())
    assert copied["versions"] == {"python": "3"}
    now = files(copy)
    assert {name: data for name, data in now.items() if "/rounds/" not in name} == files(one_round)
    assert "loop" not in (copy / "run/report/index.html").read_text().split("Configuration")[0]


def test_only_a_deleted_part_file_is_made_again(copy: Path, two_rounds: Path, runs: Runs) -> None:
    for stage in ("select", "rounds/2/score"):
        part_file(copy / "run" / folder_of(stage), "part-00000-00003").unlink()
        assert runs("corpus", copy) == [stage]
    assert files(copy) == files(two_rounds)


@pytest.fixture
def to_continue(
    one_round: Path, write_config: WriteConfig, changes: dict[str, Any], tmp_path: Path
) -> Path:
    """A copy of the run with one round, to be continued with a second one."""
    shutil.copytree(one_round / "run", tmp_path / "run")
    write_config(tmp_path, **changes)
    return tmp_path


def test_a_second_round_runs_nothing_of_the_first_also_if_it_is_killed(
    one_round: Path, two_rounds: Path, to_continue: Path, runs: Runs
) -> None:
    assert not (to_continue / "run" / "rounds").exists()
    begun = kill_in("rounds/2/embeddings.training", to_continue, "*", command="corpus")
    assert begun == of_round(2)[:4]
    assert runs("corpus", to_continue) == [*of_round(2)[3:], *RESULT]
    assert files(to_continue) == files(two_rounds)
    old, new = manifest(one_round)["stages"], manifest(to_continue)["stages"]
    for name in FIRST:
        assert new[name] == old[name.rsplit("/", 1)[1]]
    assert runs("corpus", to_continue) == []


def test_killed_while_the_best_round_is_copied(
    copy: Path, two_rounds: Path, monkeypatch: Patch, capsys: Capsys, runs: Runs
) -> None:
    """A part file of the corpus is the last thing that is done."""
    with changed_manifest(copy) as content:
        for stage in RESULT[1:]:
            del content["stages"][stage]
    shutil.rmtree(copy / "run" / "corpus")

    def stop(target: str, *data: Any, **how: Any) -> Any:
        if "/part-00000-00004" in target:
            raise KeyboardInterrupt
        return whole(target, *data, **how)

    with monkeypatch.context() as broken:
        whole = storage.write_bytes
        broken.setattr(storage, "write_bytes", stop)
        assert again("corpus", copy) == 130
    assert ran(capsys.readouterr().err) == ["select"]
    assert "select" not in manifest(copy)["stages"]
    assert runs("corpus", copy) == RESULT[1:]
    assert files(copy) == files(two_rounds)


def test_rounds_choose_on_their_own(to_continue: Path, changes: dict[str, Any], runs: Runs) -> None:
    auto = {"by": "auto", "auto": {"pairs": 40, "seeds": 1}}
    begun = runs("corpus", to_continue, **{**changes, "select": {**changes["select"], **auto}})
    one, two = begun.index("auto_select"), begun.index("rounds/2/auto_select")
    assert begun.index("rounds/1/select") in range(one, two)
    assert begun.index("rounds/2/select") > two
    stages = manifest(to_continue)["stages"]
    chosen = [stages[name]["chosen"] for name in ("auto_select", "rounds/2/auto_select")]
    assert [choice["scorer"] for choice in chosen] == ["translation_score", "encoder_similarity"]
    for number, choice in enumerate(chosen, 1):
        corpus = table(to_continue, f"rounds/{number}/corpus")
        deciles = set(corpus[f"{choice['scorer']}_decile"].to_pylist())
        assert deciles <= set(choice["deciles"])
    report = (to_continue / "run/report/index.html").read_text()
    for number in (1, 2):
        assert f"Automatic selection of deciles, round {number}" in report


def test_force_makes_the_corpus_of_every_round(copy: Path, two_rounds: Path, runs: Runs) -> None:
    assert runs("select", copy, "--force") == [FIRST[0], of_round(2)[2], "select"]
    assert runs("corpus", copy) == []  # the same rows
    assert files(copy) == files(two_rounds)

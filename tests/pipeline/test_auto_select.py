"""Automatic selection on a corpus in which the quality of each decile is known."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs.engine.shards import Shard, content_key
from paraloom.beam_jobs.probes import Probing
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config
from paraloom.pipeline.pages.describe import selection_lines
from paraloom.pipeline.run.records import AutoSelectRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages.selection import auto_select
from tests.run_helpers import Capsys, Runs, WriteConfig, again, manifest, one_line, ran
from tests.shards import bucketed_pairs, cut
from tests.small_model import SEED

SCORERS = ["trigram_overlap", "translation_score"]
ROWS, WORDS = 1500, 24


def sentence(numbers: np.ndarray, kind: str) -> str:
    return " ".join(f"{kind}{n}" for n in numbers)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Shard]:
    """Translations say `b…` for `a…`. By trigram overlap, deciles 4 to 6 are right, the farther
    from them the more words are wrong; translation score tells nothing."""
    random = np.random.default_rng(1)
    columns: dict[str, list[str]] = {"reference": [], "translation": []}
    decile = np.arange(ROWS) * 10 // ROWS
    for k in decile.tolist():
        words = random.integers(0, WORDS, 8)
        wrong = random.random(8) < max(0, abs(k - 5) - 1) / 3
        said = np.where(wrong, random.integers(0, WORDS, 8), words)
        columns["reference"].append(sentence(words, "a"))
        columns["translation"].append(sentence(said, "b"))
    order = random.permutation(ROWS)
    scores = {"trigram_overlap": decile / 10, "translation_score": -np.argsort(order) / ROWS}
    table = bucketed_pairs({**columns, **scores}, SCORERS)
    return cut(tmp_path_factory.mktemp("bucket"), table.take(pa.array(order)), 500)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How many of the words of one side the other side has, in the other language."""
    random = np.random.default_rng(2)
    folder = tmp_path_factory.mktemp("labelled")
    for name in ("one", "two"):
        lines = []
        for _ in range(150):
            words, other = random.permutation(WORDS).reshape(2, -1)[:, :5]
            same = random.integers(0, 6)
            other[:same] = words[:same]
            lines.append(f"{same}\t{sentence(words, 'a')}\t{sentence(other, 'b')}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder


def selected(
    shards: list[Shard], labelled: Path, folder: Path, *, workers: int = 1, **select: Any
) -> AutoSelectRecord:
    """What the stage finds in a run in this folder, as the manifest keeps it."""
    auto = {"seeds": 2, "pairs": 400, **select.pop("auto", {})}
    config = {
        "run": str(folder),
        "seed": SEED,
        "input": {"format": "tsv", "paths": ["a.tsv"]},
        "score": {"scorers": SCORERS},
        "select": {"by": "auto", "labelled": str(labelled), "max_tokens": None, "auto": auto}
        | select,
        "embeddings": {"dim": 60},
    }
    run = Run(Config.of(config), [f"--direct_num_workers={workers}"])
    run.shards = lambda stage: shards  # type: ignore[method-assign]
    made = auto_select.make(run, content_key(config["select"]))
    return AutoSelectRecord.model_validate_json(json.dumps(made.json_values()))


@pytest.fixture(scope="module")
def record(
    shards: list[Shard], labelled: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[AutoSelectRecord, Path]:
    folder = tmp_path_factory.mktemp("choice")
    return selected(shards, labelled, folder), folder


def test_it_finds_the_deciles_that_are_right(record: tuple[AutoSelectRecord, Path]) -> None:
    found, _ = record
    assert found.chosen in found.trials and found.chosen.scorer == "trigram_overlap"
    assert {4, 5, 6} <= set(found.chosen.deciles) or {4, 5, 6} >= set(found.chosen.deciles)
    assert not {0, 1, 9} & set(found.chosen.deciles)
    assert found.chosen.mean == max(trial.mean for trial in found.trials)
    every = {tuple(range(low, high)) for high in range(11) for low in range(high)}
    assert {trial.deciles for trial in found.trials} == every
    for trial in found.trials:
        assert trial.pairs == min(150 * len(trial.deciles), 400) and len(trial.scores) == 2
    means = {trial.deciles: trial.mean for trial in found.trials}
    assert np.mean([means[k,] for k in (4, 5, 6)]) > 10 + np.mean([means[k,] for k in (0, 1, 8, 9)])
    first, second, everything = selection_lines(found)
    assert first.startswith("Chosen: trigram overlap, decile") and second.startswith(
        "Second best: "
    )
    assert everything.startswith("All pairs: trigram overlap, deciles 0–9: ")


def test_what_was_trained_is_not_trained_again(
    shards: list[Shard], labelled: Path, record: tuple[AutoSelectRecord, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "choice"
    shutil.copytree(record[1], folder)

    def kept() -> dict[str, int]:
        return {p.stem: p.stat().st_mtime_ns for p in folder.glob("choice/probes/_receipts/*.json")}

    before = kept()
    assert len(before) == 110
    last = f"345.{SEED + 1}"
    (folder / f"choice/probes/_receipts/{last}.json").unlink()  # as if it had been killed there
    assert selected(shards, labelled, folder) == record[0]
    after = kept()
    assert {name for name in after if after[name] != before[name]} == {last}


def test_another_score_and_two_workers(shards: list[Shard], labelled: Path, tmp_path: Path) -> None:
    """About 30 pairs of a decile of the overlap meet the condition, and all 150 of the best two
    deciles of the score; no more are tried than the corpus may have."""
    few: dict[str, Any] = {"where": ["translation_score >= -0.2"], "size": 20}
    few["auto"] = {"seeds": 1, "pairs": 60, "score": "translation_score"}
    folders = {workers: tmp_path / str(workers) for workers in (1, 2)}
    found = [selected(shards, labelled, of, workers=n, **dict(few)) for n, of in folders.items()]
    one, two = found
    assert one.trials == two.trials
    assert all(trial.pairs == 20 and trial.deciles[-1] > 7 for trial in one.trials)
    assert {trial.scorer for trial in one.trials} == {"translation_score"}


def test_pairs_of_no_use(shards: list[Shard], labelled: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="fewer than 2 pairs meet the conditions"):
        selected(shards, labelled, tmp_path, max_tokens=3)
    path = tmp_path / "sample.tsv"
    path.write_text("3\ta dog\ta cat\n3\tone\ttwo\n")
    bitext = {"format": "tsv", "paths": ["-"]}
    config = Config.of({"run": "run", "input": bitext, "select": {"labelled": str(path)}})
    with pytest.raises(UserError, match=r"^select\.labelled: .*sample have the score 3"):
        auto_select.read_labelled(config)


def test_a_key_for_everything_that_matters(shards: list[Shard]) -> None:
    sides = [pa.array(["a b", "c d"]) for _ in range(2)]
    data = LabelledPairs(group="", name="", first=sides[0], second=sides[1], scores=np.arange(2.0))
    given: dict[str, Any] = {"shards": tuple(shards), "score": "a", "most": 9, "labelled": [data]}
    given["options"] = EmbeddingOptions(dim=9)
    others: list[dict[str, Any]] = [
        {}, {"shards": tuple(shards[:1])}, {"score": "b"}, {"most": 8},
        {"options": EmbeddingOptions(dim=8)}, {"labelled": [data, data]}, {"vectors": "digest"},
        {"language": "de"},
    ]  # fmt: skip
    assert len({Probing(**{**given, **other}).key for other in others}) == len(others)


AUTO = ["--set", "select.by=auto", "--set"]


def test_what_it_needs_is_missed_before_any_work(
    write_config: WriteConfig, tmp_path: Path, capsys: Capsys
) -> None:
    write_config(tmp_path)
    assert again("select", tmp_path, *AUTO, "select.labelled=nowhere.tsv") == 2
    assert "select.labelled: nowhere.tsv does not exist" in one_line(capsys)
    labelled = tmp_path / "sample.tsv"
    labelled.write_text("1\ta dog\ta cat\n2\ta dog\tdogs\n")
    given = [*AUTO, f"select.labelled={labelled}", "--set"]
    assert again("select", tmp_path, *given, "select.auto.model=words") == 2
    assert "select.auto.model: no encoder is named 'words'" in one_line(capsys)
    assert again("select", tmp_path, *given, "select.auto.score=x") == 2
    assert "select.auto.score: x is not among score.scorers" in one_line(capsys)


def test_a_run_chooses_and_selects(a_run: Path, tmp_path: Path, capsys: Capsys, runs: Runs) -> None:
    labelled = tmp_path / "sample.tsv"
    labelled.write_text("".join(f"{i % 5}\ta man in a hat {i}\ta man {i}\n" for i in range(40)))
    more = [*AUTO, f"select.labelled={labelled}", "--set", "select.auto={pairs: 20, seeds: 1}"]
    assert again("select", a_run, *more) == 0
    said = capsys.readouterr()
    assert ran(said.err) == ["auto_select", "select"]
    assert "Chosen: " in said.out and "All pairs: " in said.out
    stages = manifest(a_run)["stages"]
    score = stages["auto_select"]["chosen"]["scorer"]
    assert f"outside the selected deciles of {score}" in stages["select"]["rejected"]
    card = (a_run / "run/README.md").read_text()
    assert f"of `{score}`, " in card
    assert "; the deciles were selected by training encoders on each" in card
    assert "Automatic selection of deciles" in (a_run / "run/report/index.html").read_text()
    assert runs("select", a_run, *more) == []
    more += ["--set", "select.max_tokens=29"]
    assert runs("select", a_run, *more) == ["auto_select", "select"]

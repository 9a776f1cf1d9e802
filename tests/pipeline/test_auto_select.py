"""Automatic selection on a corpus in which the quality of each decile is known."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.beam_jobs.analysis.probes import Subset
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import Shard
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.errors import UserError
from paraloom.papers.options import SystemOptions
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.selection import AutoOptions
from paraloom.pipeline.records import AutoSelectRecord
from paraloom.pipeline.report.describe import selection_lines
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages.selection.search import Search, read_labelled, small_encoder
from tests.run_helpers import Capsys, Runs, WriteConfig, again, ran
from tests.shards import cut

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
    fill = {
        "id": [f"id-{i}" for i in range(ROWS)],
        "source": ["zdroj"] * ROWS,
        "translation_subwords": [9] * ROWS,
        "reference_tokens": [8] * ROWS,
        "translation_tokens": [8] * ROWS,
        "trigram_overlap": decile / 10,
        "translation_score": -np.argsort(order) / ROWS,
        "trigram_overlap_decile": decile,
        "translation_score_decile": 9 - np.argsort(order) * 10 // ROWS,
        **columns,
    }
    form = schema.bucketed(tuple(SCORERS))
    table = pa.table({field.name: pa.array(fill[field.name]).cast(field.type) for field in form})
    table = table.take(pa.array(order)).cast(form)
    folder = tmp_path_factory.mktemp("bucket")
    return cut(folder, table, 500)


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


def search(folder: Path, scorers: list[str] = SCORERS, **select: Any) -> Search:
    """The search of a run in this folder, which has no files yet."""
    auto = {"seeds": 2, "pairs": 400, **select.pop("auto", {})}
    config = {
        "run": str(folder),
        "input": {"format": "tsv", "paths": ["a.tsv"]},
        "score": {"scorers": scorers},
        "select": {"by": "auto", "labelled": "x", "max_tokens": None, "auto": auto, **select},
        "embeddings": {"dim": 60},
    }
    return Search(Run(Config.of(config), None, ["--direct_num_workers=1"]))  # type: ignore[arg-type]


def selected(
    shards: list[Shard], labelled: Path, folder: Path, scorers: list[str] = SCORERS, **select: Any
) -> AutoSelectRecord:
    made = search(folder, scorers, labelled=str(labelled), **select)
    made.run.shards = lambda stage: shards  # type: ignore[method-assign]
    return AutoSelectRecord.model_validate_json(json.dumps(made.select().json_values()))


@pytest.fixture(scope="module")
def record(
    shards: list[Shard], labelled: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[AutoSelectRecord, Path]:
    folder = tmp_path_factory.mktemp("choice")
    return selected(shards, labelled, folder), folder


def test_it_finds_the_deciles_that_are_right(record: tuple[AutoSelectRecord, Path]) -> None:
    found, _ = record
    assert found.sample == 150
    assert found.chosen.scorer == "trigram_overlap"
    assert {4, 5, 6} >= set(found.chosen.deciles) or set(found.chosen.deciles) >= {4, 5, 6}
    assert not {0, 1, 8, 9} & set(found.chosen.deciles)
    curve = {k: np.mean(values) for k, values in found.scores["trigram_overlap"].items()}
    assert np.mean([curve[k] for k in (4, 5, 6)]) > 10 + np.mean([curve[k] for k in (0, 1, 8, 9)])
    assert found.over_random.difference > 3 * found.over_random.error > 0
    assert found.second is not None and found.second.scorer == "translation_score"


def test_the_account_adds_up(record: tuple[AutoSelectRecord, Path]) -> None:
    found, _ = record
    assert found.chosen in found.runs["trigram_overlap"]
    for scorer in SCORERS:
        assert set(found.scores[scorer]) == set(range(10))
        runs = found.runs[scorer]
        assert [len(run.deciles) for run in runs] == list(range(1, 11))
        assert all(run.rows == 150 * len(run.deciles) for run in runs)
        assert all(run.pairs == min(run.rows, 400) for run in runs)
        assert all(len(run.scores) == 2 for run in runs)
    assert found.same_size.pairs == found.chosen.pairs
    assert found.over_random.error == pytest.approx(found.spread)  # × √(2 / 2 seeds)
    everything = [found.runs[scorer][-1].scores for scorer in SCORERS]
    assert everything[0] == everything[1]  # all deciles of one score are all of the other


def test_what_was_trained_is_not_trained_again(
    shards: list[Shard], labelled: Path, record: tuple[AutoSelectRecord, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "choice"
    shutil.copytree(record[1], folder)

    def kept() -> dict[str, int]:
        found = folder.glob("choice/*/receipts/*.json")
        return {f"{p.parent.parent.name}/{p.stem}": p.stat().st_mtime_ns for p in found}

    before = kept()
    gone = folder / "choice" / "deciles" / "receipts" / "trigram_overlap-3-150.1.json"
    gone.unlink()  # as if it had been killed there
    again = selected(shards, labelled, folder)
    after = kept()
    assert {name for name in after if after[name] != before[name]} == {f"deciles/{gone.stem}"}
    assert again.chosen == record[0].chosen

    fewer = selected(shards, labelled, folder, ["trigram_overlap"])
    assert all(after[name] == time for name, time in kept().items())
    assert fewer.chosen == record[0].chosen
    assert (
        fewer.second is not None and fewer.second.scorer == "trigram_overlap"
    )  # there is no other


def test_where_few_stand_it_draws_on(shards: list[Shard], labelled: Path, tmp_path: Path) -> None:
    """Some 30 of the 150 pairs of a decile stand; 20 are tried, of 1,500 drawn 300 at first.

    No more are tried than the corpus may have."""
    few: dict[str, Any] = {"where": ["translation_score >= -0.2"], "size": 20}
    found = selected(shards, labelled, tmp_path, auto={"seeds": 1, "pairs": 60}, **few)
    assert found.sample == 20
    assert found.left_out == {"trigram_overlap": [], "translation_score": list(range(8))}
    for runs in found.runs.values():
        assert all(run.pairs == 20 for run in runs)
        assert runs[-1].rows == pytest.approx(300, rel=0.2)
    said = selection_lines(found)
    assert all("one seed gives no standard error" in line for line in said[1:])


def test_too_few_pairs(shards: list[Shard], labelled: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="too few pairs to choose deciles by: at most 0"):
        selected(shards, labelled, tmp_path, max_tokens=3)


def test_labelled_pairs_of_no_use(tmp_path: Path) -> None:
    path = tmp_path / "sample.tsv"
    path.write_text("3\ta dog\ta cat\n3\tone\ttwo\n")
    with pytest.raises(UserError, match=r"^select\.labelled: .*sample has no other score than 3"):
        read_labelled([str(path)])


AUTO = ["--set", "select.by=auto", "--set"]


def test_a_missing_sample_is_named_before_any_work(
    write_config: WriteConfig, tmp_path: Path, capsys: Capsys
) -> None:
    write_config(tmp_path)
    assert again("select", tmp_path, *AUTO, "select.labelled=nowhere.tsv") == 2
    said = capsys.readouterr().err
    assert "select.labelled: nowhere.tsv is not there" in said and not ran(said)
    assert again("select", tmp_path, *AUTO[:2]) == 2
    assert "select.labelled: select.by is auto" in capsys.readouterr().err
    labelled = tmp_path / "sample.tsv"
    labelled.write_text("1\ta dog\ta cat\n2\ta dog\tdogs\n")
    more = [f"select.labelled={labelled}", "--set", "select.auto.model=words"]
    assert again("select", tmp_path, *AUTO, *more) == 2
    said = capsys.readouterr().err
    assert "select.auto.model: no encoder is named 'words'" in said and not ran(said)


def test_a_run_chooses_and_selects(a_run: Path, tmp_path: Path, capsys: Capsys, runs: Runs) -> None:
    labelled = tmp_path / "sample.tsv"
    labelled.write_text("".join(f"{i % 5}\ta man in a hat {i}\ta man {i}\n" for i in range(40)))
    more = [*AUTO, f"select.labelled={labelled}", "--set", "select.auto={pairs: 20, seeds: 1}"]
    assert again("select", a_run, *more) == 0
    said = capsys.readouterr()
    assert ran(said.err) == ["auto_select", "select"]
    assert "Chosen: " in said.out and "drawn at random" in said.out
    record = json.loads((a_run / "run/manifest.json").read_text())
    found = record["stages"]["auto_select"]["chosen"]
    assert (
        f"outside the selected deciles of {found['scorer']}"
        in record["stages"]["select"]["rejected"]
    )
    card = (a_run / "run/corpus/README.md").read_text()
    assert f"of `{found['scorer']}`, " in card
    assert "selected by training an encoder on each" in card
    assert "Automatic selection of deciles" in (a_run / "run/report/index.html").read_text()
    assert runs("select", a_run, *more) == []
    more += ["--set", "select.max_tokens=29"]
    assert runs("select", a_run, *more) == ["auto_select", "select"]


def test_the_best_two_deciles_are_selected_as_in_the_paper(
    shards: list[Shard], labelled: Path, tmp_path: Path
) -> None:
    """ParaNMT, section 6.3: the score with the best decile, and its two best deciles."""
    found = selected(shards, labelled, tmp_path, auto={"best": 2, "seeds": 1, "pairs": 150})
    means = {
        (scorer, k): np.mean(values)
        for scorer, by_decile in found.scores.items()
        for k, values in by_decile.items()
    }
    scorer, _ = max(means, key=means.__getitem__)
    ranked = sorted(range(10), key=lambda k: means[scorer, k])
    assert found.chosen.scorer == scorer and set(found.chosen.deciles) == set(ranked[-2:])
    assert [len(of) for of in found.runs.values()] == [1, 1]


def test_probes_can_train_like_the_encoder() -> None:
    given: dict[str, Any] = {
        **{"mega_batch": 7, "scramble": 0.3, "model": "lstm", "epochs": 5, "dim": 77},
        **{"initial_vectors": "v.txt", "development": ["2012"], "batch_size": 90},
    }
    encoder = EmbeddingOptions(**given)
    probe = small_encoder(AutoOptions(model="lstm-avg", like_embeddings=True), encoder)
    changed: dict[str, Any] = {"epochs": 1, "device": "cpu"}
    changed |= dict.fromkeys(("development", "patience"))
    assert probe == encoder.replace(model="lstm-avg", **changed)
    probe = small_encoder(AutoOptions(model="lstm-avg"), encoder)
    fixed: dict[str, Any] = {"batch_size": 20, "mega_batch": 1, "negatives": "other", "dim": 77}
    fixed |= {"initial_vectors": "v.txt", "epochs": 1, "device": "cpu"}
    assert probe == EmbeddingOptions(model="lstm-avg", **fixed)
    other: dict[str, Any] = {"task": "similarity", "similarity": {"data": ["sick"]}}
    labelled = SystemOptions(**other)
    assert small_encoder(AutoOptions(like_embeddings=True), labelled).task == "paraphrases"


class Probed(Search):
    """A search on given counts, whose probes score the lowest decile of a subset."""

    def __init__(self, most: int, counts: dict[str, list[list[int]]]) -> None:
        super().__init__(search(Path("folder"), auto={"pairs": most, "seeds": 2}).run)
        self.scorers, self.asked = [*counts], list[list[Subset]]()
        self.counts = {scorer: np.array(of) for scorer, of in counts.items()}

    def run_probes(self, name: str, subsets: Sequence[Subset]) -> list[list[float]]:
        self.asked.append([*subsets])
        return [[min(subset.deciles, default=-1) + 0.5] for subset in subsets]


def test_a_decile_has_a_quarter_of_the_largest_with_every_seed() -> None:
    counts = {"a": [[99, 25, 24, 80, *[50] * 6], [90, 90, 90, 100, *[60] * 6]]}
    counts["b"] = [[70, 9, 100, 0, *[40] * 6], [70, 90, 104, 0, *[40] * 6]]
    search = Probed(1000, counts)
    found = search.large_deciles()
    assert found == {"a": [0, 1, 3, *range(4, 10)], "b": [0, 2, *range(4, 10)]}
    assert search.common_size(found) == 25
    scores, random = search.score_deciles(found, 25)
    assert scores == {s: {k: [k + 0.5] for k in of} for s, of in found.items()}
    assert random == [-0.5]
    expected = [Subset(scorer=s, deciles=(k,), most=25) for s, of in found.items() for k in of]
    assert search.asked == [[*expected, Subset(most=25)]]
    search = Probed(36, counts)  # a quarter of what a probe takes
    assert search.large_deciles() == {"a": [*range(10)], "b": [0, 1, 2, *range(4, 10)]}
    assert search.common_size(search.large_deciles()) == 9
    assert search.criteria.per_source == "all"
    search = Probed(1000, {"a": [[3, 2, 1, *[0] * 7]] * 2})
    assert search.large_deciles() == {"a": [0, 1]}  # a pair needs another one

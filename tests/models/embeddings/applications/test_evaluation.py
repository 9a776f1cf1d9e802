"""Models that are opened, ours and those of sentence-transformers, and their evaluation."""

import json
import re
import shutil
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy.stats import pearsonr, spearmanr

from paraloom.models.embeddings.applications import opened
from paraloom.models.embeddings.applications.evaluation import (
    benchmarks,
    correlation,
    evaluate_models,
)
from paraloom.models.embeddings.applications.opened import OpenedModel, cost, is_ours, open_model
from paraloom.models.embeddings.comparison import ComparedModel, Embed, cosines, dots
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.errors import UserError
from paraloom.papers.tasks.similarity import label_errors
from tests.labelled import labelled
from tests.small_encoder import NUMBERED, small_encoder


def constant(text: pa.StringArray) -> np.ndarray:
    return np.ones((len(text), 4), np.float32)


def test_real_data_side_by_side(bag_of_words: Embed, data: Path) -> None:
    models = [("words", bag_of_words), ("nothing", constant)]
    report = evaluate_models([*read_sts(data / "sts"), *read_sick(data / "sick")], models)
    result = report.json()
    year = result["groups"]["STS 2015"]
    images = year["data_sets"]["images"]
    assert 50 < images["models"]["words"]["pearson"] < 80
    undefined = {"pearson": None, "spearman": None}
    assert images["models"]["nothing"] == year["mean"]["nothing"] == undefined
    assert result["groups"]["STS 2012"]["missing"] == ["MSRvid"]
    assert "mean" not in result["groups"]["STS 2012 train"]
    json.dumps(result, allow_nan=False)

    Console(file=(file := StringIO()), width=120).print(report.table())
    shown = "{:.1f} / {:.1f}".format(*report.mean(0, "STS 2014"))
    for text in (shown, "nothing", "STS 2014 mean", "MSRvid", "SICK trial", "undefined"):
        assert text in file.getvalue()
    assert not re.search(r"\bnan\b", file.getvalue())


SCORED = st.tuples(st.integers(-9, 9).map(float), st.integers(0, 5).map(float))


@given(st.lists(SCORED, min_size=2, max_size=30))
def test_correlations_equal_scipys(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    found = correlation(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(found).all()
    else:
        assert found.pearson == pytest.approx(100 * pearsonr(x, y).statistic, abs=1e-6)
        assert found.spearman == pytest.approx(100 * spearmanr(x, y).statistic, abs=1e-6)


def test_undefined_correlations() -> None:
    noise = 0.7 + np.array([0, 1e-16, 2e-16])
    for values in (noise, np.array([0.5, np.nan, 0.1]), np.array([0.5])):
        assert np.isnan(correlation(values, np.arange(len(values), dtype=float))).all()


def test_rounding_errors_do_not_rank() -> None:
    """Equal vectors have cosines of 1 but for the last bits; these may differ by the processor."""
    labels = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    ties = np.array([0.5, 1.0, 1.0, 1.0, 0.2])
    noise = np.array([0, 2e-16, -1e-16, 0, 0])
    assert correlation(ties + noise, labels).spearman == correlation(ties, labels).spearman


def made(group: str, name: str, rows: int, seed: int) -> LabelledPairs:
    random = np.random.default_rng(seed)
    first, second = ([" ".join(random.choice(list("abcde"), 3)) for _ in range(rows)] for _ in "12")
    return labelled(first, second, random.random(rows) * 5, group, name)


def test_a_mean_counts_every_data_set_once(bag_of_words: Embed) -> None:
    """However many pairs it has; a year's mean is of its own data sets."""
    sizes = {"STS 2014": (5, 50, 9), "STS 2015": (30, 7)}
    sets = [made(group, f"{group} {rows}", rows, rows) for group in sizes for rows in sizes[group]]
    models: list[tuple[str, Embed]] = [("words", bag_of_words)]
    models.insert(0, ("first", lambda text: -(bag_of_words(text) ** 2)))
    report = evaluate_models(sets, models)
    for model, (_, embed) in enumerate(models):
        for group in sizes:
            found = [
                (pearsonr(x, of.scores).statistic, spearmanr(x, of.scores).statistic)
                for of in sets
                if of.group == group
                for x in [cosines(embed(of.first), embed(of.second))]
            ]
            expected = 100 * np.mean(found, axis=0)
            assert report.mean(model, group) == pytest.approx(expected)
            shown = report.json()["groups"][group]["mean"][report.models[model]]
            assert [shown["pearson"], shown["spearman"]] == pytest.approx(expected, abs=1e-4)


def test_errors_of_labels_count_every_data_set_once(bag_of_words: Embed) -> None:
    sets = [made("SICK", f"{rows}", rows, rows) for rows in (6, 40)]
    found = label_errors(ComparedModel("m", bag_of_words), sets)
    for data in sets:
        scores = cosines(bag_of_words(data.first), bag_of_words(data.second))
        of = found[f"SICK {data.name}"]
        assert of["pairs"] == len(data)
        assert of["mse"] == pytest.approx(np.mean((scores - data.scores) ** 2))
        assert of["pearson"] == pytest.approx(100 * pearsonr(scores, data.scores).statistic)
        assert of["spearman"] == pytest.approx(100 * spearmanr(scores, data.scores).statistic)
    for key in ("pearson", "spearman", "mse"):
        mean = (found["SICK 6"][key] + found["SICK 40"][key]) / 2
        assert found["mean"][key] == pytest.approx(mean)


def test_models_and_data_sets_need_names_of_their_own(bag_of_words: Embed) -> None:
    with pytest.raises(UserError, match="a: occurs twice"):
        evaluate_models([], [("a", constant), ("a", constant)])
    with pytest.raises(UserError, match="STS 2014 images: occurs twice among the data sets"):
        evaluate_models([made("STS 2014", "images", 4, 0)] * 2, [("words", bag_of_words)])


def test_what_mteb_counts() -> None:
    def pairs(group: str, *names: str, rows: int = 4) -> list[LabelledPairs]:
        return [made(group, name, rows, 0) for name in names]

    data = pairs("STS 2012 train", "MSRpar")
    data += pairs("STS 2013", "FNWN", "OnWN", "SMT", "headlines")
    data += pairs("STS 2017", "track5.en-en", rows=250)
    data += [*pairs("stsb", "sts-dev", "sts-train"), *pairs("SICK", "train", "trial")]
    year, track, stsb, sick = benchmarks(data)
    assert (year.name, year.task) == ("STS 2013", "STS13")
    assert (year.sets, year.complete) == ([1, 2, 4], False)
    assert (track.task, track.pairs, track.complete) == ("STS17", 250, True)
    assert (stsb.name, stsb.sets, stsb.complete) == ("STS Benchmark dev", [6], False)
    assert (sick.name, sick.task, sick.sets) == ("SICK", "SICK-R", [8, 9])
    (test,) = benchmarks([*pairs("b", "sts-dev"), *pairs("b", "sts-test", rows=1379)])
    assert (test.name, test.sets, test.complete) == ("STS Benchmark test", [1], True)


def test_mteb_pools_the_pairs_of_a_year_and_takes_the_cosine(bag_of_words: Embed) -> None:
    names = {"FNWN": 5, "OnWN": 40, "SMT": 12, "headlines": 9}
    sets = [made("STS 2013", name, rows, rows) for name, rows in names.items()]
    models = [ComparedModel("words", bag_of_words), ComparedModel("dot", bag_of_words, dots)]
    report = evaluate_models(sets, models)
    found = [cosines(bag_of_words(each.first), bag_of_words(each.second)) for each in sets]
    labels = [each.scores for each in sets]
    pooled = spearmanr(*(np.concatenate([of[i] for i in (0, 1, 3)]) for of in (found, labels)))
    assert report.mteb == [[pytest.approx(100 * pooled.statistic)]] * 2
    assert report.correlations[0] != report.correlations[1]


SENTENCES = ["w1 w2", "w3", "w29 w4 .", "", "something else"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ours") / "model"
    small_encoder(NUMBERED).save(folder)
    return folder


@pytest.fixture(scope="module")
def theirs(ours: Path) -> Path:
    folder = ours.with_name("theirs")
    shutil.copytree(ours, folder, ignore=shutil.ignore_patterns("config.json", "words.txt"))
    return folder


def test_both_give_the_same_vectors(
    ours: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_ours(ours) and not is_ours(theirs)
    first, second = open_model(str(ours)), open_model(str(theirs))
    assert first.encoder is not None and first.sentence_model is None
    assert second.encoder is None and second.sentence_model is not None
    text = pa.array([*SENTENCES, *SENTENCES[:2]])
    expected = load_encoder(ours).embed(text)
    for model in (first, second):
        found = model.evaluated.embed(text)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_allclose(model.encode(SENTENCES, 2), expected[:5], atol=1e-6)
    names = {file.name for file in first.files}
    assert names == {"config.json", "words.txt", "model.safetensors"}
    assert {file.name for file in second.files} == {
        *("modules.json", "config_sentence_transformers.json", "tokenizer.json"),
        "model.safetensors",
    }
    size = sum(file.stat().st_size for file in theirs.iterdir())
    monkeypatch.setattr(opened, "_SECONDS", 0.0)  # measure the speed only briefly
    assert cost(second, SENTENCES).bytes_on_disk == size


def test_models_that_cannot_be_opened(theirs: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"neither an encoder of Paraloom .* nor a model of sent"):
        open_model(str(tmp_path))
    copy = tmp_path / "copy"
    shutil.copytree(theirs, copy)
    (copy / "modules.json").write_text('{"a": 1}')
    with pytest.raises(UserError, match="the model cannot be loaded"):
        open_model(str(copy))


def test_the_fastest_batch_size() -> None:
    clock: list[float] = [0.0]

    def model(name: str, seconds_of_a_batch: float, seconds_of_a_sentence: float) -> OpenedModel:
        def encode(sentences: Sequence[str], batch_size: int) -> Any:
            batches = -(-len(sentences) // batch_size)
            clock[0] += batches * seconds_of_a_batch + len(sentences) * seconds_of_a_sentence
            return np.zeros((len(sentences), 1), np.float32)

        evaluated = ComparedModel(name, lambda text: encode(text.to_pylist(), 32))
        sizes = (32, 1024, 8192)
        return OpenedModel(evaluated=evaluated, encode=encode, batch_sizes=sizes, files=[])

    sentences = ["a"] * 20_000
    with pytest.MonkeyPatch.context() as patch:
        counter = "paraloom.models.embeddings.applications.opened.time.perf_counter"
        patch.setattr(counter, lambda: clock[0])
        static, large, _ = cost(model("static", 0.01, 1e-5), sentences)
        slow, usual, _ = cost(model("slow", 0.0, 0.01), sentences)
    assert (large, usual) == (8192, 32)
    assert slow == pytest.approx(100, rel=0.01)
    assert 1.001 / (0.01 / 8192 + 1e-5) > static > 0.8 / (0.01 / 8192 + 1e-5)

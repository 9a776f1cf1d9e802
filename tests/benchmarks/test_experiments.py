from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import f1_score

from benchmarks.experiments import cells
from benchmarks.experiments.bootstrap import RESAMPLES, f1, resampled, share
from benchmarks.experiments.cells import Cell, Scores
from benchmarks.experiments.report import counts, interval, judge, judgements, write
from benchmarks.experiments.tables import Claim, Table
from paraloom.models.embeddings.options import EmbeddingOptions
from tests.benchmarks.conftest import inputs_in
from tests.labelled import labelled

BETTER, WORSE = Cell(options=EmbeddingOptions()), Cell(options=EmbeddingOptions(dim=3))


def found(better: list[float], worse: list[float]) -> dict[Any, list[Scores]]:
    measures = ("development", "sts_2015", "sick")
    rows = ((BETTER, better), (WORSE, worse))
    return {cell: [dict.fromkeys(measures, value) for value in of] for cell, of in rows}


@pytest.mark.parametrize(
    ("better", "worse", "verdict"),
    [
        ([60, 61, 62], [50, 51, 52], "holds (+10.0 ± 2.3)"),  # 2.776 · sqrt(2/3)
        ([50, 51, 52], [60, 61, 62], "reversed (-10.0 ± 2.3)"),
        ([52, 53, 54], [50, 51, 52], "open (+2.0 ± 2.3)"),  # 2.4 standard errors
        ([60, 60, 60], [59, 59, 59], "holds (+1.0 ± 0.0)"),
        ([60], [59], "open (+1.0 ± nan)"),  # nothing is known of other seeds
    ],
)
def test_a_claim_is_judged_by_welch(better: list[float], worse: list[float], verdict: str) -> None:
    table = Table("title", {"A": BETTER, "B": WORSE}, [Claim("A", "B")])
    scores = found(better, worse)
    assert judge(table, table.claims[0], scores, "sick") == verdict
    printed = Claim("B", "A", {"sick": -0.5}, stated=False)  # the figures have B below A
    opposite = verdict.replace("+", "*").replace("-", "+").replace("*", "-")
    assert judge(table, printed, scores, "sick") == opposite.replace(")", "; paper: -0.5)")
    text = replace(printed, better="A", worse="B", stated=True)  # its text contradicts its figures
    assert judge(table, text, scores, "sick") == verdict.replace(")", "; paper: -0.5)")


def test_rows_of_the_same_training_are_compared_seed_by_seed() -> None:
    scores = {BETTER: [{"x m": x, "y m": x - 1 + d} for x, d in ((50, 0), (60, 0.1), (70, -0.1))]}
    table = Table("", {"A": BETTER, "B": BETTER}, [], prefixes={"A": "x ", "B": "y "})
    assert judge(table, Claim("A", "B"), scores, "m") == "holds (+1.0 ± 0.2)"  # 4.303 · 0.1 / √3
    apart = {BETTER: [{"m": 50.0}, {"m": 60.0}], WORSE: [{"m": 40.0}, {"m": 49.0}]}
    table = Table("", {"A": BETTER, "B": WORSE, "C": BETTER}, [])
    assert table.values("A − B", "m", apart) == [10.0, 11.0]
    assert judge(table, Claim("A − B", "C − B"), apart, "m") == "open (+0.0 ± 0.0)"
    assert not table.shares_trainings(Claim("A", "B"))


def test_resampled_pairs_have_the_error_of_pearsons_r() -> None:
    """(1 − r²) / √n for normal variables; two encoders are compared on the same samples."""
    random = np.random.default_rng(0)
    labels, noise = random.standard_normal((2, 2000))
    pairs = labelled([""] * 2000, [""] * 2000, labels, "STS 2015", "a")
    one, rank = resampled(labels + noise, pairs)
    r = np.corrcoef(labels, labels + noise)[0, 1]
    assert one[0] == pytest.approx(100 * r, abs=1e-3) and len(one) == 1 + RESAMPLES
    assert np.std(one[1:]) == pytest.approx(100 * (1 - r**2) / np.sqrt(2000), rel=0.15)
    almost, _ = resampled(labels + noise + 0.01 * random.standard_normal(2000), pairs)
    assert np.std((one - almost)[1:]) < 0.1 * np.std(one[1:])
    of_set = np.random.default_rng(list(b"STS 2015 a"))  # the same pairs for all encoders
    times = of_set.multinomial(2000, np.full(2000, 1 / 2000), RESAMPLES)[0]
    again = np.corrcoef(np.repeat(labels, times), np.repeat(labels + noise, times))[0, 1]
    assert one[1] == pytest.approx(100 * again, abs=1e-3)
    again = spearmanr(np.repeat(labels, times), np.repeat(labels + noise, times)).statistic
    assert rank[0] == pytest.approx(100 * spearmanr(labels, labels + noise).statistic, abs=1e-3)
    assert rank[1] == pytest.approx(100 * again, abs=0.1)  # its ranks are those of the sample


def test_resampled_examples_of_classes() -> None:
    """A share has the error √(p (1 − p) / n); F1 is that of scikit-learn on the same sample."""
    labels, predicted = np.random.default_rng(0).choice(["0", "1"], size=(2, 2000), p=[0.3, 0.7])
    right = share(labels == predicted, "MRPC")
    p = (labels == predicted).mean()
    assert right[0] == pytest.approx(100 * p)
    assert np.std(right[1:]) == pytest.approx(100 * np.sqrt(p * (1 - p) / 2000), rel=0.15)
    times = np.random.default_rng(list(b"MRPC")).multinomial(2000, np.full(2000, 1 / 2000), 200)
    sample = [np.repeat(side, times[5]) for side in (labels, predicted)]
    found = f1(predicted, labels, "1", "MRPC")
    assert found[0] == pytest.approx(100 * f1_score(labels, predicted, pos_label="1"))
    assert found[6] == pytest.approx(100 * f1_score(*sample, pos_label="1"))
    assert f1(predicted, labels, "2", "MRPC")[0] == 0


def test_equal_encoders_are_told_apart_in_one_of_twenty_cases() -> None:
    """Seeds and test pairs both vary: either alone would find too many differences."""
    random = np.random.default_rng(1)
    tests = 600
    wrong = 0
    for _ in range(tests):
        of_test = random.standard_normal()  # the luck of these pairs, the same for all seeds
        resamples = random.standard_normal((2, RESAMPLES)) / np.sqrt(2)
        sides = [
            [np.append(x, x + resamples[side]) for x in random.standard_normal(3) + luck]
            for side, luck in enumerate((of_test, 0.0))
        ]
        difference, half = interval(*sides, paired=False)
        wrong += abs(difference) > half
    assert 0.02 < wrong / tests < 0.08


def test_markdown(tmp_path: Path) -> None:
    claims = [Claim("A", "B"), Claim("B", "A", {"sick": 0.2}, stated=False)]
    table = Table("W&G Title", {"A": BETTER, "B": WORSE}, claims, note="1 epoch.")
    scores = found([60.0, 62.0], [50.0, 50.0])
    for of in scores.values():
        for each in of:
            each["seconds"] = 90.0
            del each["sts_2015"]
    write(tmp_path / "t.md", table, scores)
    assert (tmp_path / "t.md").read_text().splitlines() == [
        "### W&G Title",
        "",
        "1 epoch. 2 seeds, 6 minutes of one core.",
        "",
        "| Pearson × 100 | STS 2012–2014 | SICK trial |",
        "| --- | --- | --- |",
        "| A | 61.0 ± 1.4 | 61.0 ± 1.4 |",
        "| B | 50.0 ± 0.0 | 50.0 ± 0.0 |",
        "",
        "| what the paper says | SICK trial |",
        "| --- | --- |",
        "| A > B | open (+11.0 ± 12.7) |",
        "",
        "| what only its figures order | SICK trial |",
        "| --- | --- |",
        "| B > A | open (-11.0 ± 12.7; paper: +0.2) |",
    ]
    assert counts({"t": table}, scores)[-1] == "| W&G | 0 | 1 | 0 | 0 | 1 | 0 |"
    empty = Table("", {"A": BETTER, "B": WORSE}, [Claim("A", "B", {"none": 1.0})])
    assert judgements(empty, scores) == []


def test_a_cell_is_known_by_what_it_depends_on(tmp_path: Path) -> None:
    for name in ("corpus", "sts", "sick"):
        (tmp_path / name).mkdir()
    shard = tmp_path / "corpus" / "a.parquet"
    pq.write_table(pa.table({"reference": ["a"], "translation": ["b"]}), shard)
    (tmp_path / "v.txt").write_text("a 1\n")
    inputs = inputs_in(tmp_path, tmp_path)
    cell = Cell(options=EmbeddingOptions(initial_vectors=str(tmp_path / "v.txt")))
    paths = [cell.cell_path(seed, inputs) for seed in (1, 1, 2)]
    paths.append(replace(cell, options=cell.options.replace(margin=0.3)).cell_path(1, inputs))
    changed = pa.table({"reference": ["a"], "translation": ["c"]})
    for change in (
        lambda: (tmp_path / "v.txt").write_text("a 2\n"),
        lambda: pq.write_table(changed, shard),
        lambda: (tmp_path / "sts" / "x.tsv").write_text("1\ta\tb\n"),
    ):
        change()
        cells.digest.cache_clear()
        paths.append(cell.cell_path(1, inputs))
    assert paths[0] == paths[1] and len(set(paths)) == len(paths) - 1

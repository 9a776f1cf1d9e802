"""The stated precision of a cut holds on references that did not choose it (real judgments)."""

from pathlib import Path

import pytest

from benchmarks.judged_precision import main, split, within
from paraloom.pipeline.judging.agreement import score_labels
from tests.sample import real_data


@pytest.fixture(scope="module")
def labels(data: Path) -> str:
    return str(real_data(data / "judgments" / "parabank-even.tsv"))


@pytest.mark.parametrize("wanted", [0.8, 0.9])
def test_half_of_the_references_choose_and_the_others_measure(labels: str, wanted: float) -> None:
    names = ["trigram_overlap", "unigram_f1", "edit_distance"]
    pairs = score_labels(labels, names)
    found = [split(pairs, wanted, seed) for seed in range(50)]
    assert sum(within(s.measured, s.expected) for s in found) >= 45
    assert sum(within(s.measured, s.wilson) for s in found) < 40


def test_the_benchmark_prints_both_precisions(
    labels: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.report.RESULTS", tmp_path)
    figures = main(["--labels", labels, "--splits", "2"])["figures"]
    assert {name[:3] for name in figures} == {"0.8", "0.9"}
    assert (tmp_path / "judged_precision.json").exists()

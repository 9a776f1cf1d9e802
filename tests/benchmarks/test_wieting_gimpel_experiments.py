"""The tables of Wieting & Gimpel 2017: settings, figures and directions as printed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.experiments import gates, revisiting, supervised
from benchmarks.experiments.bootstrap import RESAMPLES
from benchmarks.experiments.cells import Cell, Inputs
from benchmarks.experiments.context import BOOKS
from benchmarks.experiments.report import judgements, write
from benchmarks.experiments.revisiting import CorrelationCell
from benchmarks.experiments.tables import Table
from benchmarks.experiments.training import train
from paraloom.models.text.vectors import write_vectors
from paraloom.papers.analyses.moments import Moments
from tests.benchmarks.conftest import write_corpus
from tests.labelled import WORDS
from tests.models.parsers import TREES
from tests.run_helpers import Patch
from tests.small_encoder import small_encoder


def test_a_cell_and_its_table(inputs: Inputs, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    write_corpus(inputs.corpus, random, 60)
    inputs.folder.mkdir()
    vectors = random.standard_normal((len(WORDS), 4)).astype(np.float32)
    write_vectors(inputs.vectors, list(WORDS), vectors)
    (inputs.sts / "2013").mkdir()
    (inputs.sts / "2014").mkdir()
    text = (inputs.sts / "2012" / "a.tsv").read_text()
    for name in ("2013/OnWN", "2013/FNWN", "2014/images"):
        (inputs.sts / f"{name}.tsv").write_text(text)
    whole = revisiting.tables(inputs)["wg4"]
    options = {row: cell.options.replace(dim=4, epochs=1) for row, cell in whole.rows.items()}
    cells = {row: Cell(options=of) for row, of in options.items()}
    small: Table = replace(whole, rows=cells)
    found = train({"wg4": small}, 1, inputs, workers=1)
    assert all(scores["seconds"] > 0 for (scores,) in found.values())
    write(tmp_path / "wg4.md", small, found)
    written = (tmp_path / "wg4.md").read_text()
    assert "| Pearson × 100 | LSTM Avg | AVG | GRAN |" in written
    assert "(paper: 81.4) |\n" in written and "; paper: +8.6)" in written
    assert "| what the paper says | STS 2013 OnWN | STS 2013 FNWN |\n" in written
    ((_, verdicts),) = judgements(small, found)
    assert len(verdicts) == 2
    pair = CorrelationCell(first=cells["GRAN"], second=cells["AVG"])
    scores = pair.run(1, inputs, tmp_path / "correlation.json")
    sets = ["sick", "STS 2013 OnWN", "STS 2013 FNWN", "STS 2014 images"]
    both = [[found[cells[row]][0][name][0] for name in sets] for row in ("GRAN", "AVG")]
    expected = 100 * np.asarray(np.corrcoef(both))[0, 1]
    assert scores["pearson"][0] == pytest.approx(expected, abs=1e-6)
    assert len(scores["pearson"]) == 1 + RESAMPLES


def test_norms_beside_the_papers(
    inputs: Inputs, parser: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    texts = [text for text, *_ in TREES]
    words = sorted({word for text in texts for word in text.split()})
    small_encoder(words, "gran").save(tmp_path / "gran")
    monkeypatch.setattr(supervised, "universal", lambda name, inputs: tmp_path / "gran")
    monkeypatch.setattr(gates, "_LEAST", 1)
    inputs.folder.mkdir()
    inputs.books.mkdir()
    for name in BOOKS:
        (inputs.books / name).write_text("\n\n".join(texts))
    gates.print_gates(inputs, parser)
    written = (inputs.folder / "wg9.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in written]
    tags = rows[rows.index(["tags: highest", "paper", "lowest", "paper"]) + 2 :]
    assert [row[1::2] for row in tags[:2]] == [["NNP", "TO"], ["NNPS", "WDT"]]
    norms = [float(row[0].split()[1]) for row in tags[:2]]
    assert norms[0] > norms[1] > 0
    assert not any("–" in row for row in rows)


def test_objects_and_subjects() -> None:
    by_label = {"NN dobj": (100.0, 1), "NNS pobj": (130.0, 2), "NN nsubj": (90.0, 1)}
    found = {label: Moments(count, mean, 0.0) for label, (mean, count) in by_label.items()}
    *_, objects, subjects = gates._positions({**found, "JJ nsubj": Moments(1, 0.0, 0.0)})
    assert objects == "| objects | 120.0 | 3 |" and subjects == "| subjects | 90.0 | 1 |"

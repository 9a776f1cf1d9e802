"""W&G's Tables 9 to 11: our norms beside the paper's."""

from pathlib import Path

from benchmarks.experiments import gates, supervised
from benchmarks.experiments.cells import Inputs
from benchmarks.experiments.context import BOOKS
from paraloom.papers.analyses.moments import Moments
from tests.models.parsers import TREES
from tests.run_helpers import Patch
from tests.small_encoder import small_encoder


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

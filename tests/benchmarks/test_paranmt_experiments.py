"""ParaNMT's tables: rows, claims, and cells in small."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments import paranmt
from benchmarks.experiments.__main__ import named
from benchmarks.experiments.bootstrap import RESAMPLES
from benchmarks.experiments.cells import Inputs, figure, load_scores
from benchmarks.experiments.paranmt_cells import (
    DifferenceCell,
    EncoderCell,
    FilterCell,
    OtherCell,
    TransferCell,
)
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.errors import UserError
from paraloom.papers.analyses.transfer import evaluate
from paraloom.papers.datasets.transfer import find_tasks
from tests.benchmarks.conftest import write_corpus
from tests.labelled import WORDS
from tests.run_helpers import Capsys, Patch

SMALL = EmbeddingOptions(dim=4, epochs=1, mega_batch=1, initial_vectors=None)


@pytest.fixture
def with_corpus(inputs: Inputs) -> Inputs:
    """Pairs with deciles, and the corpus."""
    random = np.random.default_rng(1)
    for folder in ("corpus", "bucket"):
        place = inputs.corpus.parent / folder
        write_corpus(place, random, 80, trigram_overlap_decile=np.arange(80) % 10)
    (inputs.sts.parent / "stsb").mkdir()
    pairs = [" ".join(random.choice(WORDS, 3)) for _ in range(40)]
    rows = [
        f"main-{'captions' if i % 2 else 'news'}\tfile\t2012\t{i}\t{i % 6}\t{text}\t{pairs[-i]}\n"
        for i, text in enumerate(pairs)
    ]
    (inputs.sts.parent / "stsb" / "sts-dev.csv").write_text("".join(rows))
    return inputs


def test_cells(with_corpus: Inputs) -> None:
    inputs = with_corpus
    cell = EncoderCell(options=SMALL)
    path = cell.cell_path(1, inputs)
    scores = cell.run(1, inputs, path)
    np.testing.assert_equal(load_scores(path), scores)
    for equal in (("STS 2015 a", "sts_2015", "STS 2015"), ("sts_2012", "development")):
        assert len({tuple(np.ravel(scores[name])) for name in equal}) == 1
    assert {np.size(of) for of in scores.values()} == {1 + RESAMPLES}
    assert {"sick", "stsb", "captions", "others"} < set(scores)
    folder = cell.encoder(1, inputs)
    before = folder.stat().st_mtime_ns
    assert cell.encoder(1, inputs).stat().st_mtime_ns == before

    other = replace(cell, options=SMALL.replace(dim=3))
    difference = DifferenceCell(first=cell, second=other)
    found = difference.run(1, inputs, difference.cell_path(1, inputs))
    of_other = load_scores(other.cell_path(1, inputs))
    by_set = [scores[name] - of_other[name] for name in ("STS 2012 a", "STS 2015 a")]
    assert found["absolute"] == pytest.approx(np.abs(by_set).mean(axis=0))
    assert found["mean"] == pytest.approx(np.mean(by_set, axis=0))

    same = OtherCell(folder=str(folder))  # sentence-transformers loads the encoder itself
    its = same.run(1, inputs, same.cell_path(1, inputs))
    assert its.keys() == scores.keys()
    for name, of in its.items():
        np.testing.assert_allclose(of, scores[name], atol=2e-3)
    transferred = TransferCell(encoder=cell)
    found = transferred.run(1, inputs, transferred.cell_path(1, inputs))
    assert set(found) == {"SICK-R pearson", "SICK-E accuracy"}
    tasks, _ = find_tasks(inputs.sick)
    for task in tasks:
        ((measure, value),) = evaluate(load_encoder(folder).embed, task).items()
        of_task = found[f"{task.name} {measure}"]
        assert of_task[0] == pytest.approx(value, abs=1e-3) and len(of_task) == 1 + RESAMPLES
    assert 0 < found["SICK-E accuracy"][0] < 100

    best = FilterCell(options=SMALL, score="trigram_overlap")
    assert figure(best.run(1, inputs, best.cell_path(1, inputs))["development_decile"]) in range(10)


def test_sources_are_equally_large(with_corpus: Inputs, tmp_path: Path) -> None:
    (tmp_path / "news.tsv").write_text("".join(f"a {i}\tb {i}\n" for i in range(30)))
    files = [f"CzEng={with_corpus.corpus}", f"News={tmp_path / 'news.tsv'}"]
    sources = named("--source", files)
    table = paranmt.tables(with_corpus, sources)["paranmt3"]
    assert not any("ours" in row for row in table.rows) and len(table.claims) == 3
    paranmt.prepare({"paranmt3": table}, with_corpus, sources)
    for cell in table.rows.values():
        shards = list((with_corpus.folder / cell.pairs).glob("*.parquet"))
        assert [len(pq.read_table(shard)) for shard in shards] == [30]
    files.append(f"subtitles={tmp_path / 'news.tsv'}")
    table = paranmt.tables(with_corpus, named("--source", files))["paranmt3"]
    assert "subtitles, Word (ours)" in table.rows and len(table.claims) == 3
    with pytest.raises(UserError, match="--source nowhere: give NAME=PATH"):
        named("--source", ["nowhere"])


def test_negatives_are_printed(with_corpus: Inputs, monkeypatch: Patch, capsys: Capsys) -> None:
    """Table 6: neither the sentence itself nor its paraphrase."""
    inputs = with_corpus
    inputs.folder.mkdir()
    random = np.random.default_rng(2)
    vectors = (" ".join([word, *map(str, random.normal(size=4).round(3))]) for word in WORDS)
    (inputs.vectors).write_text("\n".join(vectors) + "\n")
    monkeypatch.setattr(paranmt, "_words", lambda inputs: SMALL.replace(negatives="both"))
    paranmt.print_negatives(inputs)
    text = (inputs.folder / "paranmt6.md").read_text()
    assert text.strip() in capsys.readouterr().out.replace("\r", "")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines()[4:]]
    assert [row[0] for row in rows] == ["1"] * 3 + ["20"] * 3 + ["40"] * 3
    table = pq.read_table(inputs.corpus, columns=["reference", "translation"]).to_pylist()
    paraphrases = {pair["reference"]: pair["translation"] for pair in table}
    assert all(row[2] not in (row[1], paraphrases[row[1]]) for row in rows)

"""The papers' tables: what holds for all, figures as printed, and ParaNMT's cells in small."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments import (
    context,
    gates,
    labelled,
    paranmt,
    phrases,
    revisiting,
    supervised,
)
from benchmarks.experiments.__main__ import named
from benchmarks.experiments.bootstrap import RESAMPLES
from benchmarks.experiments.cells import Cell, Inputs, digest, figure, load_scores, prepare
from benchmarks.experiments.context import BOOKS
from benchmarks.experiments.paranmt_cells import (
    DifferenceCell,
    EncoderCell,
    FilterCell,
    OtherCell,
    TransferCell,
)
from benchmarks.experiments.report import judgements, write
from benchmarks.experiments.revisiting import CorrelationCell
from benchmarks.experiments.tables import Table, train
from paraloom.models.embeddings.datasets.similarity import SEMEVAL
from paraloom.models.embeddings.encoders import check_encoder
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import write_vectors
from paraloom.papers.analyses.moments import Moments
from paraloom.papers.analyses.transfer import evaluate
from paraloom.papers.datasets.transfer import find_tasks
from tests.benchmarks.conftest import write_corpus
from tests.labelled import WORDS
from tests.models.parsers import TREES
from tests.run_helpers import Capsys, Patch
from tests.small_encoder import small_encoder

KINDS = [context, labelled, paranmt, phrases, revisiting, supervised]
_PATHS: dict[str, Any] = dict.fromkeys(
    ("corpus", "phrases", "sts", "sick", "books", "folder"), Path()
)
NOWHERE = Inputs(**_PATHS)


def options_in(cell: Any) -> Iterator[EmbeddingOptions]:
    """The options of all trainings of a cell."""
    for value in vars(cell).values():
        if isinstance(value, EmbeddingOptions):
            yield value
        elif hasattr(value, "__dataclass_fields__"):
            yield from options_in(value)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_of_encoders_and_claims_name_rows(kind: ModuleType) -> None:
    for table in kind.tables(NOWHERE).values():
        for cell in table.rows.values():
            for options in options_in(cell):
                check_encoder(options)
        for claim in table.claims:
            assert {*claim.rows} <= {*table.rows}
            assert kind not in (revisiting, supervised) or not table.shares_trainings(claim)
        assert table.reported and not {"mse", "development_decile"} & set(table.reported)
        ours = {row for row in table.rows if "(ours)" in row}
        assert not ours & set(table.paper) and set(table.prefixes) <= set(table.rows)
        if kind is paranmt:  # sources that are not there have figures, too
            assert set(table.rows) - ours <= set(table.paper)
        else:
            assert set(table.paper) <= set(table.rows)


def test_the_claims_of_paranmt() -> None:
    found = paranmt.tables(NOWHERE)
    rows = {row for row in found["paranmt7"].rows if "ours" not in row}
    assert rows == {row for row in paranmt.ROWS if not row.endswith("900") and "BiLSTM" not in row}
    two = ["Trigram-Word-LSTM, concatenated", "Word"]
    (order,) = (claim for claim in found["paranmt7"].claims if claim.rows == two)
    assert order.printed["sts_2016"] == -0.7 and order.stated  # 77.5 and 76.8
    larger = {claim.better for claim in found["paranmt8"].claims if claim.worse == "LSTM Avg"}
    assert "LSTM Avg, 600" in larger  # 6.5.1: they help on transfer
    stated = {tuple(claim.rows) for claim in found["paranmt8"].claims if claim.stated}
    assert ("Trigram-Word, concatenated", "LSTM Avg") in stated  # section 7: larger dimensions
    assert ("Trigram-Word, concatenated", "LSTM Avg, 600") not in stated  # as many


@pytest.mark.parametrize(
    ("module", "name", "better", "worse"),
    [
        (revisiting, "wg2", "LSTM Avg", "LSTM, scrambling"),  # 4.2: the most effective modification
        (supervised, "wg5-sick", "GRAN, scrambling", "AVG"),  # 4.3: the GRAN is best
        (context, "decoding-transfer", "BOW–GRU, concat", "BOW–BOW, encoder"),  # 5: curiously
    ],
)
def test_claims_of_the_text(module: ModuleType, name: str, better: str, worse: str) -> None:
    claims = module.tables(NOWHERE)[name].claims
    (claim,) = (claim for claim in claims if claim.rows == [better, worse])
    assert claim.stated


def test_the_trial_pairs_choose_the_epoch_if_there_are_test_pairs(inputs: Inputs) -> None:
    def held_out(name: str) -> set[float | None]:
        rows = supervised.tables(inputs)[name].rows.values()
        return {cell.options.similarity.held_out for cell in rows}

    assert held_out("wg5-sick") == {0.1}
    (inputs.sick / "SICK_test_annotated.txt").write_text("x")
    assert held_out("wg5-sick") == {None} and held_out("wg5-sts") == {0.1}
    assert supervised.tables(inputs)["wg5-sick"].measures["pearson"] == "SICK test"


def test_means_of_the_paper_are_over_the_data_sets_at_hand(inputs: Inputs) -> None:
    """Not its own means, 62.5 and 63.4, which have MSRvid and SMT."""
    years = ("2012", "2013", "2014", "2015")
    for year in years:
        (inputs.sts / year).mkdir(exist_ok=True)
        for name in {*SEMEVAL[year]} - {"MSRvid", "SMT"}:
            (inputs.sts / year / f"{name}.tsv").touch()
    tables = revisiting.tables(inputs)
    table = tables["wg4"]
    by_year = [table.paper["GRAN"][f"STS {year}"] for year in years]
    assert by_year == [56.8, 71.0, 75.9, 77.7]
    assert "STS 2012 MSRvid" not in table.measures and len(table.measures) == 18 + 4 + 1
    correlated = tables["wg4-correlation"].paper
    assert [of["pearson"] for of in correlated.values()] == [97.6, 96.3, 97.6]
    (inputs.sts / "2012" / "MSRvid.tsv").touch()
    (inputs.sts / "2013" / "SMT.tsv").touch()
    of_all = revisiting.tables(inputs)["wg4"].paper["GRAN"]
    assert (of_all["STS 2012"], of_all["STS 2013"]) == (62.5, 63.4)  # as printed


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
    inputs = replace(with_corpus, sources=named("--source", files))
    table = paranmt.tables(inputs)["paranmt3"]
    assert not any("ours" in row for row in table.rows) and len(table.claims) == 3
    paranmt.prepare({"paranmt3": table}, inputs)
    for cell in table.rows.values():
        shards = list((inputs.folder / cell.pairs).glob("*.parquet"))
        assert [len(pq.read_table(shard)) for shard in shards] == [30]
    files.append(f"subtitles={tmp_path / 'news.tsv'}")
    table = paranmt.tables(replace(inputs, sources=named("--source", files)))["paranmt3"]
    assert "subtitles, Word (ours)" in table.rows and len(table.claims) == 3
    with pytest.raises(UserError, match="--source nowhere: give NAME=PATH"):
        named("--source", ["nowhere"])


def test_what_another_corpus_left_is_removed(with_corpus: Inputs) -> None:
    inputs = with_corpus
    inputs.folder.mkdir()
    inputs.vectors.touch()
    inputs.phrases.write_text("big\tlarge\nold\taged\n")
    prepare(inputs)
    left = [
        inputs.folder / name for name in ("phrases.txt.gz", "universal", "phrases/part-0.parquet")
    ]
    left[0].touch()
    left[1].mkdir()
    prepare(inputs)
    assert all(path.exists() for path in left)
    (inputs.corpus / "part-0.parquet").rename(inputs.corpus / "part-1.parquet")
    digest.cache_clear()
    prepare(inputs)
    assert [path.exists() for path in left] == [False, False, True]


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


def test_a_cell_and_its_table(inputs: Inputs, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    write_corpus(inputs.corpus, random, 60)
    inputs.folder.mkdir()
    vectors = random.standard_normal((len(WORDS), 4)).astype(np.float32)
    write_vectors(inputs.vectors, list(WORDS), vectors)
    for name in ("2013/OnWN", "2013/FNWN", "2014/images"):
        (inputs.sts / name).parent.mkdir(exist_ok=True)
        shutil.copy(inputs.sts / "2012" / "a.tsv", inputs.sts / f"{name}.tsv")
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


def test_norms_of_gates(inputs: Inputs, parser: str, tmp_path: Path, monkeypatch: Patch) -> None:
    texts = [text for text, *_ in TREES]
    words = sorted({word for text in texts for word in text.split()})
    small_encoder(words, "gran").save(tmp_path / "gran")
    monkeypatch.setattr(supervised, "universal", lambda name, inputs: tmp_path / "gran")
    monkeypatch.setattr(gates, "_LEAST", 1)
    inputs.folder.mkdir()
    inputs.books.mkdir()
    for name in BOOKS:
        (inputs.books / name).write_text("\n\n".join(texts))
    gates.print_gates(replace(inputs, spacy=parser))
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

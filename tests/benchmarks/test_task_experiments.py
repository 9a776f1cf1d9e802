"""Cells of phrases, of contiguous text and of labelled pairs, end to end in small."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments import context, labelled, phrases
from benchmarks.experiments.bootstrap import RESAMPLES
from benchmarks.experiments.cells import Inputs, digest, load_scores
from benchmarks.experiments.report import judgements
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import write_vectors
from paraloom.papers.datasets.phrases import read_phrase_pairs
from paraloom.papers.options import SimilarityOptions, SystemOptions
from tests.labelled import WORDS
from tests.papers.tasks.test_phrases_task import NOUNS

SYNONYMS = [("big", "large"), ("small", "little"), ("quick", "fast"), ("old", "aged")]
VERBS = ["runs", "sleeps", "eats", "sings"]


def write_inputs(inputs: Inputs) -> None:
    """A corpus whose translations have other adjectives, word vectors, books."""
    pairs = [
        (f"The {one} {noun} is in the {place} .", f"The {other} {noun} is in the {place} .")
        for noun in NOUNS
        for one, other in SYNONYMS
        for place in ("park", "street")
    ]
    inputs.corpus.mkdir()
    for number, some in enumerate((pairs[::2], pairs[1::2])):
        reference, translation = zip(*some, strict=True)
        table = pa.table({"reference": reference, "translation": translation})
        pq.write_table(table, inputs.corpus / f"part-{number}.parquet")
    words = sorted({*sum(SYNONYMS, ()), *NOUNS, *VERBS, *WORDS, "the", "is", "in"})
    inputs.folder.mkdir()
    random = np.random.default_rng(0)
    vectors = random.standard_normal((len(words), 4)).astype(np.float32)
    write_vectors(inputs.vectors, words, vectors)
    inputs.books.mkdir()
    for name in ("holmes", "pride", "cities"):
        text = [f"The {random.choice(NOUNS)} {random.choice(VERBS)}." for _ in range(40)]
        (inputs.books / f"{name}.txt").write_text(" ".join(text))


def test_phrases(inputs: Inputs) -> None:
    write_inputs(inputs)
    tables = phrases.tables(inputs)
    phrases.prepare({}, inputs)
    assert not (inputs.folder / "phrases.txt.gz").exists()
    phrases.prepare(tables, inputs)
    left, right = read_phrase_pairs(inputs.folder / "phrases.txt.gz")
    assert right[left.index("the big dog")].as_py() == "the large dog"
    before = (inputs.folder / "phrases.txt.gz").stat().st_mtime_ns
    phrases.prepare(tables, inputs)
    assert (inputs.folder / "phrases.txt.gz").stat().st_mtime_ns == before

    cells = tables["pgru"].rows
    for name in ("PGRU, k = 9, 100%", "AVG, cosine"):
        cell = phrases.PhraseCell(options=cells[name].options.replace(dim=4, epochs=2))
        path = cell.cell_path(1, inputs)
        scores = cell.run(1, inputs, path)
        np.testing.assert_equal(load_scores(path), scores)
        assert np.shape(scores["chosen"]) == (1 + RESAMPLES,) and 0 <= scores["chosen"][0] <= 100
        metrics = json.loads(path.read_text())["metrics"]
        assert scores["chosen"][0] == pytest.approx(metrics["choose_among_100"])
        assert ("cosine chosen" in scores) == (name == "AVG, cosine")
        assert [p for p in path.parent.iterdir() if p.suffix != ".json"] == []
    # Nine of PGRU, an average that is trained, and one that is not, in two rows.
    paths = {cell.cell_path(seed, inputs) for cell in cells.values() for seed in (1, 2)}
    assert len(cells) == 12 and len(paths) == 22

    (inputs.folder / "phrases.txt.gz").write_bytes(b"[X] ||| a dog ||| the dog ||| Count=2\n" * 9)
    few = cells["PGRU, k = 9, 1%"].options.replace(dim=4, epochs=1, initial_vectors=None)
    few = few.replace(phrases=few.phrases.replace(held_out=0.0, fraction=1.0))
    with pytest.raises(UserError, match="too few phrases to choose among 100"):
        phrases.PhraseCell(options=few).run(1, inputs, path)


def test_tasks_of_the_pairwise_gru(inputs: Inputs) -> None:
    """Table 1 is there if its data are."""
    assert list(phrases.tables(inputs)) == ["pgru"]
    write_inputs(inputs)
    phrases.prepare(phrases.tables(inputs), inputs)
    data = inputs.sts.parent
    (data / "semeval2013").mkdir()
    (data / "turney2012").mkdir()
    pairs = [(other, f"{one} {noun}") for one, other in SYNONYMS for noun in NOUNS]
    for split in ("train", "test"):
        for kind, shift in (("positive", 0), ("negative", 9)):
            rows = [f"{pairs[i - shift][0]}\t{phrase}\n" for i, (_, phrase) in enumerate(pairs)]
            (data / "semeval2013" / f"en.{split}Set.{kind}Instances-v2").write_text("".join(rows))
        line = "{0} {2}|{1}|{0}|{2}|cat|man|tree|bird\n"
        lines = [line.format(one, other, noun) for one, other in SYNONYMS for noun in NOUNS]
        (data / "turney2012" / f"{split}.txt").write_text("".join(lines))
    table = phrases.tables(inputs)["pgru-tasks"]
    assert table.paper["GRU(PPDB)"] == {"semeval": 71.29, "5 choices": 41.44, "10 choices": 26.37}
    for cell in table.rows.values():
        small = phrases.PhraseTaskCell(
            semeval=cell.semeval.replace(dim=4, epochs=1, hidden=None),
            turney=cell.turney.replace(dim=4, epochs=1, hidden=None),
        )
        path = small.cell_path(1, inputs)
        scores = small.run(1, inputs, path)
        assert set(scores) == set(table.measures) and scores == load_scores(path)


def test_contiguous_text(inputs: Inputs) -> None:
    write_inputs(inputs)
    table = context.tables(inputs)["decoding"]
    scores = []
    for name in ("BOW–BOW, encoder, dot", "GRU–GRU, concat, dot"):
        cell = context.ContextCell(options=table.rows[name].options.replace(dim=4, epochs=1))
        scores.append(cell.run(1, inputs, path := cell.cell_path(1, inputs)))
        np.testing.assert_equal(load_scores(path), scores[-1])
    chosen = json.loads(path.read_text())["chosen"]
    without, found = scores
    for compare in ("dot", "cosine"):
        for how in ("concat", "mean"):
            steps = chosen[f"{how}, {compare}"]
            for measure in ("development", "sts_2015", "sts_2015_spearman", "sick"):
                best = found[f"{how} {steps}, {compare} {measure}"]
                assert best.shape == (1 + RESAMPLES,)
                np.testing.assert_equal(found[f"{how}, {compare} {measure}"], best)
            development = [found[f"{how} {k}, {compare} development"][0] for k in range(1, 11)]
            assert found[f"{how}, {compare} development"][0] == max(development)
            assert found[f"{how}, {compare} steps"] == steps
        two, three, both = (found[f"concat {k}, {compare} sick"] for k in ("2", "3", "2–3"))
        assert both == pytest.approx((two + three) / 2)
    assert found["encoder SICK-E"][0] >= 0 and np.isnan(found["concat MR"])  # no data
    assert set(without) == {name for name in found if name.startswith("encoder")}


def test_a_cell_of_each_kind_of_data(inputs: Inputs) -> None:
    section = SimilarityOptions(data=[str(inputs.sick)])
    options = SystemOptions(task="similarity", similarity=section, dim=8, epochs=2)
    sick = labelled.LabelledCell(options=options)
    section = SimilarityOptions(data=[str(inputs.sts / "2012")])
    sts = labelled.LabelledCell(options=options.replace(similarity=section))
    for cell, measures in (
        (sick, {"development", "pearson", "spearman", "mse"}),
        (sts, {"development", "pearson", "spearman", "mse", "sts_2015"}),
    ):
        path = cell.cell_path(1, inputs)
        assert not path.exists()
        scores = cell.run(1, inputs, path)
        assert load_scores(path).keys() == scores.keys() == measures
        metrics = json.loads(path.read_text())["metrics"]["test"]
        (of_test,) = (of["pearson"] for name, of in metrics.items() if name != "mean")
        assert scores["pearson"][0] == pytest.approx(of_test, abs=1e-3)
        of_pairs = {name for name in measures if np.shape(scores[name]) == (1 + RESAMPLES,)}
        assert of_pairs == measures & {"pearson", "sts_2015"}
        assert sorted(p.suffix for p in path.parent.iterdir()) == [".json"] * (1 + (cell is sts))
    names = {cell.cell_path(n, inputs) for cell, n in ((sick, 1), (sick, 2), (sts, 1))}
    (inputs.sick / "SICK_trial.txt").write_text("sentence_A\tsentence_B\trelatedness_score\n")
    digest.cache_clear()
    names.add(sick.cell_path(1, inputs))
    assert len(names) == 4


def test_malstms_ablation_takes_parts_from_the_whole_model(inputs: Inputs) -> None:
    table = labelled.tables(inputs)["malstm"]
    assert [(c.better, c.worse, dict(c.printed)) for c in table.claims] == [
        ("MaLSTM", "without calibration", {"pearson": 1.0}),
        ("MaLSTM", "without pre-training", {"pearson": 2.0}),
        ("MaLSTM", "without synonyms", {"pearson": 4.0}),
    ]
    assert table.rows["without calibration"] is table.rows["MaLSTM"]
    options = table.rows["MaLSTM"].options
    section = options.malstm.replace(synonyms=None, pretrain=[])
    options = options.replace(malstm=section, initial_vectors=None, dim=8, hidden=4, epochs=2)
    cell = labelled.LabelledCell(options=options)
    scores = cell.run(1, inputs, cell.cell_path(1, inputs))
    for measure in table.measures:
        assert measure in scores and f"uncalibrated {measure}" in scores
    assert scores["mse"] != scores["uncalibrated mse"]
    metrics = json.loads(cell.cell_path(1, inputs).read_text())["metrics"]
    for prefix, key in (("", "test"), ("uncalibrated ", "uncalibrated")):
        (of_test,) = metrics[key].values()
        assert scores[f"{prefix}pearson"][0] == pytest.approx(of_test["pearson"], abs=1e-3)
    assert scores["entailment"] == scores["uncalibrated entailment"]
    found = {cell: [scores] for cell in table.rows.values()}
    ((heads, rows),) = judgements(table, found)  # no claim is about the other measures
    assert heads == ["what the paper says", "r"] and "paper: +1.0" in rows[0][1]

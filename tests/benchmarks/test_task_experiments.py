"""Cells of phrases and of contiguous text, end to end in small."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.experiments import context, phrases
from benchmarks.experiments.cells import Inputs, load_scores
from benchmarks.experiments.report import lines, write
from models.embeddings.datasets.phrases import read_phrase_pairs
from models.embeddings.encoders import check_encoder
from models.errors import UserError
from models.text.vectors import write_vectors
from tests.benchmarks.conftest import WORDS

SYNONYMS = [("big", "large"), ("small", "little"), ("quick", "fast"), ("old", "aged")]
NOUNS = ["dog", "cat", "man", "tree", "car", "bird", "house", "boat"]
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
    words = [*sum(SYNONYMS, ()), *NOUNS, *VERBS, *WORDS, "the", "is", "in", "woman"]
    words = list(dict.fromkeys(words))
    inputs.folder.mkdir()
    random = np.random.default_rng(0)
    vectors = random.standard_normal((len(words), 4)).astype(np.float32)
    write_vectors(inputs.folder / "paragram.txt", words, vectors)
    inputs.books.mkdir()
    for name in ("holmes", "pride", "cities"):
        text = [f"The {random.choice(NOUNS)} {random.choice(VERBS)}." for _ in range(40)]
        (inputs.books / f"{name}.txt").write_text(" ".join(text))


@pytest.mark.parametrize("kind", [phrases, context])
def test_tables(inputs: Inputs, kind: ModuleType) -> None:
    for table in kind.tables(inputs).values():
        assert table.reported
        for cell in table.rows.values():
            check_encoder(cell.options)
        for claim in table.claims:
            assert claim.better in table.rows and claim.worse in table.rows
        assert set(table.prefixes) in (set(), set(table.rows))


def test_phrases(inputs: Inputs) -> None:
    write_inputs(inputs)
    tables = phrases.tables(inputs)
    phrases.prepare({}, inputs)
    assert not (inputs.folder / "phrases.txt.gz").exists()
    phrases.prepare(tables, inputs)
    found = read_phrase_pairs(inputs.folder / "phrases.txt.gz")
    assert ("the big dog", "the large dog") in zip(
        *(side.to_pylist() for side in found), strict=True
    )
    before = (inputs.folder / "phrases.txt.gz").stat().st_mtime_ns
    phrases.prepare(tables, inputs)
    assert (inputs.folder / "phrases.txt.gz").stat().st_mtime_ns == before

    cells = tables["pgru"].rows
    for name in ("PGRU, k = 9", "AVG, k = 29, 10% of the data"):
        cell = phrases.PhraseCell(options=cells[name].options.replace(dim=4, epochs=2))
        path = phrases.cell_path(cell, 1, inputs)
        scores = phrases.run(cell, 1, inputs, path)
        assert scores == load_scores(path) and 0 <= scores["chosen"] <= 100
        assert [p for p in path.parent.iterdir() if p.suffix != ".json"] == []
    assert (
        len({phrases.cell_path(cell, seed, inputs) for cell in cells.values() for seed in (1, 2)})
        == 20
    )

    (inputs.folder / "phrases.txt.gz").write_bytes(b"[X] ||| a dog ||| the dog ||| Count=2\n" * 9)
    few = cells["AVG, k = 9"].options.replace(dim=4, epochs=1, initial_vectors=None)
    few = few.replace(phrases=few.phrases.replace(held_out=0.0))
    with pytest.raises(UserError, match="too few phrases to choose among 100"):
        phrases.run(phrases.PhraseCell(options=few), 1, inputs, path)


def test_contiguous_text(inputs: Inputs, tmp_path: Path) -> None:
    write_inputs(inputs)
    table = context.tables(inputs)["decoding"]
    with_states, without = (
        context.ContextCell(options=table.rows[name].options.replace(dim=4, epochs=1))
        for name in ("GRU–GRU, states, dot", "BOW–BOW, encoder, dot")
    )
    scores = {}
    for cell in (with_states, without):
        path = context.cell_path(cell, 1, inputs)
        scores[cell] = context.run(cell, 1, inputs, path)
        assert scores[cell] == load_scores(path)
    chosen = json.loads(context.cell_path(with_states, 1, inputs).read_text())["chosen"]
    found = scores[with_states]
    for compare in ("dot", "cosine"):
        for measure in ("development", "sts_2015", "sick"):
            best = found[f"{chosen[compare]}, {compare} {measure}"]
            assert best == found[f"states, {compare} {measure}"]
        spaces = [f"{how} {steps}" for how in ("concat", "mean") for steps in range(1, 11)]
        development = [found[f"{space}, {compare} development"] for space in spaces]
        assert found[f"states, {compare} development"] == max(development)
    assert set(scores[without]) == {name for name in found if name.startswith("encoder, ")}

    # Every row shows its own part of what the cell it shares gave.
    cells = {cell: [scores[without]] for cell in table.rows.values()}
    cells[table.rows["GRU–GRU, states, dot"]] = [found]
    own = {
        name: replace(table, rows={name: cell}, claims=[])
        for name, cell in table.rows.items()
        if cell in (table.rows["GRU–GRU, states, dot"], table.rows["BOW–BOW, encoder, dot"])
    }
    for name, one in own.items():
        ((_, shown),) = lines(one, cells)
        part = table.prefixes[name]
        source = cells[table.rows[name]][0]
        assert shown == [f"{source[part + measure]:.1f} ± 0.0" for measure in table.measures]
    write(tmp_path / "t.md", own["BOW–BOW, encoder, dot"], cells)
    assert "claim" not in (tmp_path / "t.md").read_text()

"""Scoring, training and evaluation see the same tokens of the same sentences."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch import Tensor, zeros

from paraloom.models.embeddings.applications.evaluation import agreement
from paraloom.models.embeddings.datasets.similarity import read_sts
from paraloom.models.embeddings.encoders.base import Encoder
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import Kind, Sentences
from paraloom.models.embeddings.training.data import PairSource
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.text.tokens import PairText
from tests.models.embeddings.encoders.test_encoders import rows_of
from tests.sample import odd_sentences


class Recorder(Encoder):
    """An encoder that keeps what it is given."""

    dim = 1

    def __init__(self) -> None:
        super().__init__()
        self.given: list[list[int]] = []

    def forward(self, sentences: Sentences) -> Tensor:
        (flat,) = sentences.values()
        self.given += rows_of(flat)
        return zeros(len(flat.offsets) - 1, 1)


@pytest.mark.parametrize("kind", ["words", "trigrams"])
def test_the_same_tokens_everywhere(tmp_path: Path, kind: Kind) -> None:
    first, second = (odd_sentences(901)[start:][:900:2] for start in (0, 1))
    rows = zip(first, second, strict=True)
    (tmp_path / "forum.tsv").write_text("".join(f"3\t{a}\t{b}\n" for a, b in rows), "utf-8")
    (forum,) = read_sts(tmp_path / "forum.tsv")
    table = pa.table({"reference": forum.first, "translation": forum.second})
    pq.write_table(table, tmp_path / "pairs.parquet")
    corpus = PairSource([tmp_path / "pairs.parquet"], ("reference", "translation"))
    vocabulary = Vocabulary.build(corpus.texts(), kind=kind)
    corpus.vocabularies = {kind: vocabulary}
    (trained,) = corpus.epoch(0)
    assert trained.empty == 0

    recorder = Recorder()
    model = SentenceEncoder(recorder, {kind: vocabulary}, EmbeddingOptions())
    agreement(model.embed, forum)
    half = len(forum.first)
    evaluated = list(zip(recorder.given[:half], recorder.given[half:], strict=True))
    differing = [pair for pair in evaluated if pair[0] != pair[1]]
    assert len(differing) == len(trained) == half - trained.identical > 400
    sides = rows_of(trained.left[kind]), rows_of(trained.right[kind])
    assert differing == list(zip(*sides, strict=True))

    scored = PairText(forum.first, forum.second)
    tokens = [scored.vocabulary[i].as_py() for i in scored.reference.ids.tolist()]
    seen = [vocabulary.words[i] for first, _ in evaluated for i in first]
    if kind == "trigrams":
        tokens = [f" {token} "[i : i + 3] for token in tokens for i in range(len(token))]
    assert seen == tokens
    assert "<unk>" not in seen

"""Scores of translation models, against the probabilities that the networks themselves give."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray

from paraloom.models.errors import UserError
from paraloom.models.nmt import NmtOptions, Translator
from paraloom.models.nmt.engine import Pieces
from paraloom.models.nmt.families.fairseq import SENTENCEPIECE, FairseqModel
from paraloom.models.nmt.families.subwords import load_sentencepiece
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.learned.probability import source_score
from paraloom.models.text.tokens import PairText
from tests.run_helpers import Patch
from tests.small_model import new_pairs


def score(model: object, sources: Sequence[str], references: Sequence[str]) -> NDArray[np.float32]:
    texts = [pa.array(texts, pa.string()) for texts in (references, references, sources)]
    found = PairScorer(["reference_score"], translation_model=model).score(*texts)
    return found["reference_score"]


class Model:
    """In place of a translation model: each pair has a score of its own; it keeps the pairs."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float32]:
        pairs = list(zip(sources, targets, strict=True))
        self.asked += pairs
        return np.array([-len(s) - len(t) / 10 for s, t in pairs], np.float32)


def test_each_pair_is_scored_once_and_pairs_that_are_crossed_are_others() -> None:
    pairs = [("ab", "bc"), ("ab", "c"), ("a", "bc"), ("ab", "c"), ("a", "c")]
    sources, references = zip(*pairs, strict=True)
    model = Model()
    found = score(model, sources, references)
    assert found.tolist() == pytest.approx([-2.2, -2.1, -1.2, -2.1, -1.1])
    assert sorted(model.asked) == sorted(set(pairs))


def fairseq_log_prob(model: FairseqModel, source: str, reference: str) -> float:
    """The mean of the network's log probabilities for the reference, end of sentence included."""
    network, from_, into, *_ = model.load()
    encode = load_sentencepiece(model.path / SENTENCEPIECE).encode
    given = [*(from_.index(piece) for piece in encode(source, out_type=str)), from_.eos()]
    wanted = [*(into.index(piece) for piece in encode(reference, out_type=str)), into.eos()]
    inputs = torch.tensor([given]), torch.tensor([len(given)])
    with torch.no_grad():
        logits, _ = network(*inputs, torch.tensor([[into.eos(), *wanted[:-1]]]))
    chosen = torch.log_softmax(logits[0], -1).gather(1, torch.tensor(wanted)[:, None])
    return float(chosen.mean())


def test_scores_are_the_probabilities_of_the_network(nmt_model: Path) -> None:
    pairs = new_pairs(12)
    sources, references = zip(*pairs, strict=True)
    found = score(Translator(nmt_model, threads=2), sources, references)
    expected = [fairseq_log_prob(FairseqModel(nmt_model), *pair) for pair in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert (found < 0).all()
    swapped = score(Translator(nmt_model, threads=2), sources, [*references[1:], references[0]])
    assert (found > swapped).mean() > 0.7  # a translation is more probable than another sentence


def test_what_cannot_be_scored_is_no_number(nmt_model: Path) -> None:
    model = Translator(nmt_model, NmtOptions(max_source_subwords=10), threads=1)
    found = score(model, ["Muž.", "", "Muž. " * 30, "Muž."], ["A man.", "A", "A", "A man. " * 30])
    assert np.isnan(found).tolist() == [False, True, True, True]
    for words in range(1, 12):  # a reference may have twice as many subwords as a source
        text = "man " * words
        fits = len(model._subwords.encode([text], target=True)[0]) <= 20
        assert np.isfinite(score(model, ["Muž."], [text])[0]) == fits


def test_a_batch_that_fails_is_halved(nmt_model: Path, monkeypatch: Patch) -> None:
    model = Translator(nmt_model, threads=1)
    sources, references = zip(*new_pairs(8), strict=True)
    whole = score(model, sources, references)
    engine = type(model._engine)
    working, broken = engine.score, references[3]
    (bad,) = model._subwords.encode([broken], target=True)

    def fails(self: Any, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> Any:
        if bad in targets:
            raise RuntimeError("out of memory")
        return working(model._engine, sources, targets)

    monkeypatch.setattr(engine, "score", fails)
    found = score(model, sources, references)
    assert np.isnan(found).tolist() == [text == broken for text in references]
    rest = ~np.isnan(found)
    np.testing.assert_allclose(found[rest], whole[rest], atol=1e-5)
    monkeypatch.setattr(engine, "submit", fails)
    with pytest.raises(UserError, match="does not work"):
        score(model, sources, references)


NAMES = ["source_score", "dual_score"]


def test_both_scores_ask_the_model_once_for_the_source_given_the_translation() -> None:
    model = Model()
    translations, sources = ["a", "ab", "a"], ["xy", "xyz", "xy"]
    certain = pa.array([-1.2, -0.3, -4.2], pa.float32())
    scores = PairScorer(NAMES, forward_model=model).score(
        pa.array(["r"] * 3), pa.array(translations), pa.array(sources), translation_score=certain
    )
    assert sorted(model.asked) == [("a", "xy"), ("ab", "xyz")]
    np.testing.assert_allclose(scores["source_score"], [-1.2, -2.3, -1.2], atol=1e-6)
    # Equal and probable; probable one way only; improbable the other way.
    expected = np.exp([-1.2, -2.0 - 1.3, -3.0 - 2.7])
    np.testing.assert_allclose(scores["dual_score"], expected, rtol=1e-5)


def test_another_model_is_asked_about_the_same_pairs() -> None:
    texts = pa.array(["a", "bb"])
    pairs, one, other = PairText(texts, texts, texts), Model(), Model()
    for model in (one, other):
        assert source_score(pairs, cast(Any, model)).tolist() == pytest.approx([-1.1, -2.2])
    assert one.asked == other.asked == [("a", "a"), ("bb", "bb")]


@pytest.mark.parametrize("block", [1, 2])
def test_blocks_do_not_take_the_values_of_others(block: int, monkeypatch: Patch) -> None:
    monkeypatch.setattr("paraloom.models.scorers.pair_scorer._ROWS", block)
    texts = pa.array(["a", "bb", "ccc", "dddd", "eeeee"])
    certain = pa.array([-1.0] * 5, pa.float32())
    scorer = PairScorer(NAMES, forward_model=Model())
    for rows in (texts, texts[::-1]):
        found = scorer.score(rows, rows, rows, translation_score=certain)["source_score"]
        np.testing.assert_allclose(found, [-1.1 * len(text.as_py()) for text in rows], rtol=1e-6)


def test_what_is_missing_is_named() -> None:
    texts, scorer = pa.array(["a"]), PairScorer(NAMES, forward_model=Model())
    with pytest.raises(UserError, match="source_score, dual_score: the pairs have no source"):
        scorer.score(texts, texts)
    with pytest.raises(UserError, match="dual_score: the pairs have no translation_score"):
        scorer.score(texts, texts, texts)
    with pytest.raises(UserError, match="source_score needs a model in the other direction"):
        PairScorer(["source_score"])

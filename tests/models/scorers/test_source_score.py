"""`source_score` and `dual_score`: whether the model of the other direction finds the way back."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.learned.source_score import source_score
from paraloom.models.text.tokens import PairText

NAMES = ["source_score", "dual_score"]


class Model:
    """In place of a translation model; it keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float32]:
        self.asked += zip(sources, targets, strict=True)
        pairs = zip(sources, targets, strict=True)
        return np.array([-len(s) - len(t) / 10 for s, t in pairs], np.float32)


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
def test_blocks_do_not_take_the_values_of_others(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paraloom.models.scorers.pair_scorer._ROWS", block)
    texts = pa.array(["a", "bb", "ccc", "dddd", "eeeee"])
    certain = pa.array([-1.0] * 5, pa.float32())
    scorer = PairScorer(NAMES, forward_model=Model())
    for rows in (texts, texts[::-1]):
        found = scorer.score(rows, rows, rows, translation_score=certain)["source_score"]
        np.testing.assert_allclose(found, [-1.1 * len(text.as_py()) for text in rows], rtol=1e-6)


def test_what_is_missing_is_named() -> None:
    texts, scorer = pa.array(["a"]), PairScorer(NAMES, forward_model=Model())
    with pytest.raises(UserError, match="source_score, dual_score: needs the sources"):
        scorer.score(texts, texts)
    with pytest.raises(UserError, match="dual_score: needs the translation scores"):
        scorer.score(texts, texts, texts)
    with pytest.raises(UserError, match="source_score needs a model in the other direction"):
        PairScorer(["source_score"])

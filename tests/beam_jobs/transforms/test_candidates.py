"""The choice among several translations of a source."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs.transforms.candidates import best_candidates, diverse_candidates
from paraloom.models.scorers import PairScorer


def sources(*translations: list[str]) -> pa.Table:
    """The translations of each source, the best first."""
    rows = [
        {"id": f"s{i}", "candidate": k, "translation": text}
        for i, texts in enumerate(translations)
        for k, text in enumerate(texts)
    ]
    form = pa.schema([("id", pa.string()), ("candidate", pa.int8()), ("translation", pa.string())])
    return pa.Table.from_pylist(rows, form)


def overlap(first: str, second: str) -> float:
    scores = PairScorer(["trigram_overlap", "unigram_f1"]).score(
        pa.array([first]), pa.array([second])
    )
    short = min(len(first.split()), len(second.split())) < 3
    return float(scores["unigram_f1" if short else "trigram_overlap"][0])


def greedy(texts: list[str], bound: float) -> list[bool]:
    """As the issue says it, one source at a time."""
    kept = [0] if texts else []
    while True:
        rest = [k for k in range(len(texts)) if k not in kept]
        nearest = {k: max(overlap(texts[k], texts[j]) for j in kept) for k in rest}
        if not rest or min(nearest.values()) > bound:
            return [k in kept for k in range(len(texts))]
        kept.append(min(rest, key=lambda k: (nearest[k], k)))


def test_the_best_is_the_first_that_is_left() -> None:
    table = sources(["a b c", "a b d"], ["x"], [], ["y", "z"])
    assert best_candidates(table).tolist() == [True, False, True, True, False]
    assert best_candidates(table.slice(1)).tolist() == [True, True, True, False]
    assert best_candidates(table.slice(0, 0)).tolist() == []


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    counts=st.lists(st.integers(1, 5), max_size=5),
    bound=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_equals_a_loop_over_sources(seed: int, counts: list[int], bound: float) -> None:
    random = np.random.default_rng(seed)
    texts = [
        [" ".join(random.choice(list("abc"), random.integers(1, 7))) for _ in range(count)]
        for count in counts
    ]
    found = diverse_candidates(sources(*texts), bound)
    assert found.tolist() == [kept for each in texts for kept in greedy(each, bound)]

"""The classifier: its definition, what it learns, and that it never judges what it has seen."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.errors import UserError
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.learned.human_classifier import (
    FOLDS,
    Classifier,
    open_classifier,
    train_classifier,
)
from tests.models.scorers.plain_likeness import buckets, fold, plain_likeness
from tests.run_helpers import Patch


def sample(
    references: list[str], translations: list[str], elsewhere: Sequence[tuple[str, str]] = ()
) -> pa.Table:
    """A sample whose texts occur in the folds of their own pairs, and in those of `elsewhere`."""
    folds: dict[str, int] = {}
    for reference, translation in [*zip(references, translations, strict=True), *elsewhere]:
        for text in (reference, translation):
            folds[text] = folds.get(text, 0) | 1 << fold(reference)
    columns = {"reference": references, "translation": translations}
    marks = {f"{s}_folds": pa.array([folds[t] for t in c], pa.uint8()) for s, c in columns.items()}
    return pa.table({**columns, **marks})


def made(rows: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Translations say `uh` where references say nothing; every text has a word of its own."""
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(50)]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(rows)]
    return [f"{t} r{i}" for i, t in enumerate(texts)], [f"{t} uh t{i}" for i, t in enumerate(texts)]


def test_many_pairs_score_as_plainly_defined(pairs: list[tuple[str, str]]) -> None:
    pairs = [*pairs[:500], *pairs[-500:], ("", ""), ("a", "")]
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(FOLDS, 1 << 20)).astype(np.float32)
    classifier = Classifier(weights, rng.normal(size=FOLDS).astype(np.float32))
    columns = [pa.array(column, pa.string()) for column in zip(*pairs, strict=True)]
    found = PairScorer(["human_likeness"], classifier=classifier).score(*columns)["human_likeness"]
    expected = [plain_likeness(r, t, classifier) for r, t in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.std() > 0.1


def test_a_model_has_seen_no_text_of_its_fold(tmp_path: Path) -> None:
    references, translations = made(300)
    train_classifier(sample(references, translations), tmp_path, seed=1)
    weights = open_classifier(tmp_path).weights
    own = [set(buckets(f"r{i}")) | set(buckets(f"t{i}")) for i in range(300)]
    others = [bucket for text in references + translations for bucket in buckets(text)]
    often = dict(zip(*np.unique(others, return_counts=True), strict=True))
    for i, reference in enumerate(references):
        here = fold(reference)
        for bucket in own[i]:
            assert often[bucket] == 1  # no other text has this n-gram
            assert weights[here, bucket] == 0  # nothing was ever learnt of it
            assert (np.delete(weights[:, bucket], here) != 0).all()


def test_nor_a_text_that_occurs_in_its_fold_elsewhere(tmp_path: Path) -> None:
    references, translations = made(300)
    here = fold(references[0])
    other = next(r for r in references if fold(r) != here)
    both = {here, fold(other)}
    train_classifier(
        sample(references, translations, elsewhere=[(other, translations[0])]), tmp_path, seed=1
    )
    weights = open_classifier(tmp_path).weights
    (bucket,) = buckets("t0")
    assert set(np.flatnonzero(weights[:, bucket] == 0)) == both


def test_what_can_be_learnt_is(tmp_path: Path) -> None:
    learnt = train_classifier(sample(*made(400)), tmp_path, seed=1)
    assert learnt["accuracy"] > 0.95
    assert learnt["log_loss"] < 0.3
    classifier = open_classifier(tmp_path)
    scorer = PairScorer(["human_likeness"], classifier=tmp_path)
    texts = pa.array(["word1 word2 word3", "word1 word2 uh word3"])
    human, machine = scorer.score(pa.array(["a", "a"]), texts)["human_likeness"]
    assert human > 0.5 > machine
    assert classifier.weights.dtype == np.float32


def test_what_cannot_be_learnt_is_said_to_be(tmp_path: Path) -> None:
    references, _ = made(400)
    shuffled = np.random.default_rng(5).permutation(references).tolist()
    learnt = train_classifier(sample(references, shuffled), tmp_path, seed=1)
    assert 0.4 < learnt["accuracy"] < 0.6  # seen texts would be told apart


def test_the_metrics_are_of_unseen_texts(tmp_path: Path) -> None:
    pairs = sample(*made(200))
    learnt = train_classifier(pairs, tmp_path, seed=1)
    classifier = open_classifier(tmp_path)
    rows = [(row["reference"], row["translation"]) for row in pairs.to_pylist()]
    human = np.array([plain_likeness(r, r, classifier) for r, _ in rows])
    machine = np.array([plain_likeness(r, t, classifier) for r, t in rows])
    assert learnt["accuracy_references"] == np.mean(human > 0.5)
    assert learnt["accuracy_translations"] == np.mean(machine < 0.5)
    assert learnt["accuracy"] == pytest.approx(np.mean([*(human > 0.5), *(machine < 0.5)]))
    surprise = -np.log([*human, *(1 - machine)]).mean()
    assert learnt["log_loss"] == pytest.approx(surprise, rel=1e-4)
    counts = np.bincount([fold(r) for r, _ in rows], minlength=FOLDS)
    assert learnt["texts"] == [2 * (200 - int(n)) for n in counts]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    pairs, files = sample(*made(150)), []
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        (tmp_path / name).mkdir()
        train_classifier(pairs, tmp_path / name, seed=seed)
        files.append({f.name: f.read_bytes() for f in (tmp_path / name).iterdir()})
    assert files[0].keys() == {"weights.safetensors", "classifier.json"}
    assert files[0] == files[1] != files[2]


def test_the_penalty_is_shared_and_texts_alternate(tmp_path: Path, monkeypatch: Patch) -> None:
    from sklearn.linear_model import SGDClassifier

    fits: list[tuple[float, list[bool]]] = []
    fit = SGDClassifier.fit

    def record(model: Any, features: Any, human: Any) -> Any:
        fits.append((model.alpha, human.tolist()))
        return fit(model, features, human)

    monkeypatch.setattr(SGDClassifier, "fit", record)
    texts = train_classifier(sample(*made(60)), tmp_path, seed=1)["texts"]
    assert [len(human) for _, human in fits] == texts
    for penalty, human in fits:
        assert penalty * len(human) == pytest.approx(0.15)
        assert human == [True, False] * (len(human) // 2)


@pytest.mark.parametrize("rows", [0, 1])
def test_too_little_to_train_on(rows: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"of {rows} pairs too few differ to train its classifier"):
        train_classifier(sample(*made(rows)), tmp_path, seed=1)

"""A classifier that separates human from machine-translated text.

Wieting, Mallinson & Gimpel (2017) train one on references and back-translations, and filter by the
probability that a translation is a reference. They use an LSTM and a word average; a logistic
regression on token n-grams scores a corpus as fast as the other scorers do. There is one model per
fold: a pair is scored by the model of its fold, which was not trained on either of its texts, even
if they also occur in other pairs.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes
from paraloom.models.languages import ENGLISH
from paraloom.models.text.tokens import PairText, TokenIds

FOLDS = 5
_ORDER = 3  # n-grams have 1 to 3 tokens
_BITS = 20  # there are 2 ** 20 buckets of n-grams
_NEXT = np.uint64(0xC2B2AE3D27D4EB4F)  # odd, so that no bit is lost
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_PENALTY = 0.15  # L2 penalty, divided by the number of texts
_EPOCHS = 10
_WEIGHTS, _RECORD = "weights.safetensors", "classifier.json"


@dataclass(frozen=True, eq=False)
class Classifier:
    """One logistic regression per fold: `weights` float32 [folds, buckets], `bias` [folds]."""

    weights: np.ndarray
    bias: np.ndarray

    def probability(self, tokens: TokenIds, hashes: np.ndarray, fold: np.ndarray) -> np.ndarray:
        """P(human | text) for n texts, each by the model of its fold (int [n]): float32 [n].

        `hashes` has one of each token of the vocabulary: uint64 [V].
        """
        from scipy.special import expit

        total = np.zeros(len(fold))
        for rows, buckets in _ngrams(tokens, hashes):
            total += np.bincount(rows, self.weights[fold[rows], buckets], minlength=len(fold))
        probability: np.ndarray = expit(self.bias[fold] + total * _scale(tokens))
        return probability.astype(np.float32)


def fold_of(reference: pa.Array) -> np.ndarray:
    """The fold of each pair, from a hash of its reference: uint8 [n].

    All translations of a reference are in the same fold, and scoring needs nothing but the texts.
    """
    return (text_hashes(reference) % np.uint64(FOLDS)).astype(np.uint8)


def human_likeness(pairs: PairText, classifier: Classifier) -> np.ndarray:
    """P(human | translation) by a model that was not trained on either side: float32 [n] in [0, 1].

    The reference only determines which model that is.
    """
    fold = fold_of(pairs.reference_text)
    return classifier.probability(pairs.translation, text_hashes(pairs.vocabulary), fold)


def train_classifier(
    sample: pa.Table, folder: Path, *, seed: int, language: str = ENGLISH
) -> dict[str, Any]:
    """Train the models on a sample of pairs and write them to `folder`.

    The sample has `reference`, `translation`, and for each text the folds in which it occurs in the
    whole corpus, one bit per fold: `reference_folds`, `translation_folds` (uint8). The model of a
    fold is trained on the texts that do not occur in the fold, so no model is trained on a text
    that it scores.

    Returns:
        results on held-out texts: balanced accuracy (0.5 is chance), accuracy on references and on
        translations, mean negative log-likelihood, number of pairs, texts per model.
    """
    from safetensors.numpy import save_file
    from sklearn.linear_model import SGDClassifier

    rows = len(sample)
    pairs = PairText(*(sample[side].combine_chunks() for side in _SIDES), language=language)
    features, human = _features(pairs), np.repeat([True, False], rows)
    seen = np.concatenate([sample[f"{side}_folds"].to_numpy() for side in _SIDES])
    models, trained = [], []
    for fold in range(FOLDS):
        usable = np.flatnonzero(seen >> fold & 1 == 0)
        # References and translations alternate: the order does not depend on the sampling job.
        usable = usable[np.argsort(usable % max(rows, 1), kind="stable")]
        if len(np.unique(human[usable])) < 2:
            raise UserError(
                f"human_likeness: of {rows:,} pairs too few differ to train its classifier; "
                "take it out of score.scorers"
            )
        model = SGDClassifier(
            loss="log_loss",
            alpha=_PENALTY / len(usable),
            max_iter=_EPOCHS,
            tol=None,
            average=True,
            random_state=seed,
        )
        models.append(model.fit(features[usable], human[usable]))
        trained.append(len(usable))
    found = Classifier(
        np.concatenate([model.coef_ for model in models]).astype(np.float32),
        np.concatenate([model.intercept_ for model in models]).astype(np.float32),
    )
    metrics = {**_evaluate(found, pairs), "texts": trained}
    save_file({"weights": found.weights, "bias": found.bias}, folder / _WEIGHTS)
    record = {"folds": FOLDS, "order": _ORDER, "bits": _BITS, "metrics": metrics}
    (folder / _RECORD).write_text(json.dumps(record, indent=1))
    return metrics


def open_classifier(folder: Path | str) -> Classifier:
    """Read the models that `train_classifier` wrote."""
    from safetensors.numpy import load_file

    tensors = load_file(Path(folder) / _WEIGHTS)
    return Classifier(tensors["weights"], tensors["bias"])


_SIDES = ("reference", "translation")


def _ngrams(tokens: TokenIds, hashes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row and bucket of every n-gram, for each n."""
    token = hashes[tokens.ids]
    key = token
    for n in range(1, _ORDER + 1):
        if n > 1:
            key = key[:-1] * _NEXT + token[n - 1 :]  # modulo 2**64
        rows = tokens.rows[: len(key)]
        inside = rows == tokens.rows[n - 1 :]
        yield rows[inside], (key[inside] * _SPREAD >> np.uint64(64 - _BITS)).astype(np.int64)


def _scale(tokens: TokenIds) -> np.ndarray:
    """The weight of an n-gram in each row, 1 / √(number of n-grams in the row): float64 [n]."""
    counts = sum(np.maximum(tokens.lengths - n, 0) for n in range(_ORDER))
    return np.asarray(1 / np.sqrt(np.maximum(counts, 1)))


def _features(pairs: PairText) -> Any:
    """N-grams of all references, then of all translations: a sparse float32 matrix."""
    from scipy.sparse import csr_matrix, vstack

    hashes = text_hashes(pairs.vocabulary)
    found = []
    for tokens in (pairs.reference, pairs.translation):
        rows, buckets = map(np.concatenate, zip(*_ngrams(tokens, hashes), strict=True))
        values = _scale(tokens)[rows].astype(np.float32)
        found.append(csr_matrix((values, (rows, buckets)), shape=(len(pairs), 1 << _BITS)))
    return vstack(found, format="csr")


def _evaluate(classifier: Classifier, pairs: PairText) -> dict[str, float]:
    hashes, fold = text_hashes(pairs.vocabulary), fold_of(pairs.reference_text)
    human, machine = (
        classifier.probability(side, hashes, fold).astype(np.float64)
        for side in (pairs.reference, pairs.translation)
    )
    right = float((human > 0.5).mean()), float((machine < 0.5).mean())
    least = np.finfo(np.float32).tiny
    log_loss = -np.log(np.maximum(np.append(human, 1 - machine), least)).mean()
    return {
        "accuracy": math.fsum(right) / 2,
        "accuracy_references": right[0],
        "accuracy_translations": right[1],
        "log_loss": float(log_loss),
        "pairs": len(pairs),
    }

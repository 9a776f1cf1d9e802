"""Measures the precision of scores and of combined scores on pairs with different words.

python -m benchmarks.judged_rewordings --model DIR [--labels FILE] [--paragram FILE]
    [--wordnet DIR] [--spacy PIPELINE]

Two sets of judged pairs are measured: pairs with a unigram F1 of at most 0.7, or of at most 0.5.
Each score keeps the quarter of a set with the highest scores. The precision of a score is the share
of kept pairs with a label of at least 70. Pairs without a known translation score are left out.

A hash divides the references into two halves. One half chooses the best combination of scores and
fits the learned combination. The other half measures only the chosen combinations. The 95%
intervals are by bootstrap over references.
"""

import csv
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks.judged_precision import GOOD, JUDGMENTS
from benchmarks.measure import command_line, print_table
from paraloom.models.scorers.learned.sentence_similarity import open_sentence_model
from paraloom.models.text.idf import count_words, idf_table
from paraloom.pipeline.judging.agreement import score_labels

LIMITS = (0.7, 0.5)
"""Upper limits of the unigram F1 of a pair."""
KEPT = 0.25
RESAMPLES = 1_000
BASELINE = "sentence_similarity"
LEARNED = "ridge on all scores"
CHECKS = ("same_numbers", "same_names", "same_negation", "no_antonyms", "same_roles")
COMBINATIONS: dict[str, dict[str, float]] = {
    f"+1 {BASELINE} {weight:+g} {name}": {BASELINE: 1.0, name: weight}
    for name, weight in (
        ("unigram_f1", 0.5),
        ("content_overlap", 0.5),
        ("edit_distance", 0.5),
        ("mean_idf", 0.5),
        ("translation_score", 0.2),
        ("translation_score", 0.4),
    )
}
"""Sums of standardised scores. For every score, higher is better."""
FILTERS = [*((check,) for check in CHECKS), CHECKS]
"""Groups of checks that are combined with the baseline. Pairs that fail a check rank last."""

Floats = NDArray[np.float64]


class Judged(NamedTuple):
    """n judged pairs without copies. For every score, higher is better."""

    labels: Floats  # [n]
    group: NDArray[np.int64]  # [n]: the number of the reference
    chooses: NDArray[np.bool_]  # [n]: whether the reference is in the half that chooses
    scores: dict[str, Floats]  # [n] each

    def low(self, limit: float, *, chooses: bool) -> NDArray[np.int64]:
        """Return the rows of one half with a unigram F1 of at most `limit`."""
        return np.flatnonzero((self.scores["unigram_f1"] <= limit) & (self.chooses == chooses))


def precision(values: Floats, good: NDArray[np.bool_], weights: Floats) -> Floats:
    """Return the share of good pairs among the n · `KEPT` pairs with the highest values, [b].

    If only some of several pairs with equal values fit, each of these pairs counts in part.

    Args:
        weights: how often each pair counts in each of b samples, [b, n].

    >>> precision(np.arange(8.0), np.arange(8) > 6, np.ones((1, 8))).tolist()
    [0.5]
    """
    order = np.argsort(-values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=np.inf))
    right = np.add.reduceat(weights[:, order] * good[order], starts, axis=1)
    weights = np.add.reduceat(weights[:, order], starts, axis=1)  # of equal values
    before = np.cumsum(weights, axis=1) - weights
    kept = np.clip(KEPT * weights.sum(axis=1, keepdims=True) - before, 0, weights)
    shares = right / np.maximum(weights, 1e-9)
    return np.asarray((kept * shares).sum(axis=1) / kept.sum(axis=1))


def drawn(values: Floats, good: NDArray[np.bool_], group: NDArray[Any]) -> Floats:
    """Return `precision` on bootstrap samples of the references, [RESAMPLES].

    Every call draws the same samples.
    """
    numbers = np.unique(group, return_inverse=True)[1]
    groups, random = int(numbers.max()) + 1, np.random.default_rng(1)
    times = random.multinomial(groups, np.full(groups, 1 / groups), RESAMPLES).astype(float)
    blocks = np.array_split(times, RESAMPLES // 50)
    return np.concatenate([precision(values, good, block[:, numbers]) for block in blocks])


def read(labels: Path, resources: dict[str, Any]) -> Judged:
    """Read and score judgments, without pairs that have no translation score."""
    with labels.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    rows = [row for row in rows if row["reference"] != row["paraphrase"]]
    losses = np.array([float(row["nll"]) for row in rows])
    known = losses >= 0
    paraphrases = pa.array([row["paraphrase"] for row in rows]).filter(pa.array(known))
    idf = idf_table(count_words(paraphrases))
    pairs = score_labels(str(labels), resources={"idf": idf, **resources})
    scores = {"translation_score": -losses[known]}
    for name, of in pairs.scores.items():
        scores[name] = of[known] if pairs.higher_is_better[name] else -of[known]
    references = pairs.references[known]
    return Judged(
        labels=pairs.labels[known],
        group=np.unique(references, return_inverse=True)[1],
        chooses=np.array([hashlib.sha256(r.encode()).digest()[0] % 2 == 0 for r in references]),
        scores=scores,
    )


def combined(judged: Judged) -> dict[str, Floats]:
    """Return the combinations whose scores are known, and the learned combination.

    The learned combination is fitted on the pairs with different words in the half that chooses.
    """
    units = {n: (v - v.mean()) / max(v.std(), 1e-9) for n, v in judged.scores.items()}
    found = {
        name: np.sum([weight * units[score] for score, weight in weights.items()], axis=0)
        for name, weights in COMBINATIONS.items()
        if weights.keys() <= units.keys()
    }
    for checks in FILTERS:
        if judged.scores.keys() >= {*checks}:
            passed = np.all([judged.scores[check] == 1 for check in checks], axis=0)
            name = f"{BASELINE}, if {' and '.join(checks)}"
            found[name] = units[BASELINE] + np.where(passed, 0.0, -1e3)
    columns = np.stack([*units.values(), np.ones(len(judged.labels))], axis=1)
    rows = judged.low(LIMITS[0], chooses=True)
    penalty = 100 * np.eye(columns.shape[1])
    x, y = columns[rows], judged.labels[rows]
    return {**found, LEARNED: columns @ np.linalg.solve(x.T @ x + penalty, x.T @ y)}


class Found(NamedTuple):
    """The results of one score on pairs with different words."""

    precision: float
    interval: list[float]  # 95% interval of the precision: lower and upper end
    lead: list[float]  # 95% interval of the precision minus the baseline's precision
    spearman: float

    def cells(self) -> list[str]:
        """Return the cells of a table row."""
        spans = (f"{low:.2f} to {high:.2f}" for low, high in (self.interval, self.lead))
        return [f"{self.precision:.3f}", *spans, f"{self.spearman:.2f}"]


def measure(judged: Judged, values: Floats, limit: float, *, chooses: bool) -> Found:
    """Measure one score on one half."""
    rows = judged.low(limit, chooses=chooses)
    good, labels, group = judged.labels[rows] >= GOOD, judged.labels[rows], judged.group[rows]
    baseline = drawn(judged.scores[BASELINE][rows], good, group)
    own = drawn(values[rows], good, group)
    interval, lead = (np.nanpercentile(of, [2.5, 97.5]).tolist() for of in (own, own - baseline))
    share = float(precision(values[rows], good, np.ones((1, len(rows))))[0])
    return Found(share, interval, lead, float(spearmanr(values[rows], labels).statistic))


def chosen(judged: Judged, combinations: Mapping[str, Floats]) -> list[str]:
    """Return the names of the scores to report.

    The names are the baseline, the learned combination, the single score that is best on the half
    that chooses, and for each limit the best combination that is not learned.
    """

    def best(of: Mapping[str, Floats], limit: float) -> str:
        rows = judged.low(limit, chooses=True)
        good, ones = judged.labels[rows] >= GOOD, np.ones((1, len(rows)))
        return max(of, key=lambda name: float(precision(of[name][rows], good, ones)[0]))

    plain = {name: values for name, values in combinations.items() if name != LEARNED}
    names = [best(judged.scores, LIMITS[0]), *(best(plain, limit) for limit in LIMITS if plain)]
    return list(dict.fromkeys([BASELINE, *names, LEARNED]))


def main(
    model: Annotated[Path, typer.Option(help="Model of sentence-transformers.")],
    labels: Path = Path(JUDGMENTS),
    paragram: Annotated[str, typer.Option(help="Word vectors, for paragram_similarity.")] = "",
    wordnet: Annotated[str, typer.Option(help="WordNet's folder, for no_antonyms.")] = "",
    spacy: Annotated[str, typer.Option(help="spaCy pipeline, for same_roles.")] = "",
) -> None:
    """Score, choose on one half, measure on the other, and print."""
    files = {"paragram": paragram, "wordnet": wordnet, "spacy": spacy}
    resources = {name: file for name, file in files.items() if file}
    judged = read(labels, {"sentence_model": open_sentence_model(model), **resources})
    combinations = combined(judged)
    print(f"Precision at {KEPT:.0%} kept of {len(judged.labels):,} judged pairs")
    every = {**judged.scores, **combinations}
    halves = {"chooses": list(every), "reports": chosen(judged, combinations)}
    columns = ("precision", "95%", "over the cosine, 95%", "Spearman")
    heads = [f"F1 ≤ {limit}: {column}" for limit in LIMITS for column in columns]
    for half, names in halves.items():
        chooses = half == "chooses"
        shown = []
        for name in names:
            found = [measure(judged, every[name], limit, chooses=chooses) for limit in LIMITS]
            shown.append((name, *(cell for each in found for cell in each.cells())))
        print_table(None, [half], heads, shown)
        for limit in LIMITS:
            low = judged.labels[judged.low(limit, chooses=chooses)]
            good = float((low >= GOOD).mean())
            print(f"{half}, F1 <= {limit}: {len(low):,} pairs, {good:.0%} right")


if __name__ == "__main__":
    command_line(main)

"""How many of the pairs that a score ranks highest are right, among pairs with different words.

python -m benchmarks.judged_rewordings --model DIR [--labels FILE] [--paragram FILE]
    [--wordnet DIR] [--spacy PIPELINE]

Of the judged pairs with a unigram F1 of at most 0.7 (0.5), each score keeps its highest quarter;
precision is the share of pairs with labels of at least 70. The references are divided into two
halves by a hash: one chooses the best combination and fits the learned one, and only the chosen
ones are measured on the other half, with 95% intervals by bootstrap over references. Only pairs
with a known translation score count. If checks are combined with a score, pairs that fail one rank
last.
"""

import csv
import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks.judged_precision import GOOD, JUDGMENTS
from benchmarks.report import Measured, command_line
from paraloom.models.scorers import SCORERS, PairScorer
from paraloom.models.scorers.learned.sentence_similarity import open_sentence_model
from paraloom.models.scorers.tokens.content_overlap import content_stem
from paraloom.models.text.idf import count_words, idf_table
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.judging.agreement import default_names

LIMITS = (0.7, 0.5)  # of unigram F1
KEPT = 0.25
RESAMPLES = 1_000
BASELINE = "sentence_similarity"
LEARNED = "ridge on all scores"
CHECKS = ("same_numbers", "same_names", "same_negation", "no_antonyms", "same_roles")
COMBINATIONS: dict[str, dict[str, float]] = {
    " ".join(f"{weight:+g} {name}" for name, weight in weights.items()): weights
    for weights in (
        {BASELINE: 1.0, "token_alignment": 1.0},
        {BASELINE: 1.0, "unigram_f1": 0.5},
        {BASELINE: 1.0, "content_overlap": 0.5},
        {BASELINE: 1.0, "edit_distance": 0.5},
        {BASELINE: 1.0, "mean_idf": 0.5},
        {BASELINE: 1.0, "translation_score": 0.2},
        {BASELINE: 1.0, "translation_score": 0.4},
        {BASELINE: 1.0, "worst_word": 0.5},
        {BASELINE: 1.0, "worst_word": 1.0},
        {BASELINE: 1.0, "worst_word": 0.5, "translation_score": 0.4},
        {BASELINE: 1.0, "worst_word": 1.0, "translation_score": 0.4},
    )
}
"""Sums of scores in standard deviations; for every score, higher is better."""
FILTERS = [*((check,) for check in CHECKS), CHECKS]
_WORD = re.compile(r"[^\W_]+(?:['’][a-z]+)?")

Floats = NDArray[np.float64]


class Judged(NamedTuple):
    """n judged pairs, none of them copies; for every score, higher is better."""

    labels: Floats  # [n]
    group: NDArray[np.int64]  # [n]: the number of the reference
    chooses: NDArray[np.bool_]  # [n]: whether the reference is of the half that chooses
    scores: dict[str, Floats]  # [n] each
    rates: dict[str, float]  # pairs/s of a core, by score

    def low(self, limit: float, *, chooses: bool) -> NDArray[np.int64]:
        """The pairs of a half with a unigram F1 of at most `limit`."""
        return np.flatnonzero((self.scores["unigram_f1"] <= limit) & (self.chooses == chooses))


def precision(values: Floats, good: NDArray[np.bool_], weights: Floats) -> Floats:
    """Share of good pairs among the highest `KEPT` of n pairs, which count `weights` [b, n]: [b].

    Of pairs with equal values, all are kept in the same share.

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
    """`precision` over references drawn anew, `RESAMPLES` times; the same draws for all values."""
    numbers = np.unique(group, return_inverse=True)[1]
    groups, random = int(numbers.max()) + 1, np.random.default_rng(1)
    times = random.multinomial(groups, np.full(groups, 1 / groups), RESAMPLES).astype(float)
    blocks = np.array_split(times, RESAMPLES // 50)
    return np.concatenate([precision(values, good, block[:, numbers]) for block in blocks])


def percentile_interval(values: Floats) -> tuple[float, float]:
    """The middle 95% of the values that are numbers."""
    low, high = np.percentile(values[np.isfinite(values)], [2.5, 97.5])
    return float(low), float(high)


def token_alignment(first: pa.Array, second: pa.Array, *, model: Any) -> Floats:
    """BERTScore's F1 (Zhang et al. 2020): each token's best cosine on the other side."""
    texts = pa.concat_arrays([first, second]).unique().to_pylist()
    found = model.encode(texts, output_value="token_embeddings", show_progress_bar=False)
    units = {
        text: (of / of.norm(dim=1, keepdim=True)).cpu().numpy()
        for text, of in zip(texts, found, strict=True)
    }
    scores = []
    for one, other in zip(first.to_pylist(), second.to_pylist(), strict=True):
        cosines = units[one] @ units[other].T
        sides = [cosines.max(axis).mean() for axis in (0, 1)]
        scores.append(2 * sides[0] * sides[1] / sum(sides))
    return np.array(scores)


def worst_word(first: pa.Array, second: pa.Array, *, model: Any) -> Floats:
    """The least of the best cosines of the content words that only one side has: a single wrong
    word changes the meaning. 1 where both sides have the same content words.

    Words have the mean of their subwords' vectors in the last layer but one.
    """
    texts = sorted({*first.to_pylist(), *second.to_pylist()}, key=len)
    found = {}
    for at in range(0, len(texts), 32):
        batch = texts[at : at + 32]
        given = model.tokenizer(
            batch, padding=True, truncation=True, return_offsets_mapping=True, return_tensors="pt"
        )
        offsets = given.pop("offset_mapping").numpy()
        hidden = model[0].auto_model(**given.to(model.device), output_hidden_states=True)
        layer = hidden.hidden_states[-2].detach().cpu().numpy()
        for text, spans, vectors in zip(batch, offsets, layer, strict=True):
            found[text] = _words(text, spans, vectors)
    scores = []
    for one, other in zip(first.to_pylist(), second.to_pylist(), strict=True):
        (stems, vectors), (others, against) = found[one], found[other]
        cosines = vectors @ against.T if len(stems) and len(others) else np.zeros((1, 1))
        sides = (stems, others, cosines.max(1)), (others, stems, cosines.max(0))
        best = [c for a, b, of in sides for s, c in zip(a, of, strict=False) if s and s not in b]
        scores.append(min(best, default=1.0))
    return np.array(scores)


def _words(text: str, spans: Any, vectors: Any) -> tuple[list[str | None], Any]:
    """The stems of a text's words (None for a function word), and their unit vectors."""
    stems, units = [], []
    for word in _WORD.finditer(text):
        own = (spans[:, 0] < word.end()) & (spans[:, 1] > word.start())
        if own.any():
            unit = vectors[own].mean(axis=0)
            stems.append(content_stem(word.group().lower()))
            units.append(unit / np.linalg.norm(unit))
    return stems, np.array(units)


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a file of judgments that are no copies and have a translation score."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [r for r in rows if r["reference"] != r["paraphrase"] and float(r["nll"]) >= 0]


def score(
    rows: Sequence[Mapping[str, str]],
    scorers: Mapping[str, Callable[[pa.Array, pa.Array], Floats]],
) -> Judged:
    """Score the pairs."""
    sides = [pa.array([row[side] for row in rows]) for side in ("reference", "paraphrase")]
    references = sides[0].to_pylist()
    scores, rates = {"translation_score": np.array([-float(row["nll"]) for row in rows])}, {}
    for name, function in scorers.items():
        function(*(side[:50] for side in sides))  # the first call is slower
        started = time.process_time()
        scores[name] = np.asarray(function(*sides), float)
        rates[name] = len(rows) / (time.process_time() - started)
        if name in SCORERS and not SCORERS[name].higher_is_better:
            scores[name] = -scores[name]
    return Judged(
        labels=np.array([float(row["score"]) for row in rows]),
        group=np.unique(references, return_inverse=True)[1],
        chooses=np.array([hashlib.sha256(r.encode()).digest()[0] % 2 == 0 for r in references]),
        scores=scores,
        rates=rates,
    )


def combined(judged: Judged) -> dict[str, Floats]:
    """The combinations whose scores are known, and the learned one, which is fitted on pairs with
    different words in the half that chooses.
    """
    units = {n: (v - v.mean()) / max(v.std(), 1e-9) for n, v in judged.scores.items()}
    found = {
        name: np.sum([weight * units[score] for score, weight in weights.items()], axis=0)
        for name, weights in COMBINATIONS.items()
        if weights.keys() <= units.keys()
    }
    found |= {
        f"{BASELINE}, if {' and '.join(checks)}": units[BASELINE]
        + np.where(np.all([judged.scores[check] == 1 for check in checks], axis=0), 0.0, -1e3)
        for checks in FILTERS
        if judged.scores.keys() >= {*checks}
    }
    columns = np.stack([*units.values(), np.ones(len(judged.labels))], axis=1)
    rows = judged.low(LIMITS[0], chooses=True)
    penalty = 100 * np.eye(columns.shape[1])
    x, y = columns[rows], judged.labels[rows]
    return {**found, LEARNED: columns @ np.linalg.solve(x.T @ x + penalty, x.T @ y)}


class Found(NamedTuple):
    """What a score is worth among pairs with different words."""

    precision: float
    interval: tuple[float, float]
    lead: tuple[float, float]  # interval of the precision minus the baseline's precision
    spearman: float

    def cells(self) -> list[str]:
        """The figures in a table."""
        spans = (f"{low:.2f} to {high:.2f}" for low, high in (self.interval, self.lead))
        return [f"{self.precision:.3f}", *spans, f"{self.spearman:.2f}"]


def measure(judged: Judged, values: Floats, limit: float, *, chooses: bool) -> Found:
    """Measure one score on one half."""
    rows = judged.low(limit, chooses=chooses)
    good, labels, group = judged.labels[rows] >= GOOD, judged.labels[rows], judged.group[rows]
    baseline = drawn(judged.scores[BASELINE][rows], good, group)
    own = drawn(values[rows], good, group)
    return Found(
        float(precision(values[rows], good, np.ones((1, len(rows))))[0]),
        percentile_interval(own),
        percentile_interval(own - baseline),
        float(spearmanr(values[rows], labels).statistic),
    )


def chosen(judged: Judged, combinations: Mapping[str, Floats]) -> list[str]:
    """The baseline, the best score, the best combination for each limit, and the learned
    combination, all by the half that chooses.
    """

    def at(values: Floats, limit: float) -> float:
        rows = judged.low(limit, chooses=True)
        every = np.ones((1, len(rows)))
        return float(precision(values[rows], judged.labels[rows] >= GOOD, every)[0])

    plain = {name: values for name, values in combinations.items() if name != LEARNED}
    choices = [(judged.scores, LIMITS[0]), *((plain, limit) for limit in LIMITS)]
    best = [
        max(of, key=lambda name, of=of, limit=limit: at(of[name], limit))  # type: ignore[misc]
        for of, limit in choices
        if of
    ]
    return list(dict.fromkeys([BASELINE, *best, LEARNED]))


def main(
    model: Annotated[Path, typer.Option(help="Model of sentence-transformers.")],
    labels: Path = Path(JUDGMENTS),
    paragram: Annotated[str, typer.Option(help="Word vectors, for paragram_similarity.")] = "",
    wordnet: Annotated[str, typer.Option(help="WordNet's folder, for no_antonyms.")] = "",
    spacy: Annotated[str, typer.Option(help="spaCy pipeline, for same_roles.")] = "",
) -> None:
    """Score, choose on one half, measure on the other, and print."""
    opened = open_sentence_model(model)
    rows = read(labels)
    idf = idf_table(count_words(pa.array([row["paraphrase"] for row in rows])))
    resources: dict[str, Any] = {BASELINE: {"sentence_model": opened}, "mean_idf": {"idf": idf}}
    resources |= {"paragram_similarity": {"paragram": paragram}} if paragram else {}
    resources |= {"no_antonyms": {"wordnet": wordnet}} if wordnet else {}
    resources |= {"same_roles": {"spacy": spacy}} if spacy else {}
    named = {n: PairScorer([n], **resources.get(n, {})) for n in [*default_names(), *resources]}

    def by_scorer(name: str, first: pa.Array, second: pa.Array) -> Floats:
        return np.asarray(named[name].score(first, second)[name], float)

    functions = {name: partial(by_scorer, name) for name in named}
    own: dict[str, Callable[[pa.Array, pa.Array], Floats]] = {
        "token_alignment": partial(token_alignment, model=opened),
        "worst_word": partial(worst_word, model=opened),
    }
    judged = score(rows, {**functions, **own})
    combinations = combined(judged)
    measured = Measured(f"Precision at {KEPT:.0%} kept of {len(judged.labels):,} judged pairs")
    every = {**judged.scores, **combinations}
    halves = {"chooses": list(every), "reports": chosen(judged, combinations)}
    for half, names in halves.items():
        found = {
            n: [measure(judged, every[n], x, chooses=half == "chooses") for x in LIMITS]
            for n in names
        }
        shown = [
            (name, *of[0].cells(), *of[1].cells(), f"{judged.rates.get(name, 0):,.0f}")
            for name, of in found.items()
        ]
        columns = ("precision", "95%", "over the cosine, 95%", "Spearman")
        heads = [*(f"F1 ≤ {x}: {y}" for x in LIMITS for y in columns), "pairs/s"]
        console(240).print(number_table(None, half, numbers=heads, rows=shown))
        for i, limit in enumerate(LIMITS):
            low = judged.low(limit, chooses=half == "chooses")
            measured.add(f"{half}, F1 <= {limit}: pairs", len(low))
            measured.add(f"{half}, F1 <= {limit}: good", float((judged.labels[low] >= GOOD).mean()))
            for name in halves["reports"]:
                measured.add(f"{half}, F1 <= {limit}: {name}", found[name][i].precision)
    measured.done("judged_rewordings")


if __name__ == "__main__":
    command_line(main)

"""The search behind `select.by: auto`: the scorer and the deciles that train the best small encoder
(ParaNMT, section 6.3, Table 4).

A small encoder is trained on a sample of every decile of every score, all of the same size, and
evaluated on labelled pairs. The number of deciles cannot be chosen in this way: a wider range has
worse pairs, but more of them. For each score, a contiguous range of deciles is therefore grown
greedily from the best one, and every range is evaluated on all its pairs up to a limit. In a small
corpus the amount of data counts; in a large one, in which every range reaches the limit, only
quality does. Among ranges within one standard error of the best (Breiman et al. 1984, 3.4.3), the
largest is selected: beyond the limit, more pairs of the same quality can only help. It is compared
with the best range of another scorer and with as many random pairs.

Sampling and probes are Beam jobs, so they run wherever the runner does. The result is deterministic
for a seed; an interrupted search resumes and trains only missing trials.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from statistics import fmean

import numpy as np

from paraloom.beam_jobs.analysis import probes, sampling
from paraloom.beam_jobs.analysis.probes import Subset
from paraloom.beam_jobs.analysis.sampling import DecileSample
from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import Shard, content_key, units, write_shard
from paraloom.beam_jobs.select import Criteria
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_ranking
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.errors import UserError, reading
from paraloom.models.files import digest
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.selection import AutoOptions
from paraloom.pipeline.names import RANKED
from paraloom.pipeline.records import AutoSelectRecord, DecileTrial, Lead
from paraloom.pipeline.stage import Run

VERSION = 1
"""Bump when the same scores lead to another selection."""

_FEWEST = 0.25  # a decile with a smaller fraction of the largest one's pairs is left out

Scores = dict[str, dict[int, list[float]]]
"""The scores of the deciles of each scorer, one per seed."""


class Search:
    """The search of a run, in the round that it is at."""

    def __init__(self, run: Run) -> None:
        self.run, self.options = run, run.config.select.auto
        self.folder = run.folder("auto_select")  # the sample and the probes' receipts
        self.scorers = run.ranked_by

    @cached_property
    def labelled(self) -> list[LabelledPairs]:
        """The pairs to evaluate on."""
        return read_labelled(self.run.config.select.labelled_paths)

    @property
    def criteria(self) -> Criteria:
        """What pairs must meet in any decile, all translations of a source."""
        return replace(self.run.criteria(), per_source="all")

    @property
    def seeds(self) -> list[int]:
        """The seeds of each probe."""
        return [self.run.config.seed + i for i in range(self.options.seeds)]

    @property
    def most(self) -> int:
        """The largest number of pairs of a probe."""
        return min(self.options.pairs, self.criteria.size or self.options.pairs)

    @cached_property
    def sample(self) -> DecileSample:
        """The pairs that probes train on."""
        work = units(self.run.shards(RANKED), content_key("draw", sampling.VERSION))
        where = self.folder, self.criteria, self.scorers, self.run.arguments
        return sampling.run(work, *where, most=self.most, seeds=self.seeds)

    @cached_property
    def sample_file(self) -> Shard:
        """The sample as a file that workers can read."""
        return write_shard(storage.join(self.folder, "draw.parquet"), self.sample.table)

    @cached_property
    def counts(self) -> dict[str, np.ndarray]:
        """The sampled pairs [seeds, deciles] of each scorer."""
        return {scorer: self.sample.counts(self.seeds, scorer) for scorer in self.scorers}

    @property
    def sizes(self) -> dict[str, list[int]]:
        """The number of sampled pairs of each decile, with the seed that has fewest."""
        return {scorer: counts.min(axis=0).tolist() for scorer, counts in self.counts.items()}

    def run_probes(self, name: str, subsets: Sequence[Subset]) -> list[list[float]]:
        """The scores of subsets, one per seed; receipts go to the folder of this name."""
        encoder = self.run.config.embeddings
        vectors = encoder.vector_file
        training = probes.ProbeTraining(
            options=small_encoder(self.options, encoder),
            labelled=self.labelled,
            vectors=digest(vectors) if vectors else None,
            language=self.run.language,
        )
        return probes.run(
            subsets,
            self.seeds,
            self.sample,
            self.sample_file,
            storage.join(self.folder, name),
            training,
            self.run.arguments,
        )

    def select(self) -> AutoSelectRecord:
        """Select a scorer and a range of its deciles."""
        used = self.large_deciles()
        size = self.common_size(used)
        scores, random = self.score_deciles(used, size)
        trials = self.score_ranges(scores)
        deviation = pooled_deviation(trial.scores for trial in trials)
        error = deviation * math.sqrt(2 / len(self.seeds))  # of a difference of two means
        chosen = largest_of_the_best(trials, error)
        if self.options.best is not None:
            # The one with the highest mean of a single decile (ParaNMT, Table 4).
            scorer = max(scores, key=lambda name: max(map(fmean, scores[name].values())))
            (chosen,) = (trial for trial in trials if trial.scorer == scorer)
        others = [trial for trial in trials if trial.scorer != chosen.scorer]
        others = others or [trial for trial in trials if trial != chosen]
        second = max(others, key=lambda trial: trial.mean, default=None)
        (values,) = self.run_probes("random", [Subset(most=chosen.pairs)])
        same_size = chosen.model_copy(update={"scorer": "", "deciles": (), "scores": tuple(values)})
        return AutoSelectRecord(
            scores=scores,
            random=random,
            sample=size,
            left_out={s: [k for k in range(10) if k not in used[s]] for s in self.scorers},
            runs={s: [trial for trial in trials if trial.scorer == s] for s in self.scorers},
            chosen=chosen,
            second=second,
            same_size=same_size,
            over_second=Lead(difference=chosen.mean - second.mean, error=error) if second else None,
            over_random=Lead(difference=chosen.mean - same_size.mean, error=error),
            spread=deviation,
            digest=content_key(chosen.scorer, chosen.deciles),
        )

    def large_deciles(self) -> dict[str, list[int]]:
        """The deciles of each scorer that have enough pairs for a probe."""
        largest = min(self.most, max(map(max, self.sizes.values())))
        least = max(_FEWEST * largest, 2)
        found = {s: [k for k in range(10) if of[k] >= least] for s, of in self.sizes.items()}
        if not all(found.values()):
            raise UserError(
                f"{self.folder}: too few pairs to choose deciles by: at most {largest} in one, "
                "without those that select.max_tokens and select.where exclude"
            )
        return found

    def common_size(self, deciles: dict[str, list[int]]) -> int:
        """The number of pairs that all these deciles have."""
        sizes = self.sizes
        return min(self.most, *(sizes[s][k] for s, of in deciles.items() for k in of))

    def score_deciles(self, deciles: dict[str, list[int]], size: int) -> tuple[Scores, list[float]]:
        """The scores of `size` pairs of each decile of each scorer, and of random pairs."""
        cells = [(scorer, k) for scorer, of in deciles.items() for k in of]
        subsets = [Subset(scorer=scorer, deciles=(k,), most=size) for scorer, k in cells]
        *found, random = self.run_probes("deciles", [*subsets, Subset(most=size)])
        scores: Scores = {scorer: {} for scorer in deciles}
        for (scorer, k), values in zip(cells, found, strict=True):
            scores[scorer][k] = values
        return scores, random

    def score_ranges(self, scores: Scores) -> list[DecileTrial]:
        """The ranges that grow from the best decile of each scorer, with their scores.

        With `best`, take that many of the best deciles of each scorer instead.
        """
        subsets, best = [], self.options.best
        for scorer, of in scores.items():
            means = {k: fmean(values) for k, values in of.items()}
            found = grow_ranges(means) if best is None else [best_deciles(means, best)]
            subsets += [Subset(scorer=scorer, deciles=k, most=self.most) for k in found]
        rows = {s: of.mean(axis=0) / self.sample.shares(s) for s, of in self.counts.items()}
        return [
            DecileTrial(
                scorer=subset.scorer or "",
                deciles=subset.deciles,
                rows=round(sum(rows[subset.scorer or ""][k] for k in subset.deciles)),
                pairs=min(len(subset.rows(self.sample, seed)) for seed in self.seeds),
                scores=tuple(values),
            )
            for subset, values in zip(subsets, self.run_probes("runs", subsets), strict=True)
        ]


def read_labelled(paths: Sequence[str]) -> list[LabelledPairs]:
    """The labelled pairs of files and folders."""
    return read_ranking(paths, "select.labelled")


def check_labelled(config: Config) -> None:
    """`Stage.check` of a stage that reads the labelled pairs."""
    read_labelled(config.select.labelled_paths)


def labelled_digests(run: Run) -> list[str]:
    """The digests of the labelled pairs."""
    with reading("select.labelled"):
        return [digest(path) for path in run.config.select.labelled_paths]


def grow_ranges(scores: Mapping[int, float]) -> list[tuple[int, ...]]:
    """Ranges of 1, 2, … deciles: the best decile, then each time the better neighbour as well.

    A range does not grow beyond a decile that is not in `scores`.

    >>> grow_ranges({0: 1.0, 1: 3.0, 2: 2.0, 3: 2.5})
    [(1,), (1, 2), (1, 2, 3), (0, 1, 2, 3)]
    """
    low = high = max(scores, key=lambda decile: (scores[decile], decile))
    ranges: list[tuple[int, ...]] = [(low,)]
    while neighbours := [decile for decile in (low - 1, high + 1) if decile in scores]:
        best = max(neighbours, key=lambda decile: (scores[decile], decile))
        low, high = min(low, best), max(high, best)
        ranges.append(tuple(range(low, high + 1)))
    return ranges


def best_deciles(scores: Mapping[int, float], count: int) -> tuple[int, ...]:
    """The deciles with the highest scores, so many or all there are; of equal ones the higher.

    >>> best_deciles({0: 1.0, 1: 3.0, 2: 2.0, 3: 3.0}, 2)
    (1, 3)
    """
    ranked = sorted(scores, key=lambda decile: (scores[decile], decile), reverse=True)
    return tuple(sorted(ranked[:count]))


def pooled_deviation(groups: Iterable[Sequence[float]]) -> float:
    """The pooled standard deviation within groups; 0 if each has one value.

    >>> pooled_deviation([(1.0, 3.0), (7.0, 9.0)]) == math.sqrt(2)
    True
    """
    squares, degrees = 0.0, 0
    for values in groups:
        mean = fmean(values)
        squares += sum((value - mean) ** 2 for value in values)
        degrees += len(values) - 1
    return math.sqrt(squares / degrees) if degrees else 0.0


def largest_of_the_best(trials: Sequence[DecileTrial], error: float) -> DecileTrial:
    """The trial with most rows among those at most `error` below the best mean."""
    best = max(trial.mean for trial in trials)
    near = [trial for trial in trials if trial.mean >= best - error]
    return max(near, key=lambda trial: (trial.rows, trial.mean, trial.scorer))


def small_encoder(options: AutoOptions, encoder: EmbeddingOptions) -> EmbeddingOptions:
    """The options of a probe: one epoch, negatives from the mini-batch (W&G 2017), on one core.

    Probes start from a file of word vectors that the configuration names, since the pairs are
    selected for an encoder that starts from it. With `initial_vectors: auto` they start from random
    vectors: on Multi30k, probes with random vectors rank deciles as full training does; with
    PARAGRAM vectors they do not, because 1,300 pairs hardly change the vectors.

    With `options.like_embeddings`, a probe trains like the run's own encoder but for the encoder
    and the epochs, as in ParaNMT 6.3.
    """
    if options.like_embeddings:
        return encoder.replace(
            task="paraphrases",
            **dict.fromkeys(("pairs", "language", "development", "patience")),
            model=options.model,
            initial_vectors=encoder.vector_file,
            epochs=1,
            device="cpu",
        )
    return EmbeddingOptions(
        model=options.model,
        dim=encoder.dim,
        initial_vectors=encoder.vector_file,
        epochs=1,
        batch_size=20,  # samples are small: small batches give enough steps
        mega_batch=1,
        negatives="other",
        device="cpu",
    )

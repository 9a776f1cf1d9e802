"""The search for the scorer and the deciles that train the best small encoder.

A small encoder is trained on a sample of every decile of every score, all of the same size, and
evaluated on labelled pairs. Ranges of deciles grow from the best ones and are evaluated too; one
is selected (`ranges`), and compared with the best range of another scorer and with as many random
pairs. Sampling and probes are Beam jobs, so they run wherever the runner does. The result is
deterministic for a seed; an interrupted search resumes and trains only missing candidates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from paraloom.beam_jobs.analysis import probes, sampling
from paraloom.beam_jobs.analysis.probes import Subset
from paraloom.beam_jobs.analysis.sampling import Sample
from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import Shard, content_key, units, write_shard
from paraloom.beam_jobs.select import Criteria
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.languages import ENGLISH
from paraloom.pipeline.auto_select.ranges import (
    best_deciles,
    error_of_difference,
    grow_ranges,
    largest_of_the_best,
    pooled_deviation,
    scorer_of_the_best_decile,
)
from paraloom.pipeline.config.options import AutoOptions
from paraloom.pipeline.records import AutoSelectRecord, Candidate, Lead

VERSION = 1
"""Bump when the same scores lead to another selection."""

_FEWEST = 0.25  # of the largest decile: a decile with fewer pairs is left out


def auto_select(
    shards: Sequence[Shard],
    scorers: Sequence[str],
    labelled: Sequence[LabelledPairs],
    options: AutoOptions,
    *,
    seed: int,
    folder: str,
    criteria: Criteria,
    encoder: EmbeddingOptions,
    arguments: Sequence[str] = (),
    language: str = ENGLISH,
) -> AutoSelectRecord:
    """Select a scorer and a range of its deciles.

    Args:
        shards: scored pairs with deciles, as `bucket` writes them.
        labelled: the pairs to evaluate on, from `read_labelled`.
        seed: of samples and trainings; the same seed gives the same result.
        folder: for the sample and the receipts of the probes; a later call reuses them.
        criteria: what pairs must meet in any decile (tokens, predicates).
        encoder: the run's encoder; probes start from the same file of word vectors, if it has one,
            and have the same dimension.
        arguments: for Beam.
        language: of the pairs.
    """
    seeds = [seed + i for i in range(options.seeds)]
    most = min(options.pairs, criteria.size or options.pairs)
    work = units(shards, content_key("draw", sampling.VERSION))
    sample = sampling.run(work, folder, criteria, scorers, arguments, most=most, seeds=seeds)
    small = small_encoder(options, encoder)
    vectors = digest(encoder.vector_file) if encoder.vector_file else None
    shard = write_shard(storage.join(folder, "draw.parquet"), sample.table)
    base = probes.key_of(small, labelled, vectors, language)

    def run_probes(name: str, subsets: Sequence[Subset]) -> list[list[float]]:
        output = storage.join(folder, name)
        return probes.run(
            subsets,
            seeds,
            sample,
            shard,
            output,
            small,
            labelled,
            arguments,
            base=base,
            language=language,
        )

    counts = {scorer: sample.counts(seeds, scorer) for scorer in scorers}
    search = _Search(sample, counts, seeds, most, folder, run_probes)
    used = search.large_deciles()
    size = search.common_size(used)
    scores, random = search.score_deciles(used, size)
    candidates = search.score_ranges(scores, options.best)
    deviation = pooled_deviation(candidate.scores for candidate in candidates)
    error = error_of_difference(deviation, len(seeds))
    chosen = largest_of_the_best(candidates, error)
    if options.best is not None:
        scorer = scorer_of_the_best_decile(scores)
        (chosen,) = (candidate for candidate in candidates if candidate.scorer == scorer)
    others = [candidate for candidate in candidates if candidate.scorer != chosen.scorer]
    others = others or [candidate for candidate in candidates if candidate != chosen]
    second = max(others, key=lambda candidate: candidate.mean, default=None)
    (values,) = run_probes("random", [Subset(most=chosen.pairs)])
    same_size = chosen.model_copy(update={"scorer": "", "deciles": (), "scores": tuple(values)})
    return AutoSelectRecord(
        scores=scores,
        random=random,
        sample=size,
        left_out={s: [k for k in range(10) if k not in used[s]] for s in scorers},
        runs={s: [c for c in candidates if c.scorer == s] for s in scorers},
        chosen=chosen,
        second=second,
        same_size=same_size,
        over_second=Lead(difference=chosen.mean - second.mean, error=error) if second else None,
        over_random=Lead(difference=chosen.mean - same_size.mean, error=error),
        spread=deviation,
        digest=content_key(chosen.scorer, chosen.deciles),
    )


def small_encoder(options: AutoOptions, encoder: EmbeddingOptions) -> EmbeddingOptions:
    """The options of a probe: one epoch, negatives from the mini-batch (W&G 2017), on one core.

    Probes start from a file of word vectors that the configuration names, since the pairs are
    selected for an encoder that starts from it. With `initial_vectors: auto` they start from random
    vectors: on Multi30k, probes with random vectors rank deciles as full training does; with
    PARAGRAM vectors they do not, because 1,300 pairs hardly change the vectors.

    With `options.like_embeddings` all settings but the encoder and the epochs are those of the
    run's own encoder, as in ParaNMT 6.3.
    """
    if options.like_embeddings:
        return encoder.replace(
            task="paraphrases",
            **dict.fromkeys(("pairs", "language", "development", "patience", "steps")),
            model=options.model,
            initial_vectors=encoder.vector_file,
            epochs=1,
            loaders=0,
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
        loaders=0,
        device="cpu",
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """What all probes of a search share."""

    sample: Sample
    counts: dict[str, np.ndarray]  # scorer → sampled pairs [seeds, deciles]
    seeds: Sequence[int]
    most: int  # the largest number of pairs of a probe
    folder: str
    run_probes: Callable[[str, Sequence[Subset]], list[list[float]]]
    """The scores of subsets, one per seed; receipts go to the folder of this name."""

    @property
    def sizes(self) -> dict[str, list[int]]:
        """The number of sampled pairs of each decile, with the seed that has fewest."""
        return {scorer: counts.min(axis=0).tolist() for scorer, counts in self.counts.items()}

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

    def score_deciles(
        self, deciles: dict[str, list[int]], size: int
    ) -> tuple[dict[str, dict[int, list[float]]], list[float]]:
        """The scores of `size` pairs of each decile of each scorer, and of random pairs."""
        cells = [(scorer, k) for scorer, of in deciles.items() for k in of]
        subsets = [Subset(scorer=scorer, deciles=(k,), most=size) for scorer, k in cells]
        *found, random = self.run_probes("deciles", [*subsets, Subset(most=size)])
        scores: dict[str, dict[int, list[float]]] = {scorer: {} for scorer in deciles}
        for (scorer, k), values in zip(cells, found, strict=True):
            scores[scorer][k] = values
        return scores, random

    def score_ranges(
        self, scores: dict[str, dict[int, list[float]]], best: int | None
    ) -> list[Candidate]:
        """The ranges that grow from the best decile of each scorer, with their scores.

        With `best`, so many of the best deciles of each scorer instead.
        """
        subsets = []
        for scorer, of in scores.items():
            means = {k: fmean(values) for k, values in of.items()}
            found = grow_ranges(means) if best is None else [best_deciles(means, best)]
            subsets += [Subset(scorer=scorer, deciles=k, most=self.most) for k in found]
        rows = {s: of.mean(axis=0) / self.sample.shares(s) for s, of in self.counts.items()}
        return [
            Candidate(
                scorer=subset.scorer or "",
                deciles=subset.deciles,
                rows=round(sum(rows[subset.scorer or ""][k] for k in subset.deciles)),
                pairs=min(len(subset.rows(self.sample, seed)) for seed in self.seeds),
                scores=tuple(values),
            )
            for subset, values in zip(subsets, self.run_probes("runs", subsets), strict=True)
        ]

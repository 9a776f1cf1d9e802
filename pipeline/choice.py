"""`select.by: auto`: the scorer and its deciles, chosen by training on them (ParaNMT 6.3, Table 4).

A small encoder is trained on an equal sample of every decile of every score, and judged by labelled
pairs; from the best deciles runs grow, are tried too, and one of them is chosen (`deciles` says
how). At the end it is compared with the best run of another scorer and with as many pairs drawn at
random. Draws and trials are Beam jobs: they go wherever the runner goes, and what is finished stays
finished.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from beam_jobs.analysis import probes, sampling
from beam_jobs.analysis.probes import Subset
from beam_jobs.analysis.sampling import Sample
from beam_jobs.io import storage
from beam_jobs.io.shards import Shard, content_key, units, write_shard
from beam_jobs.select import Criteria
from beam_jobs.transforms.predicates import Predicate
from models.embeddings.datasets.similarity import LabelledPairs, read_sts
from models.embeddings.options import EmbeddingOptions
from models.errors import UserError
from models.files import digest
from pipeline.config import AutoOptions, SelectOptions
from pipeline.deciles import Candidate, error_of_difference, grown, largest_of_the_best, spread

if TYPE_CHECKING:
    from pipeline.stage import Run

VERSION = 1
"""Raised when the choice falls otherwise from the same scores."""

_FEW = 0.25  # of the pairs of the fullest decile: with fewer, a decile has no trial


def choose(
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
) -> dict[str, Any]:
    """Choose a scorer and a run of its deciles.

    Args:
        shards: scored pairs with deciles, as `bucket` leaves them.
        scorers: the scores to choose from.
        labelled: what judges, from `read_labelled`.
        options: how much is tried.
        seed: of draws and trainings; the same seed gives the same choice.
        folder: for the draw and the receipts of the trials; kept for the next call.
        criteria: what pairs must be whatever their deciles (tokens, conditions).
        encoder: the run's; trials start from the same word vectors, of the same length.
        arguments: for Beam.

    Returns:
        JSON values. All scores are Pearson × 100, one per seed.
        scores: scorer → decile → scores, with `sample` pairs each; random: of as many of all.
        left_out: scorer → deciles with too few pairs for a trial.
        runs: scorer → [{deciles, rows, pairs, scores}], from one decile to all of them: about how
            many rows of the corpus they have, and with how many pairs they were tried.
        chosen, second, same_size: the same of the chosen run, of the best one of another scorer (of
            the same, if there is no other), and of as many pairs of all deciles.
        over_second, over_random: {difference, error}: what `chosen` is ahead of those two.
        spread: standard deviation over the seeds, within runs.
        seconds, digest.

    Raises:
        UserError: too few pairs.
    """
    started = time.monotonic()
    seeds = [seed + i for i in range(options.seeds)]
    most = min(options.pairs, criteria.size or options.pairs)
    work = units(shards, content_key("draw", sampling.VERSION))
    drawn = sampling.run(work, folder, criteria, scorers, arguments, most=most, seeds=seeds)
    sample = write_shard(storage.join(folder, "draw.parquet"), drawn.table)
    small = small_encoder(options, encoder)
    vectors = digest(encoder.initial_vectors) if encoder.initial_vectors else None
    base = probes.key_of(small, labelled, vectors)

    def tried(name: str, parts: Sequence[Subset]) -> list[list[float]]:
        place = storage.join(folder, name)
        return probes.run(parts, seeds, drawn, sample, place, small, labelled, arguments, base=base)

    # Equal samples of all deciles
    counts = {s: drawn.counts(seeds, s) for s in scorers}
    sizes = {s: counts[s].min(axis=0).tolist() for s in scorers}
    fullest = min(most, max(map(max, sizes.values())))
    kept = {s: [k for k in range(10) if sizes[s][k] >= max(_FEW * fullest, 2)] for s in scorers}
    if not all(kept.values()):
        raise UserError(
            f"{folder}: too few pairs to choose deciles by: at most {fullest} in one, once those "
            "are left out that select.max_tokens and select.where exclude"
        )
    size = min(most, min(sizes[s][k] for s in scorers for k in kept[s]))
    cells = [(s, k) for s in scorers for k in kept[s]]
    parts = [Subset(scorer=s, deciles=(k,), most=size) for s, k in cells]
    *found, random = tried("deciles", [*parts, Subset(most=size)])
    scores: dict[str, dict[int, list[float]]] = {s: {} for s in scorers}
    for (s, k), values in zip(cells, found, strict=True):
        scores[s][k] = values

    # Runs that grow from the best ones
    curves = {s: {k: fmean(values) for k, values in scores[s].items()} for s in scorers}
    runs = [(s, deciles) for s in scorers for deciles in grown(curves[s])]
    standing = {s: counts[s].mean(axis=0) / drawn.shares(s) for s in scorers}
    parts = [Subset(scorer=s, deciles=deciles, most=most) for s, deciles in runs]
    candidates = [
        Candidate(
            scorer=part.scorer or "",
            deciles=part.deciles,
            rows=round(sum(standing[part.scorer or ""][k] for k in part.deciles)),
            pairs=_least(part, drawn, seeds),
            scores=tuple(values),
        )
        for part, values in zip(parts, tried("runs", parts), strict=True)
    ]
    deviation = spread(candidate.scores for candidate in candidates)
    error = error_of_difference(deviation, len(seeds))
    chosen = largest_of_the_best(candidates, error)
    second = _second(candidates, chosen)
    (values,) = tried("random", [Subset(most=chosen.pairs)])
    same_size = replace(chosen, scorer="", deciles=(), scores=tuple(values))
    return {
        "scores": scores,
        "random": random,
        "sample": size,
        "left_out": {s: [k for k in range(10) if k not in kept[s]] for s in scorers},
        "runs": {s: [asdict(c) for c in candidates if c.scorer == s] for s in scorers},
        "chosen": asdict(chosen),
        "second": asdict(second) if second else None,
        "same_size": asdict(same_size),
        "over_second": _ahead(chosen, second, error) if second else None,
        "over_random": _ahead(chosen, same_size, error),
        "spread": deviation,
        "seconds": round(time.monotonic() - started, 3),
        "digest": content_key(chosen.scorer, chosen.deciles),
    }


def small_encoder(options: AutoOptions, encoder: EmbeddingOptions) -> EmbeddingOptions:
    """How trials train: one epoch, negatives from the mini-batch (W&G 2017), on one core.

    Words start as those of the run's encoder do, which is what the pairs are for. (On Multi30k
    random vectors order the deciles as the whole training does. PARAGRAM's do not: 1,300 pairs
    hardly move them.)
    """
    return EmbeddingOptions(
        model=options.model,
        dim=encoder.dim,
        initial_vectors=encoder.initial_vectors,
        epochs=1,
        batch_size=20,  # a sample is small: smaller batches, more steps
        mega_batch=1,
        loaders=0,
        device="cpu",
    )


def read_labelled(paths: Sequence[str]) -> list[LabelledPairs]:
    """The labelled pairs of files and folders.

    Raises:
        UserError: a file is missing, broken, or of no use: a data set without labels, or with one
            label value only. Names it.
    """
    found: list[LabelledPairs] = []
    for path in paths:
        if not Path(path).exists():
            raise UserError(f"select.labelled: {path} is not there")
        try:
            sets = read_sts(path)
        except UserError as error:
            raise UserError(f"select.labelled: {error}") from error
        for pairs in sets:
            if np.ptp(pairs.scores) == 0:
                raise UserError(
                    f"select.labelled: {path}: {pairs.name} has no other score than "
                    f"{pairs.scores[0]:g} ({len(pairs.first):,} rows): nothing can be told from it"
                )
        found += sets
    if not found:
        raise UserError("select.labelled: names no file")
    return found


def check_choice(options: SelectOptions) -> None:
    """See that there is an encoder of the name.

    Raises:
        UserError: there is none.
    """
    from models.embeddings.encoders import kinds

    try:
        kinds(options.auto.model)
    except ValueError as error:
        raise UserError(f"select.auto.{error}") from error


def labelled_parts(run: Run) -> Any:
    """The content of the labelled pairs.

    Raises:
        UserError: a file is not there.
    """
    try:
        return [digest(path) for path in run.config.select.labelled_paths]
    except UserError as error:
        raise UserError(f"select.labelled: {error}") from error


def choice_parts(run: Run) -> Any:
    """What the choice depends on beside the pairs and their deciles."""
    options, encoder = run.config.select, run.config.embeddings
    return [
        asdict(options.auto),
        options.max_tokens,
        options.size,
        options.where,
        labelled_parts(run),
        encoder.dim,
        digest(encoder.initial_vectors) if encoder.initial_vectors else None,
        run.config.seed,
        run.ranked_by,
        [sampling.VERSION, probes.VERSION],
    ]


def make_choice(run: Run, key: str) -> dict[str, Any]:
    """Choose the deciles that the corpus is made of."""
    config = run.config
    return choose(
        run.shards("bucket"),
        run.ranked_by,
        read_labelled(config.select.labelled_paths),
        config.select.auto,
        seed=config.seed,
        folder=run.folder("choice"),
        criteria=Criteria(
            by="",
            deciles=None,
            max_tokens=config.select.max_tokens,
            size=config.select.size,
            seed=config.seed,
            where=tuple(map(Predicate.parse, config.select.where)),
        ),
        encoder=config.embeddings,
        arguments=run.arguments,
    )


def _least(part: Subset, drawn: Sample, seeds: Sequence[int]) -> int:
    """How many pairs a part has with the seed that drew fewest."""
    return min(len(part.rows(drawn, seed)) for seed in seeds)


def _second(candidates: Sequence[Candidate], chosen: Candidate) -> Candidate | None:
    others = [c for c in candidates if c.scorer != chosen.scorer]
    others = others or [c for c in candidates if c != chosen]
    return max(others, key=lambda c: c.mean, default=None)


def _ahead(better: Candidate, worse: Candidate, error: float) -> dict[str, float]:
    return {"difference": better.mean - worse.mean, "error": error}

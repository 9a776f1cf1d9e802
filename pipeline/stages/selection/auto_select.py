"""Stage `auto_select`: chooses deciles for `select.by: auto` (ParaNMT, section 6.3).

For each range of neighbouring deciles, small encoders are trained with several seeds and evaluated
on labelled pairs. The range with the best mean result is chosen.
"""

from dataclasses import replace
from typing import Any

from paraloom.beam_jobs import VERSIONS, storage
from paraloom.beam_jobs.engine.shards import content_key, units
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_ranking
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.errors import UserError, reading
from paraloom.models.files import digest
from paraloom.pipeline.config import Config
from paraloom.pipeline.run.records import AutoSelectRecord, DecileTrial
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import RANKED

version = 2
"""Increase this number when the same scores lead to another choice."""


def read_labelled(config: Config) -> list[LabelledPairs]:
    """Read and check the labelled pairs."""
    return read_ranking(config.select.labelled_paths, "select.labelled")


def labelled_digests(run: Run) -> list[str]:
    """Return the digests of the labelled pairs."""
    with reading("select.labelled"):
        return [digest(path) for path in run.config.select.labelled_paths]


def tried_score(run: Run) -> str:
    """Return the score whose deciles are tried. In later rounds, this is the encoder's score."""
    wanted = run.config.select.auto.score
    return wanted if wanted in run.ranked_by else run.ranked_by[0]


def fingerprint(run: Run) -> Any:
    """Return the options, the score, the seed, digests of files, and versions of the jobs."""
    options, encoder = run.config.select, run.config.embeddings
    near = [options.near_duplicates, run.exclusion and run.exclusion.similarity]
    return run.with_language(
        [
            options.auto.model_dump(),
            options.max_tokens,
            options.size,
            options.where,
            labelled_digests(run),
            encoder.dim,
            digest(encoder.vector_file) if encoder.vector_file else None,
            run.config.seed,
            tried_score(run),
            [VERSIONS["select"], VERSIONS["probes"]],
            *([near] if near != [None, None] else []),
        ]
    )


def make(run: Run, key: str) -> AutoSelectRecord:
    """Train encoders on every range of deciles, and choose the best range."""
    from paraloom.beam_jobs import probes, select
    from paraloom.beam_jobs.engine.launch import launch

    options, encoder, seed = run.config.select.auto, run.config.embeddings, run.config.seed
    score, folder = tried_score(run), run.folder("auto_select")
    most = min(options.pairs, run.config.select.size or options.pairs)
    # In a sample of 10 × `most` pairs, each decile has about `most` pairs.
    criteria = replace(
        run.criteria(score), size=10 * most, per_source="all", per_generator=None, rank=None
    )
    sample = storage.join(folder, "sample")
    work = units(run.shards(RANKED), key)
    drawing = select.Select(sample, criteria, sum(unit.rows for unit in work))
    drawn = launch("sample", work, drawing, sample, run.arguments)
    probing = probes.Probing(
        shards=tuple(shard for receipt in drawn.receipts for shard in receipt.shards),
        score=score,
        most=most,
        options=small_encoder(options.model, encoder),
        labelled=read_labelled(run.config),
        vectors=digest(encoder.vector_file) if encoder.vector_file else None,
        language=run.language,
    )
    counts = probing.counts()
    every = [tuple(range(low, high)) for low in range(10) for high in range(low + 1, 11)]
    pairs = {of: int(counts[list(of)].sum()) for of in every}
    tried = [of for of, count in pairs.items() if count > 1]
    if not tried:
        raise UserError(f"{folder}: fewer than 2 pairs meet the conditions of select")
    seeds = [seed + i for i in range(options.seeds)]
    found = probes.run(tried, seeds, probing, storage.join(folder, "probes"), run.arguments)
    trials = [
        DecileTrial(scorer=score, deciles=of, pairs=min(pairs[of], most), scores=scores)
        for of, scores in zip(tried, found, strict=True)
    ]
    chosen = max(trials, key=lambda trial: (trial.mean, trial.pairs))
    return AutoSelectRecord(
        trials=trials,
        chosen=chosen,
        labelled=sum(len(of.first) for of in probing.labelled),
        digest=content_key(score, chosen.deciles),
    )


def small_encoder(model: str, encoder: EmbeddingOptions) -> EmbeddingOptions:
    """Return the options of a small encoder, which is trained for one epoch on one core.

    Negatives come from the mini-batch (Wieting & Gimpel 2017). PARAGRAM vectors of the run are not
    used, because training on few pairs changes these vectors too little to rank deciles.
    """
    return EmbeddingOptions(
        model=model,
        dim=encoder.dim,
        initial_vectors=encoder.vector_file,
        epochs=1,
        batch_size=20,  # with larger batches, a small sample would give too few steps
        mega_batch=1,
        negatives="other",
        device="cpu",
    )


def check(config: Config) -> None:
    """Check the score, the name of the encoder and the labelled pairs."""
    from paraloom.models.embeddings.encoders import kinds

    options = config.select.auto
    if options.score not in (None, *config.score.names):
        known = ", ".join(config.score.names)
        raise UserError(f"select.auto.score: {options.score} is not among score.scorers ({known})")
    try:
        kinds(options.model)
    except ValueError as error:
        raise UserError(f"select.auto.{error}") from error
    read_labelled(config)

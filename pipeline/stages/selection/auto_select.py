"""auto_select: the scorer and deciles of `select.by: auto`."""

from typing import Any

from paraloom.beam_jobs.analysis import probes, sampling
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.pipeline.config import Config
from paraloom.pipeline.names import RANKED
from paraloom.pipeline.records import AutoSelectRecord
from paraloom.pipeline.stage import Run, Stage
from paraloom.pipeline.stages.selection import search


def fingerprint(run: Run) -> Any:
    """The options of the search, the criteria of selection, and the labelled pairs."""
    options, encoder = run.config.select, run.config.embeddings
    vectors = digest(encoder.vector_file) if encoder.vector_file else None
    probes_like_it = []
    if options.auto.like_embeddings:
        small = search.small_encoder(options.auto, encoder).replace(initial_vectors=vectors)
        probes_like_it = [small.chosen()]
    return run.with_language(
        [
            options.auto.model_dump(),
            options.max_tokens,
            options.size,
            options.where,
            search.labelled_digests(run),
            encoder.dim,
            vectors,
            run.config.seed,
            run.ranked_by,
            [sampling.VERSION, probes.VERSION],
            *probes_like_it,
        ]
    )


def make(run: Run, key: str) -> AutoSelectRecord:
    """Search for the best deciles, among all translations of a source."""
    return search.Search(run).select()


def check(config: Config) -> None:
    """Check the name of the encoder and the labelled pairs."""
    from paraloom.models.embeddings.encoders import kinds

    try:
        kinds(config.select.auto.model)
    except ValueError as error:
        raise UserError(f"select.auto.{error}") from error
    search.check_labelled(config)


STAGE = Stage(
    name="auto_select",
    depends_on=(RANKED, "exclude"),
    version=search.VERSION,
    fingerprint=fingerprint,
    make=make,
    enabled=lambda config: config.select.by == "auto",
    check=check,
)

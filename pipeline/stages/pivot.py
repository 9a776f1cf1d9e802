"""pivot: the sources of plain text, which a forward model makes of the references."""

from typing import Any

from paraloom.beam_jobs import back_translate
from paraloom.beam_jobs.io.shards import content_key
from paraloom.beam_jobs.transforms.directions import PIVOT
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.pipeline.config import Config
from paraloom.pipeline.records import PivotRecord
from paraloom.pipeline.stage import Run, Stage, shards_are_valid
from paraloom.pipeline.translation import decoding, forward, shares_translations, translate


def fingerprint(run: Run) -> Any:
    """How the forward model decodes, and the model."""
    return _depends_on(run, digest(forward(run.config).folder))


def _depends_on(run: Run, sha256: str) -> list[Any]:
    """The fingerprint, given the digest of the model, which takes long for a large one."""
    model = forward(run.config)
    options = [*decoding(model.options), model.options.max_source_subwords]
    shared = ["unique source"] if shares_translations(run.config) else []
    return [*options, sha256, *model.tags(), *shared]


def make(run: Run, key: str) -> PivotRecord:
    """Translate the references."""

    def base(model: str) -> str:
        return content_key("pivot", back_translate.VERSION, _depends_on(run, model))

    model = forward(run.config)
    record = translate(PivotRecord, run, PIVOT, model, run.shards("ingest"), base)
    if not record.rows_out:
        raise UserError(
            f"{run.folder('pivot')}: {model.name} translates none of {record.rows_in:,} sentences; "
            "the rejected/ folder has the reasons; is nmt.forward_model right?"
        )
    return record


def check(config: Config) -> None:
    """Check the forward model."""
    if config.is_plain_text:
        forward(config).check()


STAGE = Stage(
    name="pivot",
    depends_on=("ingest",),
    version=back_translate.VERSION,
    fingerprint=fingerprint,
    make=make,
    is_valid=shards_are_valid,
    enabled=lambda config: config.is_plain_text,
    check=check,
)

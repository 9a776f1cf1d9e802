"""The data card of a corpus, `README.md` beside it, or of its release, for Hugging Face's Hub."""

from collections.abc import Mapping
from pathlib import PurePath

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.transforms.exclusion import RULES
from paraloom.models.languages import language_name
from paraloom.models.scorers import ENCODER
from paraloom.pipeline.judging.agreement import corpus_precisions
from paraloom.pipeline.pages.describe import (
    excluded_rows,
    resolve_auto,
    score,
    selection_in_words,
    verdict,
)
from paraloom.pipeline.pages.metadata import (
    PART_FILES,
    Release,
    hub_languages,
    license_metadata,
    title,
)
from paraloom.pipeline.pages.render import Markdown, code, plain, render_markdown
from paraloom.pipeline.run.records import (
    BackTranslateRecord,
    BucketRecord,
    PairsRecord,
    RunRecord,
    ScorerRecord,
    ScoringModelRecord,
)
from paraloom.pipeline.stages import folder_of
from paraloom.pipeline.stages.generate import generators_of


def write_data_card(folder: str, record: RunRecord, place: str = "") -> None:
    """Write the data card of a run's corpus, or of the named selection in a place."""
    corpus = storage.join(folder, folder_of(record.derived(place).path("select")))
    sizes = storage.sizes(corpus)
    parts = sum(size for name, size in sizes.items() if PurePath(name).match(PART_FILES))
    precision = corpus_precisions(folder, record).get(place, "")
    view = record.derived(place) if place else record.best
    card = data_card(view, parts, precision=precision)
    storage.write_bytes(storage.join(corpus.rpartition("/")[0], "README.md"), card.encode())


def data_card(
    record: RunRecord, size: int, release: Release | None = None, precision: str = ""
) -> str:
    """The card of a run with a corpus as text. `size` is the bytes of the part files, `precision`
    the line of `corpus_precisions`."""
    select, source = resolve_auto(record), record.config.input
    assert source is not None
    return render_markdown(
        "data_card.md.j2",
        title=title(record),
        languages=hub_languages([source.target_language, source.source_language]),
        licensed=license_metadata(
            *((release.license, release.license_link) if release else (source.license,))
        ),
        language=language_name(source.target_language),
        release=release,
        part_files=f"corpus/{PART_FILES}",
        corpus=record.find(PairsRecord, "select") or PairsRecord(),
        size=size,
        source=source,
        model=(record.find(BackTranslateRecord) or BackTranslateRecord()).model,
        forward=record.stages.get("pivot"),
        scoring_models=[
            (name, of.model)
            for name, of in record.stages.items()
            if isinstance(of, ScoringModelRecord)
        ],
        generators=generators_of(record),
        view=record,
        bleu=record.bleu,
        select=select,
        selection=Markdown(selection_in_words(select, code)),
        judged=record.stages.get("judged"),
        rules=RULES,
        excluded=excluded_rows(record),
        precision=precision,
        verdict=verdict(record) if record.place else "",
        encoder=ENCODER,
        columns=release.configurations[0].columns if release else _columns(record, source.keep),
        meaning=meaning,
        bucket=record.find(BucketRecord) or BucketRecord(),
    )


def meaning(column: str, language: str, own: Mapping[str, ScorerRecord]) -> Markdown:
    """The meaning of a column, in one line; `own` has the run's scorers that are not Paraloom's.

    >>> meaning("reference", "French", {}), meaning("unigram_f1_decile", "French", {})
    ('its French side in the bitext', 'decile of all pairs by `unigram_f1`: 0 lowest, 9 highest')
    """
    if column.endswith(suffix := schema.decile("")):
        name = code(column.removesuffix(suffix))
        return Markdown(f"decile of all pairs by {name}: 0 lowest, 9 highest")
    if text := schema.MEANINGS.get(column):
        return Markdown(text.format(language=plain(language)))
    return plain(score(column, own).meaning)


def _columns(view: RunRecord, kept: list[str]) -> pa.Schema:
    """The columns of the corpus; types of kept columns are null: only the files know them."""
    several, scores = bool(view.config.generators), tuple(view.config.score.names)
    found = schema.bucketed(
        scores,
        candidates=view.config.nmt.candidates > 1,
        generators=several,
        nmt=not several or "back_translate" in view.stages or "translation_score" in scores,
    )
    return pa.schema([*found, *((name, pa.null()) for name in kept)])

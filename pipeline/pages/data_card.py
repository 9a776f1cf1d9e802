"""The data card of a corpus, `README.md` beside it, or of its release, for Hugging Face's Hub."""

from collections.abc import Mapping
from pathlib import PurePath

import pyarrow as pa

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.transforms.exclusion import RULES
from paraloom.models.languages import language_name
from paraloom.models.scorers import ENCODER
from paraloom.pipeline.final_view import final_view, verdict
from paraloom.pipeline.judging.agreement import corpus_precisions
from paraloom.pipeline.manifest import best_round, selection_view
from paraloom.pipeline.names import folder_of, stage_path
from paraloom.pipeline.pages.describe import excluded_rows, resolve_auto, score, selection_in_words
from paraloom.pipeline.pages.markdown import Markdown, code, plain, render_markdown
from paraloom.pipeline.pages.metadata import (
    PART_FILES,
    Release,
    hub_languages,
    license_metadata,
    title,
)
from paraloom.pipeline.records import (
    BackTranslateRecord,
    BucketRecord,
    InputSection,
    PairsRecord,
    RunRecord,
    ScorerRecord,
    ScoringModelRecord,
)
from paraloom.pipeline.stages.generate import generators_of


def write_data_card(folder: str, record: RunRecord, selection: str = "") -> None:
    """Write the data card of a run that has a corpus, or of a named selection's."""
    place = storage.join(folder, folder_of(stage_path("select", selection)))
    sizes = storage.sizes(place)
    parts = sum(size for name, size in sizes.items() if PurePath(name).match(PART_FILES))
    precision = corpus_precisions(folder, record).get(selection, "")
    card = data_card(selection_view(record, selection), parts, precision=precision)
    storage.write_bytes(storage.join(place.rpartition("/")[0], "README.md"), card.encode())


def data_card(
    record: RunRecord, size: int, release: Release | None = None, precision: str = ""
) -> str:
    """The card of a run with a corpus as text. `size` is the bytes of the part files, `precision`
    says, in words, how precise the corpus is by judgments."""
    view = final_view(record)
    config, select = view.config, resolve_auto(view)
    corpus = view.find(PairsRecord, "select") or PairsRecord()
    bucket = view.find(BucketRecord) or BucketRecord()
    source = config.input or InputSection()
    language = language_name(source.target_language)
    return render_markdown(
        "data_card.md.j2",
        title=title(config),
        languages=hub_languages([source.target_language, source.source_language]),
        licensed=license_metadata(
            *((release.license, release.license_link) if release else (source.license,))
        ),
        language=language,
        release=release,
        part_files=f"corpus/{PART_FILES}",
        corpus=corpus,
        size=size,
        source=source,
        model=(view.find(BackTranslateRecord) or BackTranslateRecord()).model,
        forward=view.stages.get("pivot"),
        scoring_models=[
            (name, of.model)
            for name, of in view.stages.items()
            if isinstance(of, ScoringModelRecord)
        ],
        generators=generators_of(view),
        view=view,
        bleu=view.bleu,
        select=select,
        selection=Markdown(selection_in_words(select, code)),
        judged=view.stages.get("judged"),
        rules=RULES,
        excluded=excluded_rows(view),
        precision=precision,
        verdict=verdict(record) if best_round(record.stages) else "",
        encoder=ENCODER,
        columns=release.configurations[0].columns if release else _columns(view, source.keep),
        meaning=meaning,
        bucket=bucket,
    )


def meaning(column: str, language: str, own: Mapping[str, ScorerRecord]) -> Markdown:
    """A column of the pair record in one line; `own` has the run's scorers that are not Paraloom's.

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
    """The columns of the corpus; the types of the user's own are in its files."""
    several, scores = bool(view.config.generators), tuple(view.config.score.names)
    found = schema.bucketed(
        scores,
        candidates=view.config.nmt.candidates > 1,
        generators=several,
        nmt=not several or "back_translate" in view.stages or "translation_score" in scores,
    )
    return pa.schema([*found, *((name, pa.null()) for name in kept)])

"""The data card of a corpus, `corpus/README.md`, or of its release, for Hugging Face's Hub."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePath

import pyarrow as pa

from paraloom.beam_jobs.io import schema, storage
from paraloom.beam_jobs.io.shards import Deciles
from paraloom.beam_jobs.transforms.exclusion import RULES
from paraloom.models.languages import language_name
from paraloom.models.scorers import ENCODER
from paraloom.pipeline.cards.metadata import PART_FILES, Release, card_metadata, title
from paraloom.pipeline.judging.agreement import corpus_precisions
from paraloom.pipeline.judging.record import JudgedRecord
from paraloom.pipeline.manifest import best_round, selection_view
from paraloom.pipeline.names import folder_of, stage_path
from paraloom.pipeline.records import (
    BackTranslateRecord,
    BucketRecord,
    InputSection,
    PairsRecord,
    PivotRecord,
    RunRecord,
    ScorerRecord,
    ScoringModelRecord,
    UsedModel,
)
from paraloom.pipeline.report.describe import (
    excluded_rows,
    resolve_auto,
    score,
    selection_in_words,
)
from paraloom.pipeline.report.final_view import final_view, verdict
from paraloom.pipeline.report.render import Markdown, code, plain, render_markdown
from paraloom.pipeline.stages.generate import GenerateRecord


def write_data_card(folder: str, record: RunRecord, selection: str = "") -> None:
    """Write the data card of a run that has a corpus, or of a named selection's."""
    stage = stage_path("select", selection)
    place = storage.join(folder, folder_of(stage))
    sizes = storage.sizes(place)
    parts = sum(size for name, size in sizes.items() if PurePath(name).match(PART_FILES))
    path = storage.join(place, "README.md")
    precision = corpus_precisions(folder, record).get(selection, "")
    card = data_card(selection_view(record, selection), parts, precision=precision)
    storage.write_bytes(path, card.encode())


def data_card(
    record: RunRecord, size: int, release: Release | None = None, precision: str = ""
) -> str:
    """The card of a run with a corpus as text. `size` is the bytes of the part files, `precision`
    says, in words, how precise the corpus is by judgments."""
    view = final_view(record)
    config, select = view.config, resolve_auto(view)
    corpus = view.find(PairsRecord, "select") or PairsRecord()
    bucket = view.find(BucketRecord) or BucketRecord()
    translated = view.find(BackTranslateRecord) or BackTranslateRecord()
    source = config.input or InputSection()
    language = language_name(source.target_language)
    several, scores = bool(config.generators), tuple(config.score.names)
    nmt = not several or bool(translated.model.path) or "translation_score" in scores
    candidates = config.nmt.candidates > 1
    columns = schema.bucketed(scores, candidates=candidates, generators=several, nmt=nmt)
    columns = pa.schema([*columns, *((name, pa.null()) for name in source.keep)])
    if release:
        columns = release.configurations[0].columns
    return render_markdown(
        "data_card.md.j2",
        metadata=card_metadata(config, corpus.rows_out, release),
        title=title(config),
        language=language,
        release=release,
        configurations=_configurations(release) if release else [],
        negatives=[(code(k), of, n) for k, of, n in release.negatives] if release else [],
        corpus=corpus,
        size=size,
        source=source,
        model=translated.model,
        model_name=model_name,
        when=when,
        scoring_models=[
            (name, of.model)
            for name, of in view.stages.items()
            if isinstance(of, ScoringModelRecord)
        ],
        generators=generated.generators if (generated := view.find(GenerateRecord)) else {},
        forward=pivot.model if (pivot := view.find(PivotRecord)) else None,
        view=view,
        bleu=view.bleu,
        select=select,
        selection=Markdown(selection_in_words(select, code)),
        cut=judged.chosen if (judged := view.find(JudgedRecord)) else None,
        rules=RULES,
        excluded=[(code(name), size, *rows) for name, size, rows in excluded_rows(view)],
        precision=precision,
        verdict=verdict(record) if best_round(record.stages) else "",
        encoder=ENCODER,
        inputs=[(code(PurePath(i.path).name), i.bytes, code(i.sha256)) for i in view.inputs],
        stages=[
            (name, stage.rows_in, stage.rows_out, _reasons(stage))
            for name, stage in view.pair_records.items()
        ],
        columns=[
            (code(f.name), type_name(f.type), Markdown("column of the bitext"))
            if f.name in source.keep
            else (code(f.name), type_name(f.type), meaning(f.name, language, view.own_scorers))
            for f in columns
        ],
        bucket=bucket,
        scores=[code(name) for name in bucket.deciles],
        deciles=list(_distribution(list(bucket.deciles.values()))),
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


def model_name(model: UsedModel) -> str:
    """A model's name on the Hub, or its folder's name; paths of a machine do not go out.

    >>> model_name(UsedModel(path="/models/cs-en"))
    'cs-en'
    """
    remote = storage.is_remote(model.path) or PurePath(model.path).is_absolute()
    return model.path if model.revision and not remote else PurePath(model.path).name


def type_name(of: pa.DataType) -> str:
    """A column's type; the type of a kept column is known to its files only."""
    return {pa.null(): "as in the bitext", pa.float32(): "float32"}.get(of, str(of))


def _configurations(release: Release) -> Iterator[tuple[object, ...]]:
    for each in release.configurations:
        columns = "all" if each is release.configurations[0] else ", ".join(each.columns.names)
        for split in each.splits:
            numbers = split.rows, len(split.files), split.size
            yield code(each.name), columns, code(split.name), *numbers


def when(seconds: float) -> str:
    """A date (UTC).

    >>> when(1.8e9)
    '2027-01-15'
    """
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _reasons(stage: PairsRecord) -> str:
    return "; ".join(f"{rows:,} {reason}" for reason, rows in stage.rejected.items())


def _distribution(scores: list[Deciles]) -> Iterator[list[str]]:
    """The lowest value of each decile, by score; then the highest value of each score."""
    for decile in range(10):
        yield [str(decile), *(_value(of.lowest[decile]) for of in scores)]
    highest = (max((v for v in of.highest if v is not None), default=None) for of in scores)
    yield ["highest", *map(_value, highest)]


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"

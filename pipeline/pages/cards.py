"""The cards of corpora and encoders, which are README.md files for the Hub."""

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import pyarrow as pa
from huggingface_hub.repocard_data import eval_results_to_model_index

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine import schema
from paraloom.models.embeddings.options import EmbeddingOptions, saved_options
from paraloom.models.files import CARD, OWN_CARD
from paraloom.models.printing import say
from paraloom.pipeline.judging.agreement import corpus_precisions
from paraloom.pipeline.pages import metadata
from paraloom.pipeline.pages.describe import evaluation_table, score
from paraloom.pipeline.pages.metadata import PART_FILES, Release
from paraloom.pipeline.pages.render import Markdown, code, plain, render_markdown
from paraloom.pipeline.pages.shown import run_name
from paraloom.pipeline.run.records import (
    BackTranslateRecord,
    EvaluateRecord,
    Evaluation,
    PairsRecord,
    RunRecord,
    ScorerRecord,
    ScoringModelRecord,
    TrainingRecord,
)
from paraloom.pipeline.stages import folder_of
from paraloom.pipeline.stages.generate import generators_of
from paraloom.pipeline.stages.selection.exclude import ExcludeRecord

_MARK = f"{OWN_CARD}; delete this line to keep your changes to the card"
_SPLITS = {"train", "test", "trial", "dev"}


def write_data_card(folder: str, record: RunRecord, place: str = "") -> None:
    """Write the card of a corpus. `place` is the folder of a named selection, or "" for the run."""
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
    """Return the card of a corpus of `size` bytes. `precision` is a line of `corpus_precisions`."""
    source = record.config.input
    assert source is not None
    columns = schema.bucketed(tuple(record.config.score.names), **record.config.variant)
    for name in source.keep:
        columns = columns.append(pa.field(name, pa.null()))  # null is shown as "as in the bitext"
    stages = record.stages.items()
    return render_markdown(
        "data_card.md.j2",
        metadata=metadata,
        release=release,
        part_files=f"corpus/{PART_FILES}",
        size=size,
        model=(record.find(BackTranslateRecord) or BackTranslateRecord()).model,
        scoring_models={n: of.model for n, of in stages if isinstance(of, ScoringModelRecord)},
        generators=generators_of(record),
        view=record,
        precision=precision,
        columns=release.configurations[0].columns if release else columns,
        meaning=meaning,
        schema=schema,
    )


def meaning(
    column: str, language: str, own: Mapping[str, ScorerRecord], instead: Mapping[str, str] = {}
) -> Markdown:
    """Describe a column. `own` contains scorers that are not built in, and `instead` contains
    descriptions that replace the usual ones.

    >>> meaning("reference", "French", {}), meaning("unigram_f1_decile", "French", {})
    ('French sentence of the bitext', 'decile by `unigram_f1` among all pairs: 0 lowest, 9 highest')
    """
    if column.endswith(suffix := schema.decile("")):
        name = code(column.removesuffix(suffix))
        return Markdown(f"decile by {name} among all pairs: 0 lowest, 9 highest")
    if text := {**schema.MEANINGS, **instead}.get(column):
        return Markdown(text.format(language=plain(language)))
    return plain(score(column, own).meaning)


def write_encoder_card(folder: str, record: RunRecord, place: str = "") -> None:
    """Write the card of the encoder in `place` ("" for the run). Keep a card without `OWN_CARD`."""
    view = record.derived(place) if place else record.best
    number = int(place.removeprefix("rounds/")) if place.startswith("rounds/") else 0
    folder = storage.join(folder, record.derived(place).path("embeddings"))
    settings = json.loads(storage.read_bytes(storage.join(folder, "config.json")))
    path = storage.join(folder, CARD)
    named = "" if place else view.config.embeddings.selection
    corpus = record.derived(f"selections/{named}") if named else view
    text = encoder_card(view, settings, number, corpus).replace("---\n", f"---\n{_MARK}\n", 1)
    before = storage.read_bytes(path) if storage.exists(path) else None
    if before is not None and OWN_CARD.encode() not in before[:100]:
        why = f"its second line does not begin with {OWN_CARD!r}"
        say(f"paraloom: {path}: kept, because {why}; remove the file for a new card")
    elif before != text.encode():
        storage.write_bytes(path, text.encode())


def encoder_card(
    view: RunRecord, settings: dict[str, Any], number: int = 0, corpus: RunRecord | None = None
) -> str:
    """Return the card of an encoder that the run `view` trained.

    `settings` is the content of config.json. `number` is the encoder's round, or 0 for the result
    of the run. The run `corpus` (by default `view`) selected the training pairs.
    """
    corpus = corpus or view
    options = saved_options(settings["options"])
    trained = view.find(TrainingRecord, "embeddings") or TrainingRecord()
    on_corpus = options.reads_the_corpus
    source = view.config.input if on_corpus else None
    evaluated = view.find(EvaluateRecord)
    known = _used_data_sets(view, corpus, options, evaluated.results) if evaluated else []
    compares = "" if "head" in settings else options.score
    name = run_name(view) + (f"-round-{number}" if number else "")
    index = None
    if evaluated:
        models = evaluated.results.models
        model = options.model if options.model in models else models[0]
        if found := list(metadata.eval_results(evaluated.results, model, compares, known)):
            index = eval_results_to_model_index(name, found)
    return render_markdown(
        "encoder_card.md.j2",
        metadata=metadata,
        excluded=on_corpus and view.find(ExcludeRecord),
        index=index,
        name=name,
        settings=settings,
        options=options,
        score=compares,
        trained=trained,
        evaluation=evaluation_table([("", evaluated)]) if evaluated else None,
        known=known,
        corpus=corpus.find(PairsRecord, "select") if on_corpus else None,
        corpus_run=corpus,
        source=source,
        generators=generators_of(view),
        number=number,
        view=view,
    )


def _used_data_sets(
    view: RunRecord, corpus: RunRecord, options: EmbeddingOptions, evaluation: Evaluation
) -> list[str]:
    """Return the evaluation data sets that were also used to train, or to choose an epoch, a round
    or pairs."""
    paths = list(options.files().values())
    if corpus.config.select.by == "auto" or "loop" in view.stages:
        paths += corpus.config.select.labelled_paths
    names = [f"{group} {name}" for group, of in evaluation.groups.items() for name in of.data_sets]
    words = {name: _words(name) for name in names}
    known = set().union(*words.values())
    # A path is compared by its last two names, such as `2014/images.tsv`.
    used = [_words(" ".join(PurePath(path).with_suffix("").parts[-2:])) & known for path in paths]
    used = [of_path for of_path in used if of_path - _SPLITS]
    return [name for name in names if any(of_path <= words[name] for of_path in used)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))

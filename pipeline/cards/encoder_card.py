"""The model card of an encoder, `embeddings/README.md`, for Hugging Face's Hub."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

import yaml
from huggingface_hub import EvalResult

from paraloom.beam_jobs.io import storage
from paraloom.models.embeddings.options import EmbeddingOptions, read_options
from paraloom.models.files import CARD, OWN_CARD
from paraloom.models.languages import ENGLISH, language_name
from paraloom.models.printing import say
from paraloom.pipeline.cards.data_card import model_name, when
from paraloom.pipeline.cards.metadata import encoder_metadata, model_index, results
from paraloom.pipeline.cards.shown import harmless, public
from paraloom.pipeline.manifest import selection_view
from paraloom.pipeline.records import (
    BackTranslateRecord,
    Correlation,
    EvaluateRecord,
    Evaluation,
    PairsRecord,
    PivotRecord,
    RunRecord,
    TrainingRecord,
)
from paraloom.pipeline.report.describe import (
    correlation,
    evaluation_table,
    mse,
    resolve_auto,
    selection_in_words,
)
from paraloom.pipeline.report.final_view import final_view, round_view
from paraloom.pipeline.report.render import Markdown, code, render_markdown
from paraloom.pipeline.stages.generate import GenerateRecord
from paraloom.pipeline.stages.selection.exclude import ExcludeRecord

_SPLITS = {"train", "test", "trial", "dev"}


def write_encoder_cards(folder: str, record: RunRecord) -> None:
    """Write the card of each encoder of a run, unless the card that is there is the same.

    A card that a person has changed or written stays; a line on standard error says so.
    """
    for stage in record.stages:
        parent, _, kind = stage.rpartition("/")
        if kind == "embeddings":
            place, _, of = parent.partition("/")
            number = int(of) if place == "rounds" else 0
            selected = selection_view(record, of if place == "selections" else "")
            view = round_view(record, number) if number else final_view(selected)
            _write(storage.join(folder, stage), view, number)


def _write(folder: str, view: RunRecord, number: int) -> None:
    storage.remove_temporary(folder)
    settings = json.loads(storage.read_bytes(storage.join(folder, "config.json")))
    text, path = _marked(encoder_card(view, settings, number)), storage.join(folder, CARD)
    if storage.exists(path):
        before = storage.read_bytes(path).decode("utf-8", "replace")
        if before == text:
            return
        first, *_, rest = before.split("\n", 2)  # without the line with the checksum
        if before != _marked(f"{first}\n{rest}"):
            say(f"paraloom: {path}: changed by hand, so it stays; remove it to get a new one")
            return
    storage.write_bytes(path, text.encode())


def _marked(text: str) -> str:
    """A card with a line that tells it from cards of people: its checksum."""
    rest = text.removeprefix("---\n")
    return f"---\n{OWN_CARD}, checksum {hashlib.sha256(rest.encode()).hexdigest()[:16]}\n{rest}"


def encoder_card(view: RunRecord, settings: dict[str, Any], number: int = 0) -> str:
    """The card of an encoder as text, from its config.json and the view of the run (`final_view`)
    or of its round (`round_view`)."""
    options = read_options(settings["options"])
    language = settings.get("language", ENGLISH)
    trained = view.find(TrainingRecord, "embeddings") or TrainingRecord()
    on_corpus = options.reads_the_corpus
    source = view.config.input if on_corpus else None
    evaluated = view.find(EvaluateRecord)
    known = _used_data_sets(view, options, evaluated.results) if evaluated else []
    score = "" if "head" in settings else options.score
    run = PurePath(view.config.run).name
    name = f"{run}-round-{number}" if number else run
    tested = _tested(trained.training)
    found: list[EvalResult] = []
    for of, _, each in tested:
        found += results(f"{of} (held out)", each, score)
    if evaluated:
        models = evaluated.results.models
        model = options.model if options.model in models else models[0]
        found += model_index(evaluated.results, model, score, known)
    table = evaluation_table([("", evaluated)]) if evaluated else None
    license = source.license if source else None
    chosen = {key: value for key, value in settings["options"].items() if value is not None}
    return render_markdown(
        "encoder_card.md.j2",
        metadata=encoder_metadata(
            name=name,
            language=language,
            license=license,
            results=found,
            training=_training_data_sets(view, known) if on_corpus else None,
        ),
        name=name,
        language=language_name(language),
        settings=settings,
        options=options,
        score=score,
        trained=trained,
        evaluation=table,
        evaluation_rows=[(head, *cells) for head, cells, _ in table.rows] if table else [],
        test=[
            (of, pairs, *map(correlation, (each.pearson, each.spearman)), mse(each))
            for of, pairs, each in tested
        ],
        known=known,
        corpus=view.find(PairsRecord, "select") if on_corpus else None,
        selection=Markdown(selection_in_words(resolve_auto(view), code)),
        source=source,
        source_name=language_name(source.source_language) if source else "",
        translated=view.find(BackTranslateRecord),
        forward=view.find(PivotRecord),
        model_name=model_name,
        bleu=view.bleu,
        generators=generated.generators if (generated := public(view).find(GenerateRecord)) else {},
        when=when,
        initial=_initial(options, trained.training),
        run=run,
        number=number,
        view=view,
        files=list(_files(view, trained, on_corpus=on_corpus)),
        config=Markdown(
            yaml.safe_dump(
                harmless(chosen, type(options)), sort_keys=False, allow_unicode=True, width=10**6
            )
        ),
    )


def _initial(options: EmbeddingOptions, metrics: dict[str, Any]) -> str:
    if options.start:
        return f"the vectors of the encoder {PurePath(options.start).name}"
    if options.vector_file:
        return f"the file {PurePath(options.vector_file).name}"
    return str(metrics.get("initial_vectors", "random numbers"))


def _tested(metrics: dict[str, Any]) -> list[tuple[str, int, Correlation]]:
    """Results on the test data of labelled tasks: data set, pairs, correlations."""
    found = []
    for name, of in metrics.get("test", {}).items():
        numbers = {key: of[key] for key in ("pearson", "spearman", "mse") if of[key] == of[key]}
        if "pairs" in of:
            undefined = {"pearson": None, "spearman": None}
            found.append((name, of["pairs"], Correlation.model_validate(undefined | numbers)))
    return found


def _used_data_sets(
    view: RunRecord, options: EmbeddingOptions, evaluation: Evaluation
) -> list[str]:
    """The data sets of the evaluation that were used before: to train, or to choose an epoch, the
    deciles or a round.

    The last two names of a path tell which: `sts/2012`, `2014/images.tsv`, `SICK_trial.txt`.
    """
    paths = list(options.files().values())
    if view.config.select.by == "auto" or "loop" in view.stages:
        labelled = (view.config.select.model_extra or {}).get("labelled") or []
        paths += [labelled] if isinstance(labelled, str) else labelled
    names = [f"{group} {name}" for group, of in evaluation.groups.items() for name in of.data_sets]
    words = {name: _words(name) for name in names}
    known = set().union(*words.values())
    used = [_words(" ".join(PurePath(path).with_suffix("").parts[-2:])) & known for path in paths]
    used = [of_path for of_path in used if of_path - _SPLITS]
    return [name for name in names if any(of_path <= words[name] for of_path in used)]


def _training_data_sets(view: RunRecord, known: Sequence[str]) -> list[str] | None:
    """The tasks of MTEB that the encoder was trained on, as MTEB's `ModelMeta.training_datasets`;
    None, unknown, unless the corpus is without evaluation sentences."""
    if not view.find(ExcludeRecord):
        return None
    evaluated = view.find(EvaluateRecord) or EvaluateRecord(
        results=Evaluation(models=[], groups={})
    )
    mteb = (evaluated.results.model_extra or {}).get("protocols", {}).get("mteb", {})
    tasks = mteb.get("tasks", {}).items()
    return [of["task"] for name, of in tasks if any(each.startswith(name) for each in known)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def _files(
    view: RunRecord, trained: TrainingRecord, *, on_corpus: bool
) -> Iterator[tuple[object, ...]]:
    """What the encoder was made of: what it is, its name, its SHA-256."""
    for key, file in trained.files.items():
        yield code(key), code(PurePath(file.path).name), code(file.sha256)
    if trained.training.get("initial_vectors") and (vectors := view.stages.get("paragram")):
        yield "PARAGRAM vectors of the run", "", code(vectors.digest)
        score = view.config.score.model_extra or {}
        if source := score.get("paragram") or score.get("phrases"):
            yield "they were made from", code(PurePath(source).name), ""
    if on_corpus and (corpus := view.stages.get("select")):
        yield "corpus of the run", "", code(corpus.digest)
        for input_ in view.inputs:
            yield "bitext", code(PurePath(input_.path).name), code(input_.sha256)

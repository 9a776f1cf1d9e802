"""The model card of an encoder, `embeddings/README.md`, for Hugging Face's Hub."""

import json
import re
from pathlib import PurePath
from typing import Any

from huggingface_hub.repocard_data import eval_results_to_model_index

from paraloom.beam_jobs import storage
from paraloom.models.embeddings.options import EmbeddingOptions, saved_options
from paraloom.models.files import CARD, OWN_CARD
from paraloom.models.languages import ENGLISH, language_name
from paraloom.models.printing import say
from paraloom.pipeline.pages.describe import evaluation_table, resolve_auto, selection_in_words
from paraloom.pipeline.pages.metadata import (
    eval_results,
    hub_languages,
    license_metadata,
    mteb_tasks,
)
from paraloom.pipeline.pages.render import Markdown, as_yaml, code, render_markdown
from paraloom.pipeline.pages.shown import run_name, without_folders
from paraloom.pipeline.run.records import (
    EvaluateRecord,
    Evaluation,
    PairsRecord,
    RunRecord,
    TrainingRecord,
)
from paraloom.pipeline.stages.generate import generators_of
from paraloom.pipeline.stages.selection.exclude import ExcludeRecord

_MARK = f"{OWN_CARD}; without this line, the card stays as it is"
_SPLITS = {"train", "test", "trial", "dev"}


def write_encoder_card(folder: str, record: RunRecord, place: str = "") -> None:
    """Write the card of a run's encoder, or of the derived run's in a place, if it has changed.

    A card without Paraloom's mark is a person's, and stays.
    """
    view = record.derived(place) if place else record.best
    number = int(place.removeprefix("rounds/")) if place.startswith("rounds/") else 0
    folder = storage.join(folder, record.derived(place).path("embeddings"))
    storage.remove_temporary(folder)
    settings = json.loads(storage.read_bytes(storage.join(folder, "config.json")))
    path = storage.join(folder, CARD)
    text = encoder_card(view, settings, number).replace("---\n", f"---\n{_MARK}\n", 1)
    before = storage.read_bytes(path) if storage.exists(path) else None
    if before is not None and OWN_CARD.encode() not in before[:100]:
        say(f"paraloom: {path}: is not Paraloom's, so it stays; remove it to get a new one")
    elif before != text.encode():
        storage.write_bytes(path, text.encode())


def encoder_card(view: RunRecord, settings: dict[str, Any], number: int = 0) -> str:
    """The card of an encoder as text, from its config.json and the record of the run; `number` is
    its round, 0 if the encoder is the run's result."""
    options = saved_options(settings["options"])
    language = settings.get("language", ENGLISH)
    trained = view.find(TrainingRecord, "embeddings") or TrainingRecord()
    on_corpus = options.reads_the_corpus
    source = view.config.input if on_corpus else None
    evaluated = view.find(EvaluateRecord)
    known = _used_data_sets(view, options, evaluated.results) if evaluated else []
    score = "" if "head" in settings else options.score
    run = run_name(view)
    name = f"{run}-round-{number}" if number else run
    index = None
    if evaluated:
        models = evaluated.results.models
        model = options.model if options.model in models else models[0]
        if found := list(eval_results(evaluated.results, model, score, known)):
            index = eval_results_to_model_index(name, found)
    # Without `select.exclude`, the corpus may hold any sentence of MTEB.
    excluded = on_corpus and view.find(ExcludeRecord)
    return render_markdown(
        "encoder_card.md.j2",
        languages=hub_languages([language]),
        license=license_metadata(source.license if source else None),
        tasks=mteb_tasks(known) if excluded else None,
        index=index,
        name=name,
        language=language_name(language),
        settings=settings,
        options=options,
        score=score,
        trained=trained,
        evaluation=evaluation_table([("", evaluated)]) if evaluated else None,
        known=known,
        corpus=view.find(PairsRecord, "select") if on_corpus else None,
        selection=Markdown(selection_in_words(resolve_auto(view), code)),
        source=source,
        source_name=language_name(source.source_language) if source else "",
        translated=view.stages.get("back_translate"),
        forward=view.stages.get("pivot"),
        bleu=view.bleu,
        generators=generators_of(view),
        run=run,
        number=number,
        view=view,
        config=as_yaml(without_folders(settings["options"])),
    )


def _used_data_sets(
    view: RunRecord, options: EmbeddingOptions, evaluation: Evaluation
) -> list[str]:
    """The data sets of the evaluation that the training used, or the choice of an epoch, of deciles
    or of a round.

    They are recognised by the last two names of a path: `sts/2012`, `2014/images.tsv`,
    `SICK_trial.txt`.
    """
    paths = list(options.files().values())
    if view.config.select.by == "auto" or "loop" in view.stages:
        paths += view.config.select.labelled_paths
    names = [f"{group} {name}" for group, of in evaluation.groups.items() for name in of.data_sets]
    words = {name: _words(name) for name in names}
    known = set().union(*words.values())
    used = [_words(" ".join(PurePath(path).with_suffix("").parts[-2:])) & known for path in paths]
    used = [of_path for of_path in used if of_path - _SPLITS]
    return [name for name in names if any(of_path <= words[name] for of_path in used)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))

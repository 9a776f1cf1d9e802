"""What scorers need beside the texts, as stages of a run: word vectors, IDF, the classifier."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beam_jobs.analysis import human_likeness, idf
from beam_jobs.io import storage
from beam_jobs.io.shards import units
from beam_jobs.runners.launch import cores
from models.files import atomic_folder, digest
from models.scorers import SCORERS
from pipeline.config import Config

if TYPE_CHECKING:
    from pipeline.stage import Run


def needs(config: Config, table: str) -> bool:
    """Whether one of the scorers needs what that stage makes."""
    return any(name in SCORERS and SCORERS[name].needs == table for name in config.score.scorers)


def paths(run: Run) -> dict[str, str]:
    """Where what the scorers need stands, by name."""
    places = {
        "paragram": storage.join(run.folder("paragram"), "compact"),
        "idf": storage.join(run.folder("idf"), "compact"),
        "classifier": run.folder("classifier"),
    }
    return {name: place for name, place in places.items() if needs(run.config, name)}


def paragram_parts(run: Run) -> Any:
    """What the word vectors depend on."""
    options = run.config.score
    if options.paragram:
        return digest(options.paragram)
    assert options.phrases is not None
    return [digest(options.phrases), asdict(options.training), run.config.seed]


def make_paragram(run: Run, key: str) -> dict[str, Any]:
    """Word vectors from a file, or trained on phrase pairs."""
    from models.embeddings.training.paragram import train_paragram
    from models.text.vectors import compact_vectors

    started = time.monotonic()
    options = run.config.score
    metrics: dict[str, Any] = {}
    with atomic_folder(run.made("paragram")) as folder:
        text = Path(options.paragram) if options.paragram else folder / "vectors.txt"
        if not options.paragram:
            assert options.phrases is not None
            phrases = Path(options.phrases)
            metrics = train_paragram(
                phrases, text, options.training, seed=run.config.seed, threads=cores()
            )
        compact_vectors(text, folder / "compact")
    return {
        "training": metrics,
        "seconds": round(time.monotonic() - started, 3),
        "digest": run.publish("paragram"),
    }


def idf_parts(run: Run) -> Any:
    """What the IDF depend on beside the references."""
    return digest(run.config.score.idf) if run.config.score.idf else ["counted", idf.VERSION]


def make_idf(run: Run, key: str) -> dict[str, Any]:
    """IDF from a file, or counted over the references of the whole corpus, as ingest left them."""
    from models.text.idf import compact_idf, write_idf

    started = time.monotonic()
    file = run.config.score.idf
    account: dict[str, Any] = {}
    counts = None
    if not file:
        counts = idf.run(units(run.shards("ingest"), key), run.folder("idf"), run.arguments)
    with atomic_folder(run.made("idf")) as folder:
        text = Path(file) if file else folder / "idf.txt"
        if counts is not None:
            write_idf(counts, text)
            account = {"documents": counts.documents}
        account["words"] = compact_idf(text, folder / "compact")
    return {
        **account,
        "seconds": round(time.monotonic() - started, 3),
        "digest": run.publish("idf"),
    }


def classifier_parts(run: Run) -> Any:
    """What the classifier depends on beside the translations."""
    return [human_likeness.VERSION, run.config.seed]


def make_classifier(run: Run, key: str) -> dict[str, Any]:
    """The classifier of `human_likeness`, on a sample of the run's own pairs."""
    from models.scorers.human_classifier import train_classifier

    started = time.monotonic()
    seed = run.config.seed
    work = units(run.shards("back_translate"), key)
    sample = human_likeness.run(work, run.folder("classifier"), run.arguments, seed=seed)
    with atomic_folder(run.made("classifier")) as folder:
        metrics = train_classifier(sample, folder, seed=seed)
    return {
        "training": metrics,
        "seconds": round(time.monotonic() - started, 3),
        "digest": run.publish("classifier"),
    }

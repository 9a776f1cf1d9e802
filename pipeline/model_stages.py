"""The stages beside the pairs: models trained on this machine, figures of a corpus."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beam_jobs.io import remote, storage
from beam_jobs.io.shards import content_key
from beam_jobs.runners.launch import cores
from models.embeddings import tasks
from models.embeddings.tasks import READ_THE_CORPUS
from models.files import digest
from pipeline import statistics
from pipeline.config import Config
from pipeline.records import CorpusRecord
from pipeline.stage import Run


def folder_intact(stage: str) -> Callable[[Run], bool]:
    """Whether what a stage left in its folder is what it made."""

    def intact(run: Run) -> bool:
        folder = run.folder(stage)
        return remote.there(folder) and digest(remote.local(folder)) == run.digest(stage)

    return intact


def make_nmt(run: Run, key: str) -> dict[str, Any]:
    """Train the model that translates."""
    from models.nmt.train import train_nmt

    started = time.monotonic()
    metrics = train_nmt(
        [Path(path) for path in run.local_files("ingest")],
        run.made("nmt"),
        run.config.nmt.training,
        seed=run.config.seed,
        source_language=run.input.source_language,
        threads=cores(),
    )
    return {
        "training": metrics,
        "seconds": round(time.monotonic() - started, 3),
        "digest": run.publish("nmt"),
    }


def embeddings_parts(run: Run) -> Any:
    """What training depends on; not how it is spread or shown."""
    from models.embeddings.training.train import HOW

    options = run.config.embeddings
    kept = {name: value for name, value in options.chosen().items() if name not in HOW}
    kept["initial_vectors"] = digest(options.initial_vectors) if options.initial_vectors else None
    if options.section is None:
        return [kept, run.config.seed]
    files = {key: digest(path) for key, path in options.section.files().items()}
    return [{**kept, options.task: options.section.without_files()}, files, run.config.seed]


def embeddings_needs(config: Config) -> tuple[str, ...]:
    """The corpus, unless the task reads files of its own."""
    return ("corpus",) if config.embeddings.task in READ_THE_CORPUS else ()


def statistics_parts(run: Run) -> Any:
    """What the figures depend on: the parser."""
    options = run.config.statistics
    assert options is not None
    spacy = options.spacy
    return digest(spacy) if spacy and Path(spacy).exists() else spacy


def make_statistics(run: Run, key: str) -> dict[str, Any]:
    """Figures of all pairs beside those of the corpus."""
    started = time.monotonic()
    options = run.config.statistics
    assert options is not None
    all_pairs = run.at(run.record(CorpusRecord).round or 0)  # with the scores of that round
    corpora = {"all pairs": all_pairs.sound_files("bucket"), "corpus": run.sound_files("corpus")}
    found = statistics.describe(
        corpora, run.arguments, spacy=options.spacy, idf=run.config.score.idf
    )
    return {
        "results": found,
        "seconds": round(time.monotonic() - started, 3),
        "digest": content_key(found),
    }


def make_embeddings(run: Run, key: str) -> dict[str, Any]:
    """Train the encoder."""
    started = time.monotonic()
    reads = "corpus" in embeddings_needs(run.config)
    metrics = tasks.train(
        run.config.embeddings,
        run.made("embeddings"),
        shards=run.local_files("corpus") if reads else [],
        seed=run.config.seed,
        threads=cores(),
    )
    return {
        "training": metrics,
        "seconds": round(time.monotonic() - started, 3),
        "digest": run.publish("embeddings"),
    }


def make_evaluate(run: Run, key: str) -> dict[str, Any]:
    """The encoder on STS and SICK."""
    from models.embeddings.applications.evaluation import evaluate_models
    from models.embeddings.model import load_encoder

    started = time.monotonic()
    options = run.config.evaluate
    encoder = load_encoder(remote.local(run.folder("embeddings")))
    report = evaluate_models(
        [encoder.named(run.config.embeddings.model)],
        sts=Path(options.sts) if options.sts else None,
        sick=Path(options.sick) if options.sick else None,
    )
    path = evaluation_path(run)
    storage.write_bytes(path, json.dumps(report.json(), indent=1).encode())
    return {
        "results": report.json(),
        "seconds": round(time.monotonic() - started, 3),
        "digest": storage.file_digest(path),
    }


def evaluation_path(run: Run) -> str:
    """Where the figures of STS and SICK stand."""
    return storage.join(run.folder("evaluate").rpartition("/")[0], "evaluation.json")


def evaluate_parts(run: Run) -> Any:
    """The labelled pairs."""
    return [digest(p) if p else None for p in (run.config.evaluate.sts, run.config.evaluate.sick)]


def evaluation_intact(run: Run) -> bool:
    """Whether the figures are still those that were measured."""
    path = evaluation_path(run)
    return storage.exists(path) and storage.file_digest(path) == run.digest("evaluate")

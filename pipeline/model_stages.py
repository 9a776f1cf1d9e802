"""The stages beside the pairs: the sample, models trained on this machine, figures of a corpus."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beam_jobs.launch import cores
from beam_jobs.shards import content_key
from models.embeddings import tasks
from models.embeddings.tasks import READ_THE_CORPUS
from models.files import atomic_file, digest
from pipeline import statistics
from pipeline.config import Config
from pipeline.stage import Run


def folder_intact(stage: str) -> Callable[[Run], bool]:
    """Whether what a stage left in its folder is what it made."""

    def intact(run: Run) -> bool:
        folder = Path(run.folder(stage))
        return folder.is_dir() and digest(folder) == run.account(stage)["digest"]

    return intact


def sample_parts(run: Run) -> Any:
    """What the sample depends on: its size, the seed and its generator."""
    assert run.config.sample is not None
    return [run.config.sample.pairs, run.config.seed, _source_of_sample()]


def make_sample(run: Run, key: str) -> dict[str, Any]:
    """Write the sample corpus."""
    from pipeline.sample import write_sample

    started = time.monotonic()
    assert run.config.sample is not None
    folder = Path(run.config.sample.folder)
    counts = write_sample(folder, pairs=run.config.sample.pairs, seed=run.config.seed)
    return {
        "counts": counts,
        "seconds": round(time.monotonic() - started, 3),
        "digest": digest(folder),
    }


def sample_intact(run: Run) -> bool:
    """Whether the sample is still as it was written."""
    assert run.config.sample is not None
    folder = Path(run.config.sample.folder)
    return folder.is_dir() and digest(folder) == run.manifest.stages["sample"]["digest"]


def make_nmt(run: Run, key: str) -> dict[str, Any]:
    """Train the model that translates."""
    from models.nmt.train import train_nmt

    started = time.monotonic()
    metrics = train_nmt(
        [Path(path) for path in run.sound_files("ingest")],
        Path(run.folder("nmt")),
        run.config.nmt.training,
        seed=run.config.seed,
        source_language=run.input.source_language,
        threads=cores(),
    )
    return {
        "training": metrics,
        "seconds": round(time.monotonic() - started, 3),
        "digest": digest(run.folder("nmt")),
    }


def embeddings_parts(run: Run) -> Any:
    """What training depends on; not how it is spread or shown."""
    from models.embeddings.train import HOW

    options = run.config.embeddings
    kept = {name: value for name, value in options.chosen().items() if name not in HOW}
    kept["initial_vectors"] = digest(options.initial_vectors) if options.initial_vectors else None
    if options.section is None:
        return [kept, run.config.seed]
    files = {key: digest(path) for key, path in options.section.files().items()}
    return [{**kept, options.task: options.section.without_files()}, files, run.config.seed]


def embeddings_needs(config: Config) -> tuple[str, ...]:
    """The corpus; or, for a task with files of its own, the sample, where they may lie."""
    return ("corpus",) if config.embeddings.task in READ_THE_CORPUS else ("sample",)


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
    all_pairs = run.at(run.account("corpus").get("round", 0))  # with the scores of that round
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
        Path(run.folder("embeddings")),
        shards=run.sound_files("corpus") if reads else [],
        seed=run.config.seed,
        threads=cores(),
    )
    return {
        "training": metrics,
        "seconds": round(time.monotonic() - started, 3),
        "digest": digest(run.folder("embeddings")),
    }


def make_evaluate(run: Run, key: str) -> dict[str, Any]:
    """The encoder on STS and SICK."""
    from models.embeddings.evaluate import evaluate_models
    from models.embeddings.model import load_encoder

    started = time.monotonic()
    options = run.config.evaluate
    encoder = load_encoder(run.folder("embeddings"))
    report = evaluate_models(
        [encoder.named(run.config.embeddings.model)],
        sts=Path(options.sts) if options.sts else None,
        sick=Path(options.sick) if options.sick else None,
    )
    with atomic_file(evaluation_path(run)) as path:
        path.write_text(json.dumps(report.json(), indent=1))
    return {
        "results": report.json(),
        "seconds": round(time.monotonic() - started, 3),
        "digest": digest(evaluation_path(run)),
    }


def evaluation_path(run: Run) -> Path:
    """Where the figures of STS and SICK stand."""
    return Path(run.folder("evaluate")).with_name("evaluation.json")


def evaluate_parts(run: Run) -> Any:
    """The labelled pairs."""
    return [digest(p) if p else None for p in (run.config.evaluate.sts, run.config.evaluate.sick)]


def evaluation_intact(run: Run) -> bool:
    """Whether the figures are still those that were measured."""
    path = evaluation_path(run)
    return path.is_file() and digest(path) == run.account("evaluate")["digest"]


def _source_of_sample() -> str:
    """What the generator makes depends on its code: the digest of its package."""
    import pipeline.sample

    files = sorted(Path(pipeline.sample.__file__).parent.rglob("*"))
    kept = [f for f in files if f.is_file() and "__pycache__" not in f.parts]
    return content_key([(file.name, digest(file)) for file in kept])

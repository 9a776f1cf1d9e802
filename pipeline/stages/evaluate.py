"""Stage `evaluate`: evaluates the encoder on STS and SICK."""

import json
from typing import Any

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.storage import remote
from paraloom.models.errors import reading
from paraloom.models.files import digest
from paraloom.pipeline.run.records import EvaluateRecord, Evaluation
from paraloom.pipeline.run.run import Run


def evaluation_path(run: Run) -> str:
    """Return the path of evaluation.json, beside the encoder's folder."""
    return storage.join(run.folder("evaluate").rpartition("/")[0], "evaluation.json")


def fingerprint(run: Run) -> Any:
    """Return the digests of the data sets."""
    options = run.config.evaluate
    return [digest(path) if path else None for path in (options.sts, options.sick)]


def make(run: Run, key: str) -> EvaluateRecord:
    """Evaluate the encoder, and write evaluation.json."""
    from paraloom.models.embeddings.applications.evaluation import evaluate_models
    from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
    from paraloom.models.embeddings.model import load_encoder

    options = run.config.evaluate
    encoder = load_encoder(remote.localise(run.folder("embeddings")))
    data: list[LabelledPairs] = []
    for name, path, read in (("sts", options.sts, read_sts), ("sick", options.sick, read_sick)):
        with reading(f"evaluate.{name}"):
            data += read(path) if path else []
    results = evaluate_models(data, [encoder.named(run.config.embeddings.model)]).json()
    path = evaluation_path(run)
    storage.write_bytes(path, json.dumps(results, indent=1).encode())
    evaluation = Evaluation.model_validate(results)
    return EvaluateRecord(results=evaluation, digest=storage.file_digest(path))


def is_valid(run: Run, stage: str) -> bool:
    """Whether evaluation.json has the digest in the stage's record."""
    path = evaluation_path(run)
    return storage.exists(path) and storage.file_digest(path) == run.digest(stage)


def copy(source: Run, target: Run) -> None:
    """Copy evaluation.json."""
    storage.copy(evaluation_path(source), evaluation_path(target))

"""Stage `paragram`: makes word vectors for `paragram_similarity` and `unmatched_words`."""

from pathlib import Path
from typing import Any

from paraloom.models.cpu import cores
from paraloom.models.files import atomic_folder, digest
from paraloom.pipeline.run.records import TrainingRecord
from paraloom.pipeline.run.run import Run

resource = "compact"


def fingerprint(run: Run) -> Any:
    """Return the digest of `score.paragram`, or the phrases' digest, training options and seed."""
    options = run.config.score
    if options.paragram:
        return digest(options.paragram)
    assert options.phrases is not None
    trained = [digest(options.phrases), options.training.model_dump(), run.config.seed]
    return run.with_language(trained)


def make(run: Run, key: str) -> TrainingRecord:
    """Read word vectors from a file, or train them on phrase pairs."""
    from paraloom.models.embeddings.training.paragram import train_paragram
    from paraloom.models.text.vectors import compact_vectors

    options = run.config.score
    metrics: dict[str, Any] = {}
    with atomic_folder(run.local_folder("paragram")) as folder:
        text = Path(options.paragram) if options.paragram else folder / "vectors.txt"
        if options.phrases and not options.paragram:
            metrics = train_paragram(
                Path(options.phrases),
                text,
                options.training,
                seed=run.config.seed,
                language=run.language,
                threads=cores(),
            )
        compact_vectors(text, folder / "compact")
    return TrainingRecord(training=metrics, digest=run.publish("paragram"))

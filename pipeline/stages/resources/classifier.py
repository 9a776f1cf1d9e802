"""classifier: the model of the scorer `human_likeness`, trained on a sample of the run's pairs."""

from paraloom.beam_jobs.analysis import human_likeness
from paraloom.beam_jobs.io.shards import units
from paraloom.models.files import atomic_folder
from paraloom.pipeline.records import TrainingRecord
from paraloom.pipeline.stage import Run, Stage, folder_is_valid, needed_by_scorers


def make(run: Run, key: str) -> TrainingRecord:
    """Sample pairs, and train the classifier on them."""
    from paraloom.models.scorers.learned.human_classifier import train_classifier

    seed = run.config.seed
    work = units(run.shards(run.candidates_stage), key)
    sample = human_likeness.run(work, run.folder("classifier"), run.arguments, seed=seed)
    with atomic_folder(run.local_folder("classifier")) as folder:
        metrics = train_classifier(sample, folder, seed=seed, language=run.language)
    return TrainingRecord(training=metrics, digest=run.publish("classifier"))


STAGE = Stage(
    name="classifier",
    depends_on=("back_translate", "generate"),
    fingerprint=lambda run: run.with_language([human_likeness.VERSION, run.config.seed]),
    make=make,
    is_valid=folder_is_valid,
    enabled=needed_by_scorers("classifier"),
)

"""The labelled pairs of `select.labelled`, for automatic selection and for rounds."""

from collections.abc import Sequence

from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_ranking
from paraloom.models.errors import reading
from paraloom.models.files import digest
from paraloom.pipeline.config import Config
from paraloom.pipeline.stage import Run


def read_labelled(paths: Sequence[str]) -> list[LabelledPairs]:
    """The labelled pairs of files and folders."""
    return read_ranking(paths, "select.labelled")


def check_labelled(config: Config) -> None:
    """`Stage.check` of a stage that reads the labelled pairs."""
    read_labelled(config.select.labelled_paths)


def labelled_digests(run: Run) -> list[str]:
    """The digests of the labelled pairs."""
    with reading("select.labelled"):
        return [digest(path) for path in run.config.select.labelled_paths]

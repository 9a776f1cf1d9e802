"""What a user can choose about each task; a section of `embeddings` has the name of its task."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

PATHS = {"paths": True}
"""Metadata of a field that names a file or folder, or a list of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOptions:
    """What all sections have: they know which of their keys name files."""

    def files(self) -> dict[str, str]:
        """The files and folders that the task reads, by key; `data[0]` where there is a list."""
        found = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if not item.metadata or value is None:
                continue
            if isinstance(value, str):
                found[item.name] = value
            else:
                found.update({f"{item.name}[{i}]": path for i, path in enumerate(value)})
        return found

    def without_files(self) -> dict[str, Any]:
        """The other keys: what counts beside the files' content, wherever they lie."""
        paths = {item.name for item in fields(self) if item.metadata}
        return {name: value for name, value in asdict(self).items() if name not in paths}


@dataclass(frozen=True, kw_only=True, slots=True)
class SimilarityOptions(TaskOptions):
    """Labelled similarity by the KL objective (Tai et al. 2015; Wieting & Gimpel 2017, 4.3)."""

    data: list[str] = field(metadata=PATHS)
    """Files or folders of labelled pairs: SICK, or STS, of which every set is cut 40/10/50."""
    start: str | None = field(default=None, metadata=PATHS)
    """Folder of a trained model, whose encoder is taken and which `l2` and `l2_words` pull to."""
    units: int = 50
    """Of the hidden layer over products and distances."""
    held_out: float = 0.1
    """Share of SICK's training pairs that choose the epoch."""

    def __post_init__(self) -> None:
        _check_data(self.data, self.held_out)
        if self.units < 1:
            raise ValueError(f"units: {self.units} is not a positive number")


@dataclass(frozen=True, kw_only=True, slots=True)
class MaLSTMOptions(TaskOptions):
    """MaLSTM (Mueller & Thyagarajan 2016): labelled similarity as a distance of LSTM states."""

    data: list[str] = field(metadata=PATHS)
    """Files or folders of labelled pairs: SICK, or STS, of which every set is cut 40/10/50."""
    pretrain: list[str] = field(default_factory=list, metadata=PATHS)
    """Files or folders of other labelled pairs to train on first, on any scale."""
    synonyms: str | None = field(default=None, metadata=PATHS)
    """A thesaurus for more training pairs: WordNet's folder, PPDB text or a lexicon."""
    augmented: int = 10_022
    """How many pairs synonyms add."""
    held_out: float = 0.3
    """Share of SICK's training pairs, and of `pretrain`, that choose the epoch."""
    patience: int = 20
    """Epochs without a better one after which training ends."""
    calibrate: bool = True
    """Predict labels by local-linear regression on the distance, not by the distance itself."""
    entailment: bool = True
    """Report SICK's entailment by a support vector machine on the vectors."""

    def __post_init__(self) -> None:
        _check_data(self.data, self.held_out)
        for name in ("augmented", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is not a positive number")


def _check_data(data: list[str], held_out: float) -> None:
    if not data:
        raise ValueError("data: names no file")
    if not 0 < held_out < 1:
        raise ValueError(f"held_out: {held_out} is not between 0 and 1")

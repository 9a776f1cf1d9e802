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
    """Files or folders of labelled pairs, SICK or STS; of STS 40/10/50 per data set is used."""
    start: str | None = field(default=None, metadata=PATHS)
    """Folder of a trained model to start from and be regularised towards, in place of `model`."""

    def __post_init__(self) -> None:
        if not self.data:
            raise ValueError("data: names no file")

"""The folder of a translation model: a fairseq checkpoint and the files to decode with it."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from paraloom.models.errors import UserError
from paraloom.models.files import digest

CHECKPOINT = "checkpoint.pt"
SENTENCEPIECE = "sentencepiece.model"


@dataclass(frozen=True)
class ModelFolder:
    """`checkpoint.pt`, `dict.<source>.txt`, `dict.<target>.txt` and `sentencepiece.model`.

    The constructor checks that the files exist; it does not read them.

    >>> folder = ModelFolder(Path("models/cs-en"))
    >>> sorted(folder.dictionaries)
    ['cs', 'en']
    """

    path: Path

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise UserError(f"{self.path}: no such model folder")
        for name in (CHECKPOINT, SENTENCEPIECE):
            if not (self.path / name).is_file():
                raise UserError(f"{self.path / name}: missing from the model folder")
        if len(self.dictionaries) < 2:
            raise UserError(
                f"{self.path}/dict.<language>.txt: a model folder needs one for each language, "
                f"found {', '.join(p.name for p in self.dictionaries.values()) or 'none'}"
            )

    @property
    def checkpoint(self) -> Path:
        """The fairseq checkpoint."""
        return self.path / CHECKPOINT

    @cached_property
    def dictionaries(self) -> dict[str, Path]:
        """The fairseq dictionaries by language."""
        paths = sorted(self.path.glob("dict.*.txt"))
        return {path.name.removeprefix("dict.").removesuffix(".txt"): path for path in paths}

    def dictionary(self, language: str) -> Path:
        """The dictionary of a language."""
        if language not in self.dictionaries:
            missing = self.path / f"dict.{language}.txt"
            raise UserError(f"{missing}: missing from the model folder (the checkpoint names it)")
        return self.dictionaries[language]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the checkpoint and the dictionaries, the input of a conversion."""
        total = hashlib.sha256()
        for path in (self.checkpoint, *self.dictionaries.values()):
            total.update(f"{path.name}\0{digest(path)}\n".encode())
        return total.hexdigest()

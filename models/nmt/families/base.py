"""Interface of a translation model for `Engine` and `Translator`."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paraloom.models.errors import in_one_line
from paraloom.models.files import digest
from paraloom.models.nmt.convert import Conversion, convert_once
from paraloom.models.nmt.families.subwords import Subwords


@dataclass(frozen=True)
class TokenLayout:
    """Tokens that a model needs around subwords. They are added as tokens, never as text."""

    source_prefix: tuple[str, ...] = ()  # such as the source's language tag
    source_suffix: tuple[str, ...] = ()  # such as the end of sentence
    decoder_start: str | None = "</s>"  # None if `target_prefix` starts the decoder
    target_prefix: tuple[str, ...] = ()  # such as a language tag; not in scores and lengths
    barred: tuple[str, ...] = ()  # never generated, without a share of the probability

    def source(self, pieces: Sequence[str]) -> list[str]:
        """Tokens for the encoder."""
        return [*self.source_prefix, *pieces, *self.source_suffix]


@dataclass(frozen=True)
class Languages:
    """Languages of a translation, as the user writes them (`cs`, `ces_Latn`, `pt-BR`)."""

    source: str | None = None
    target: str | None = None
    source_key: str = "input.source_language"  # configuration key, for errors
    target_key: str = "input.target_language"

    def reversed(self) -> "Languages":
        """Languages of a translation in the other direction."""
        return Languages(self.target, self.source, self.target_key, self.source_key)


class NmtModel(ABC):
    """A model folder. Opening it checks files, languages and tags; it loads no weights."""

    family: str  # name for messages and the manifest
    path: Path
    layout: TokenLayout = TokenLayout()
    languages: tuple[str, str] = ("", "")
    """Source and target languages according to its files; "" if unknown."""
    shortest = 0
    """Minimum subwords in a translation, without the end of sentence; CTranslate2 gives that no
    probability earlier."""
    patience = 1
    """The search ends when beam times this many translations have ended."""
    suppresses_unknown = False
    """Whether `<unk>` is never generated."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of everything that a conversion depends on."""

    @abstractmethod
    def subwords(self) -> Subwords:
        """Load the subword models."""

    @abstractmethod
    def convert(self, out: Path) -> tuple[int, int]:
        """Write the model in CTranslate2's format; return the numbers of source and target
        positions, including ends of sentence and tags."""

    def converted(self) -> Conversion:
        """The model in CTranslate2's format, converted once and cached."""
        with in_one_line(f"{self.path}: CTranslate2 cannot convert it"):
            return convert_once(self.digest, self.convert)


def digest_of(paths: Iterable[Path], start: str = "") -> str:
    """SHA-256 of files and their names."""
    total = hashlib.sha256(start.encode())
    for path in paths:
        total.update(f"{path.name}\0{digest(path)}\n".encode())
    return total.hexdigest()

"""Interface of a translation model: what `Engine` and `Translator` need of it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paraloom.models.errors import in_one_line
from paraloom.models.nmt.convert import Conversion, convert_once
from paraloom.models.nmt.families.subwords import Subwords


@dataclass(frozen=True)
class TokenLayout:
    """The tokens that a model wants around subwords. They are added as tokens, never as text.

    Attributes:
        source_prefix: before the source, such as its language tag.
        source_suffix: after the source, such as the end of sentence.
        decoder_start: the decoder's first input; None if `target_prefix` is.
        target_prefix: what every translation starts with, such as its language tag. It counts
            neither in scores nor in lengths.
        barred: tokens that are never generated, and have no share of the probability.
    """

    source_prefix: tuple[str, ...] = ()
    source_suffix: tuple[str, ...] = ()
    decoder_start: str | None = "</s>"
    target_prefix: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()

    def source(self, pieces: Sequence[str]) -> list[str]:
        """A source as the encoder gets it."""
        return [*self.source_prefix, *pieces, *self.source_suffix]


@dataclass(frozen=True)
class Languages:
    """The languages of a translation, as the user writes them (`cs`, `ces_Latn`, `pt-BR`)."""

    source: str | None = None
    target: str | None = None
    source_key: str = "input.source_language"  # of the configuration, for errors
    target_key: str = "input.target_language"

    def reversed(self) -> "Languages":
        """The languages of a translation in the other direction."""
        return Languages(self.target, self.source, self.target_key, self.source_key)


class NmtModel(ABC):
    """A model folder. Opening it checks files, languages and tags; it loads no weights."""

    family: str
    """Name for messages and the manifest."""
    path: Path
    layout: TokenLayout = TokenLayout()
    languages: tuple[str, str] = ("", "")
    """The languages that its files say it translates from and into; "" where they do not."""
    shortest = 0
    """Least subwords of a translation, end of sentence left out. CTranslate2 gives the end of
    sentence no probability before."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of all that a conversion depends on."""

    @abstractmethod
    def subwords(self) -> Subwords:
        """Load the subword models."""

    @abstractmethod
    def convert(self, out: Path) -> tuple[int, int]:
        """Write the model in CTranslate2's format.

        Returns:
            the numbers of source and target positions, ends of sentence and tags included.
        """

    def converted(self) -> Conversion:
        """The model in CTranslate2's format, converted once and cached."""
        with in_one_line(f"{self.path}: CTranslate2 cannot convert it"):
            return convert_once(self.digest, self.convert)

"""Interface of translation models, which `Engine` and `Translator` use."""

import hashlib
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from paraloom.models.errors import in_one_line
from paraloom.models.files import digest
from paraloom.models.nmt.convert import Conversion, convert_once
from paraloom.models.nmt.families.subwords import Subwords, open_subwords

POSITIONS = 1024  # maximum length in subwords, if a model's files contain no maximum
_SPARE = 8 << 30  # bytes of address space for libraries and threads
_TRIAL = """
import contextlib, resource, sys
folder, most, source, prefix = sys.argv[1:]
with contextlib.suppress(Exception):
    resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most)))
import ctranslate2
model = ctranslate2.Translator(folder, compute_type="float32", intra_threads=1)
model.translate_batch([source.split()], [prefix.split()], beam_size=2, max_decoding_length=8)
"""


@dataclass(frozen=True)
class TokenLayout:
    """Tokens that a model needs before and after the subwords of a text."""

    source_prefix: tuple[str, ...] = ()  # for example the source's language tag
    source_suffix: tuple[str, ...] = ()  # for example the end of sentence
    decoder_start: str | None = "</s>"  # None if `target_prefix` starts the decoder
    target_prefix: tuple[str, ...] = ()  # for example a tag; not counted in scores and lengths
    barred: tuple[str, ...] = ()  # tokens that are never generated

    def source(self, pieces: Sequence[str]) -> list[str]:
        """Return the tokens for the encoder."""
        return [*self.source_prefix, *pieces, *self.source_suffix]


@dataclass(frozen=True)
class Languages:
    """Languages of a translation, in the user's notation (`cs`, `ces_Latn`, `pt-BR`)."""

    source: str | None = None
    target: str | None = None
    source_key: str = "input.source_language"  # configuration key, for errors
    target_key: str = "input.target_language"

    def reversed(self) -> "Languages":
        """Return the languages of a translation in the other direction."""
        return Languages(self.target, self.source, self.target_key, self.source_key)


class NmtModel(ABC):
    """A model folder. The constructor checks files, languages and tags, but loads no weights."""

    files: tuple[tuple[str, ...], ...]
    """Necessary files. For each file, there are alternative patterns, in order of preference. The
    first file identifies the class. The last file is the tokeniser."""
    family: str  # name for messages and the manifest
    path: Path
    read: Sequence[Path]  # all files that a conversion depends on
    version = ""  # change this value when `convert` changes
    layout: TokenLayout = TokenLayout()
    languages: tuple[str, str] = ("", "")
    """Source and target languages according to the model's files; "" if unknown."""
    shortest = 0
    """Minimum number of subwords in a translation, without the end of sentence."""
    patience = 1
    """The search ends when beam × patience translations are complete."""
    suppresses_unknown = False
    """Whether `<unk>` is never generated."""

    @abstractmethod
    def __init__(self, path: Path, languages: Languages) -> None: ...

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that a conversion depends on."""
        total = hashlib.sha256(self.version.encode())
        for path in self.read:
            total.update(f"{path.name}\0{digest(path)}\n".encode())
        return total.hexdigest()

    def subwords(self) -> Subwords:
        """Load the subword models."""
        return open_subwords(self.path, self.files[-1], self.languages)

    @abstractmethod
    def convert(self, out: Path) -> tuple[int, int]:
        """Write the model in CTranslate2's format. Return the maximum numbers of source tokens and
        of target tokens."""

    def converted(self) -> Conversion:
        """Convert the model to CTranslate2's format, or return an earlier conversion."""
        with in_one_line(f"{self.path}: CTranslate2 cannot convert it"):
            return convert_once(self.digest, self.convert)

    def try_out(self, folder: Path) -> None:
        """Translate one subword with the converted model in `folder`, to find out whether it works.

        A separate process translates, because wrong weights may crash CTranslate2. Raise a
        RuntimeError if it fails.
        """
        most = _SPARE + 8 * sum(file.stat().st_size for file in folder.iterdir())
        tokens = [" ".join(of) for of in (self.layout.source(["▁a"]), self.layout.target_prefix)]
        command = [sys.executable, "-P", "-c", _TRIAL, str(folder), str(most), *tokens]
        done = subprocess.run(command, capture_output=True, errors="replace", timeout=600)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["it crashes"])[-1]
            raise RuntimeError(f"its weights do not fit its settings or vocabulary: {said}")

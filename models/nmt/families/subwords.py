"""Subwords of texts, by SentencePiece or by a `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from paraloom.models.errors import UserError, in_one_line

if TYPE_CHECKING:
    import sentencepiece
    import tokenizers


class Subwords(Protocol):
    """Segmentation of both sides. Languages' tags are not added here."""

    def encode_source(self, texts: Sequence[str]) -> list[list[str]]:
        """The subwords of source texts."""

    def encode_target(self, texts: Sequence[str]) -> list[list[str]]:
        """The subwords of texts in the target language."""

    def decode(self, pieces: Sequence[str]) -> str:
        """The text of target subwords."""


class SentencePieces:
    """SentencePiece models, one for both sides or one for each.

    Args:
        prompt: text before every source that is not blank.
    """

    def __init__(self, source: Path, target: Path | None = None, prompt: str = "") -> None:
        self._source = load_sentencepiece(source)
        self._target = load_sentencepiece(target) if target else self._source
        self._prompt = prompt

    def encode_source(self, texts: Sequence[str]) -> list[list[str]]:
        """See `Subwords`."""
        found: list[list[str]] = self._source.encode(_with(self._prompt, texts), out_type=str)
        return found

    def encode_target(self, texts: Sequence[str]) -> list[list[str]]:
        """See `Subwords`."""
        found: list[list[str]] = self._target.encode(list(texts), out_type=str)
        return found

    def decode(self, pieces: Sequence[str]) -> str:
        """See `Subwords`."""
        text: str = self._target.decode(list(pieces))
        return text


class TokenizerJson:
    """A `tokenizer.json` of Hugging Face, for both sides; slower than SentencePiece.

    Args:
        prompt: text before every source that is not blank.
    """

    def __init__(self, path: Path, prompt: str = "") -> None:
        self._tokenizer = load_tokenizer(path)
        self._failure = f"{path}: the tokenizer fails"
        self._tokenizer.encode_special_tokens = True  # `</s>` in a text is text
        self._prompt = prompt

    def encode_source(self, texts: Sequence[str]) -> list[list[str]]:
        """See `Subwords`."""
        return self.encode_target(_with(self._prompt, texts))

    def encode_target(self, texts: Sequence[str]) -> list[list[str]]:
        """See `Subwords`; raises UserError if the file asks for what the library cannot do."""
        with in_one_line(self._failure):
            found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.tokens for encoding in found]

    def decode(self, pieces: Sequence[str]) -> str:
        """See `Subwords`; raises as `encode_target`."""
        if self._tokenizer.decoder is None:
            return "".join(pieces).replace("▁", " ")
        with in_one_line(self._failure):
            return str(self._tokenizer.decoder.decode(list(pieces)))


def _with(prompt: str, texts: Sequence[str]) -> list[str]:
    return [prompt + text if text.strip() else "" for text in texts] if prompt else list(texts)


def load_sentencepiece(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Load a SentencePiece model."""
    import sentencepiece

    if not path.is_file():
        raise UserError(f"{path}: missing from the model folder")
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise UserError(f"{path}: not a SentencePiece model") from error


def load_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """Load a `tokenizer.json`."""
    import tokenizers

    with in_one_line(f"{path}: not a tokenizer.json"):
        return tokenizers.Tokenizer.from_file(str(path))

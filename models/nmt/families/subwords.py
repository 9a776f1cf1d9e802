"""Splitting of texts into subwords by SentencePiece or `tokenizer.json`, without tags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.nmt.families.moses_bpe import MosesBpe

if TYPE_CHECKING:
    import sentencepiece

_MOST_UNUSED = 1 << 16  # vocabulary entries without a token


class SentencePieces:
    """SentencePiece models, one for both sides or one for each."""

    name = "SentencePiece"

    def __init__(self, source: Path, target: Path | None = None) -> None:
        self._source = load_sentencepiece(source)
        self._target = load_sentencepiece(target) if target else self._source

    def encode(self, texts: Sequence[str], *, target: bool = False) -> list[list[str]]:
        """Subwords of texts in the source language, or in the target language."""
        side = self._target if target else self._source
        return list(side.encode(list(texts), out_type=str))

    def decode(self, pieces: Sequence[str]) -> str:
        """Text of target subwords."""
        return str(self._target.decode(list(pieces)))

    def vocabulary(self) -> list[str]:
        """Source subwords by id."""
        return list(self._source.id_to_piece(list(range(self._source.get_piece_size()))))


class TokenizerJson:
    """A Hugging Face `tokenizer.json` for both sides; slower than SentencePiece."""

    name = "tokenizer.json"

    def __init__(self, path: Path) -> None:
        import tokenizers

        with in_one_line(f"{path}: not a tokenizer.json"):
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.encode_special_tokens = True  # `</s>` in a text is text

    def encode(self, texts: Sequence[str], *, target: bool = False) -> list[list[str]]:
        """Subwords of texts in either language."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.tokens for encoding in found]

    def decode(self, pieces: Sequence[str]) -> str:
        """Text of target subwords."""
        if self._tokenizer.decoder is None:
            return "".join(pieces).replace("▁", " ")
        return str(self._tokenizer.decoder.decode(list(pieces)))

    def vocabulary(self) -> list[str]:
        """All tokens by id."""
        by_token = self._tokenizer.get_vocab(with_added_tokens=True)
        return sorted(by_token, key=by_token.__getitem__)


Subwords = SentencePieces | TokenizerJson | MosesBpe


def open_subwords(
    folder: Path, names: Sequence[str], languages: tuple[str, str] = ("", "")
) -> Subwords:
    """Open a subword model, or the first of `names` in a folder; `source.spm` needs `target.spm`
    beside it, and BPE codes need the languages of the two sides."""
    paths = [folder, *(folder / name for name in names)]
    path = next(filter(Path.is_file, paths), None)
    if path is None:
        raise UserError(
            f"{folder}: the tokeniser is missing from the model folder ({' or '.join(names)})"
        )
    if not path.suffix:
        return MosesBpe(path, *languages)
    if path.suffix == ".json":
        return TokenizerJson(path)
    return SentencePieces(path, path.with_name("target.spm") if path.name == "source.spm" else None)


def load_sentencepiece(path: Path) -> sentencepiece.SentencePieceProcessor:
    """Load a SentencePiece model."""
    import sentencepiece

    if not path.is_file():
        raise UserError(f"{path}: is missing from the model folder")
    with in_one_line(f"{path}: not a SentencePiece model"):
        return sentencepiece.SentencePieceProcessor(model_file=str(path))


def filled_up(tokens: list[str], size: int) -> list[str]:
    """Extend a vocabulary to the number of embeddings."""
    if size > len(tokens) + _MOST_UNUSED:
        raise ValueError(f"it has {size:,} embeddings for {len(tokens):,} tokens")
    return tokens[:size] + [f"<unused_{number}>" for number in range(size - len(tokens))]

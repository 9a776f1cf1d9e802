"""Splitting of texts into subwords by SentencePiece, `tokenizer.json` or BPE codes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.text.files import refuse_pointer

if TYPE_CHECKING:
    import sentencepiece

_CUT = "@@"  # suffix of each subword of a word, except the last


class SentencePieces:
    """One SentencePiece model for both sides, or a model for each side."""

    name = "SentencePiece"

    def __init__(self, source: Path, target: Path | None = None) -> None:
        self._source = load_sentencepiece(source)
        self._target = load_sentencepiece(target) if target else self._source

    def encode(self, texts: Sequence[str], *, target: bool = False) -> list[list[str]]:
        """Split texts in the source or target language into subwords."""
        side = self._target if target else self._source
        return list(side.encode(list(texts), out_type=str))

    def decode(self, pieces: Sequence[str]) -> str:
        """Join target subwords into a text."""
        return str(self._target.decode(list(pieces)))

    def vocabulary(self) -> list[str]:
        """Return the source subwords in id order."""
        return list(self._source.id_to_piece(list(range(self._source.get_piece_size()))))


class TokenizerJson:
    """A Hugging Face `tokenizer.json` for both sides. It is slower than SentencePiece."""

    name = "tokenizer.json"

    def __init__(self, path: Path) -> None:
        import tokenizers

        with in_one_line(f"{path}: not a tokenizer.json"):
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.encode_special_tokens = True  # treat `</s>` in a text as text

    def encode(self, texts: Sequence[str], *, target: bool = False) -> list[list[str]]:
        """Split texts in either language into subwords."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [encoding.tokens for encoding in found]

    def decode(self, pieces: Sequence[str]) -> str:
        """Join target subwords into a text."""
        if self._tokenizer.decoder is None:
            return "".join(pieces).replace("▁", " ")
        return str(self._tokenizer.decoder.decode(list(pieces)))

    def vocabulary(self) -> list[str]:
        """Return all tokens in id order."""
        by_token = self._tokenizer.get_vocab(with_added_tokens=True)
        return sorted(by_token, key=by_token.__getitem__)


class MosesBpe:
    """Moses' tokeniser, with BPE codes of subword-nmt or fastBPE."""

    name = "Moses and BPE codes"

    def __init__(self, codes: Path, source: str, target: str) -> None:
        import sacremoses

        self._ranks, self._end = _read_codes(codes)
        self._tokenizers = [sacremoses.MosesTokenizer(side) for side in (source, target)]
        self._detokenizer = sacremoses.MosesDetokenizer(target)
        self._pieces = lru_cache(1 << 16)(self._split)

    def encode(self, texts: Sequence[str], *, target: bool = False) -> list[list[str]]:
        """Split texts in the source or target language into subwords."""
        tokenize = partial(self._tokenizers[target].tokenize, aggressive_dash_splits=True)
        return [
            [piece for word in tokenize(text) for piece in self._pieces(word)] for text in texts
        ]

    def decode(self, pieces: Sequence[str]) -> str:
        """Join target subwords into a text."""
        words = f"{' '.join(pieces)} ".replace(f"{_CUT} ", "").split()
        return str(self._detokenizer.detokenize(words))

    def _split(self, word: str) -> list[str]:
        parts = [*word[:-1], word[-1] + self._end[0], *self._end[1:]]
        while pairs := set(itertools.pairwise(parts)) & self._ranks.keys():
            first, second = min(pairs, key=self._ranks.__getitem__)
            for at in range(len(parts)):  # `parts` becomes shorter; slices after its end are empty
                if parts[at : at + 2] == [first, second]:
                    parts[at : at + 2] = [first + second]
        parts[-1] = parts[-1].removesuffix("</w>")
        parts = parts if parts[-1] else parts[:-1]
        return [*(part + _CUT for part in parts[:-1]), parts[-1]]


def _read_codes(path: Path) -> tuple[dict[tuple[str, str], int], tuple[str, ...]]:
    """Return the ranks of pairs of subwords, and the mark for the end of a word.

    The mark is a suffix of the last letter, `("</w>",)`, or a separate part, `("", "</w>")`.
    """
    with in_one_line(f"{path}: not BPE codes, which have two subwords a line"):
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        version = lines.pop(0).split()[-1] if lines[0].startswith("#version:") else ""
        codes = [line.strip("\r ").split(" ") for line in lines]
        fast = all(len(code) == 3 for code in codes)  # the third column is fastBPE's count
        if not fast and any(len(code) != 2 for code in codes):
            raise ValueError("a line does not have two subwords")
        # If a pair occurs twice, use the rank of its first occurrence.
        ranks = {(code[0], code[1]): rank for rank, code in reversed([*enumerate(codes)])}
        return ranks, ("</w>",) if fast or version == "0.2" else ("", "</w>")


Subwords = SentencePieces | TokenizerJson | MosesBpe


def open_subwords(
    folder: Path, names: Sequence[str], languages: tuple[str, str] = ("", "")
) -> Subwords:
    """Open a tokeniser's file, or the first file of `names` in a folder. BPE needs `languages`."""
    paths = [folder, *(folder / name for name in names)]
    path = next(filter(Path.is_file, paths), None)
    if path is None:
        raise UserError(
            f"{folder}: the tokeniser is missing from the model folder ({' or '.join(names)})"
        )
    with in_one_line(f"{path}: cannot be read"), path.open("rb") as stream:
        refuse_pointer(stream.read(100), path)
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
    """Extend or truncate a vocabulary to `size`, the number of embeddings.

    Raise a ValueError if more than a tenth of the embeddings, and more than 100, have no token.
    """
    if size - len(tokens) > max(size // 10, 100):
        raise ValueError(f"it has {size:,} embeddings for {len(tokens):,} tokens")
    return tokens[:size] + [f"<unused_{number}>" for number in range(size - len(tokens))]

"""Moses' tokens cut into subwords by BPE codes, as fairseq's published models have them."""

import itertools
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path

from paraloom.models.errors import in_one_line

_CUT = "@@"  # a subword that does not end a word


class MosesBpe:
    """BPE codes of subword-nmt or fastBPE after Moses' tokenizer, as in fairseq's hub interface."""

    name = "Moses and BPE codes"

    def __init__(self, codes: Path, source: str, target: str) -> None:
        import sacremoses

        self._ranks, self._end = _read_codes(codes)
        self._tokenizers = [sacremoses.MosesTokenizer(side) for side in (source, target)]
        self._detokenizer = sacremoses.MosesDetokenizer(target)
        self._pieces = lru_cache(1 << 16)(self._split)

    def encode(self, texts: Sequence[str], *, target: bool = False) -> list[list[str]]:
        """Subwords of texts in the source language, or in the target language."""
        tokenize = partial(self._tokenizers[target].tokenize, aggressive_dash_splits=True)
        return [
            [piece for word in tokenize(text) for piece in self._pieces(word)] for text in texts
        ]

    def decode(self, pieces: Sequence[str]) -> str:
        """Text of target subwords."""
        words = f"{' '.join(pieces)} ".replace(f"{_CUT} ", "").split()
        return str(self._detokenizer.detokenize(words))

    def _split(self, word: str) -> list[str]:
        """Merge the pair with the lowest rank, until no code fits."""
        parts = [*word[:-1], word[-1] + self._end[0], *self._end[1:]]
        while pairs := set(itertools.pairwise(parts)) & self._ranks.keys():
            first, second = min(pairs, key=self._ranks.__getitem__)
            for at in range(len(parts)):  # slices beyond the end are empty
                if parts[at : at + 2] == [first, second]:
                    parts[at : at + 2] = [first + second]
        parts[-1] = parts[-1].removesuffix("</w>")
        parts = parts if parts[-1] else parts[:-1]
        return [*(part + _CUT for part in parts[:-1]), parts[-1]]


def _read_codes(path: Path) -> tuple[dict[tuple[str, str], int], tuple[str, ...]]:
    """Read ranks of pairs, and the mark that ends a word: part of its last letter, or separate."""
    with in_one_line(f"{path}: not BPE codes, which have two subwords a line"):
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        version = lines.pop(0).split()[-1] if lines[0].startswith("#version:") else ""
        codes = [line.strip("\r ").split(" ") for line in lines]
        fast = all(len(code) == 3 for code in codes)  # fastBPE's, with counts
        if not fast and any(len(code) != 2 for code in codes):
            raise ValueError("a line has more")
        # If a pair occurs twice, the first counts.
        ranks = {(code[0], code[1]): rank for rank, code in reversed([*enumerate(codes)])}
        return ranks, ("</w>",) if fast or version == "0.2" else ("", "</w>")

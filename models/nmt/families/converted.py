"""Folders that somebody converted for CTranslate2: taken as given, because the weights say nothing
about the original."""

import shutil
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError
from paraloom.models.nmt.families.base import Languages, NmtModel, digest_of
from paraloom.models.nmt.families.languages import tags_by_language
from paraloom.models.nmt.families.subwords import Subwords, open_subwords
from paraloom.models.nmt.families.table import M2M100, MADLAD, MARIAN, MBART25, MBART50, NLLB
from paraloom.models.nmt.families.trial import try_out
from paraloom.models.structured import read_json

WEIGHTS = "model.bin"
_SETTINGS = "config.json"
_POSITIONS = 1024  # sentences that are too long for the model are rejected when it fails
_TOKENIZERS: tuple[str, ...] = (
    "sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "vocab.spm", "source.spm",
    "tokenizer.json", "bpecodes",
)  # fmt: skip


class ConvertedModel(NmtModel):
    """`model.bin`, `config.json`, vocabularies, and a tokeniser here or in `tokenizer`.

    The tags in the vocabulary show how sentences are written.
    """

    family = "CTranslate2, taken as given"
    tokenizer: Path | None = None

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path, self._sides = path, (languages.source or "en", languages.target or "en")
        self._files = [path / WEIGHTS, path / _SETTINGS, *sorted(path.glob("*_vocabulary.*"))]
        config = read_json(path / _SETTINGS, dict[str, Any], "settings of CTranslate2")
        if config.get("eos_token", "</s>") != "</s>":
            raise UserError(f"{path / _SETTINGS}: eos_token must be </s>")
        shared = path / "shared_vocabulary.json"
        source = shared if shared.is_file() else path / "source_vocabulary.json"
        tokens = read_json(source, list[str], "a vocabulary of CTranslate2")
        for family in (M2M100, NLLB, MBART50, MADLAD, MARIAN):
            if len(tags := tags_by_language(tokens, family.tags)) > 1:
                break
        if family is MBART50 and len(tags) <= 25:
            family = MBART25
        start = config.get("decoder_start_token") or "</s>"
        self.layout = replace(family.layout(tokens, languages, start), barred=())
        if config.get("add_source_eos"):
            self.layout = replace(self.layout, source_suffix=self.layout.source_suffix[1:])

    @cached_property
    def digest(self) -> str:
        """See `NmtModel`."""
        return digest_of(self._files, "CTranslate2\n")

    def subwords(self) -> Subwords:
        """See `NmtModel`."""
        place, names = self.tokenizer or self.path, _TOKENIZERS
        if place.is_file():
            place, names = place.parent, (place.name,)
        return open_subwords(place, names, self._sides)

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`; the files are copied."""
        for path in self._files:
            shutil.copyfile(path, out / path.name)
        try_out(out, self.layout)
        return _POSITIONS, _POSITIONS

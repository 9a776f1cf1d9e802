"""Folders that somebody converted for CTranslate2: taken as given, because the weights say nothing
about the original."""

import hashlib
import shutil
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import digest
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.nmt.families.languages import tags_by_language
from paraloom.models.nmt.families.subwords import Subwords, open_subwords
from paraloom.models.nmt.families.table import M2M100, MADLAD, MARIAN, MBART25, MBART50, NLLB
from paraloom.models.nmt.families.trial import try_out
from paraloom.models.structured import read_json

WEIGHTS = "model.bin"
_SETTINGS = "config.json"
_POSITIONS = 1024  # sentences that are too long for the model are rejected when it fails
_TOKENIZERS = ("sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "vocab.spm",
               "source.spm", "tokenizer.json", "bpecodes")  # fmt: skip


class ConvertedModel(NmtModel):
    """`model.bin`, `config.json`, vocabularies, and a tokeniser here or in `tokenizer`.

    The tags in the vocabulary show how sentences are written.
    """

    family = "CTranslate2, taken as given"
    tokenizer: Path | None = None

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path, self._wanted = path, languages
        self._files = [path / WEIGHTS, path / _SETTINGS, *sorted(path.glob("*_vocabulary.*"))]
        config = read_json(path / _SETTINGS, dict[str, Any], "settings of CTranslate2")
        if config.get("eos_token", "</s>") != "</s>":
            raise UserError(f"{path / _SETTINGS}: eos_token must be </s>")
        tokens = self._tokens()
        for family in (M2M100, NLLB, MBART50, MADLAD, MARIAN):
            if len(tags := tags_by_language(tokens, family.tags)) > 1:
                break
        if family is MBART50 and len(tags) <= 25:
            family = MBART25
        start = config.get("decoder_start_token") or "</s>"
        self.layout = replace(family.layout(tokens, languages, start), barred=())
        if config.get("add_source_eos"):
            self.layout = replace(self.layout, source_suffix=self.layout.source_suffix[1:])

    def _tokens(self) -> list[str]:
        """Source vocabulary by id."""
        for name in ("shared_vocabulary", "source_vocabulary"):
            if (path := self.path / f"{name}.json").is_file():
                return read_json(path, list[str], "a vocabulary of CTranslate2")
            if (path := self.path / f"{name}.txt").is_file():
                with in_one_line(f"{path}: not a vocabulary of CTranslate2"):
                    return path.read_text(encoding="utf-8").splitlines()
        raise UserError(f"{self.path}: the vocabulary is missing (shared_vocabulary.json, or "
                        "source_vocabulary.json and target_vocabulary.json)")  # fmt: skip

    @cached_property
    def digest(self) -> str:
        """See `NmtModel`."""
        total = hashlib.sha256(b"CTranslate2 1\n")
        for path in self._files:
            total.update(f"{path.name}\0{digest(path)}\n".encode())
        return total.hexdigest()

    def subwords(self) -> Subwords:
        """See `NmtModel`."""
        folder, names = self.tokenizer or self.path, _TOKENIZERS
        if folder.is_file():
            folder, names = folder.parent, (folder.name,)
        sides = (self._wanted.source or "en", self._wanted.target or "en")
        return open_subwords(folder, names, sides)

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`; the files are copied."""
        for path in self._files:
            shutil.copyfile(path, out / path.name)
        try_out(out, self.layout.source(["▁a"]))
        return _POSITIONS, _POSITIONS

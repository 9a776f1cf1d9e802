"""Models that a user has converted to CTranslate2's format."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError
from paraloom.models.nmt.convert import read_vocabulary
from paraloom.models.nmt.families.base import POSITIONS, Languages, NmtModel
from paraloom.models.nmt.families.languages import tags_by_language
from paraloom.models.nmt.families.subwords import Subwords, open_subwords
from paraloom.models.nmt.families.table import M2M100, MADLAD, MARIAN, MBART25, MBART50, NLLB
from paraloom.models.structured import read_json

_SETTINGS = "config.json"


class ConvertedModel(NmtModel):
    """A folder with `model.bin`, `config.json` and vocabularies. The tokeniser is in the folder or
    at the path `tokenizer`. The vocabulary's language tags determine the token layout."""

    family = "CTranslate2"
    files = (
        ("model.bin",),
        ("shared_vocabulary.*", "target_vocabulary.*"),
        ("sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "vocab.spm",
         "source.spm", "tokenizer.json", "bpecodes"),
    )  # fmt: skip
    tokenizer: Path | None = None

    def __init__(self, path: Path, languages: Languages) -> None:
        self.family = f"{self.family}, taken as given"
        self.path, self._sides = path, (languages.source or "en", languages.target or "en")
        self.read = [path / "model.bin", path / _SETTINGS, *sorted(path.glob("*_vocabulary.*"))]
        config = read_json(path / _SETTINGS, dict[str, Any], "settings of CTranslate2")
        if config.get("eos_token", "</s>") != "</s>":
            raise UserError(f"{path / _SETTINGS}: eos_token must be </s>")
        tokens = read_vocabulary(path, "source")
        for family in (M2M100, NLLB, MBART50, MADLAD, MARIAN):
            if len(tags := tags_by_language(tokens, family.tags)) > 1:
                break
        if family is MBART50 and len(tags) <= 25:
            family = MBART25
        start = config.get("decoder_start_token") or "</s>"
        self.layout = replace(family.layout(tokens, languages, start), barred=())
        if config.get("add_source_eos"):
            self.layout = replace(self.layout, source_suffix=self.layout.source_suffix[1:])

    def subwords(self) -> Subwords:
        """See `NmtModel`."""
        return open_subwords(self.tokenizer or self.path, self.files[-1], self._sides)

    def convert(self, out: Path) -> tuple[int, int]:
        """Copy the model, and check that it works."""
        for path in self.read:
            shutil.copyfile(path, out / path.name)
        self.try_out(out)
        # The model's real limit is unknown. If it is lower, decoding rejects the long sentences.
        return POSITIONS, POSITIONS

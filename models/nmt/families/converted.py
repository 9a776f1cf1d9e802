"""Folders that are in CTranslate2's format already, with the files of a tokeniser."""

from dataclasses import replace
from pathlib import Path

from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.nmt.convert import Conversion
from paraloom.models.nmt.families.base import Languages, NmtModel, TokenLayout
from paraloom.models.nmt.families.languages import tags_by_language
from paraloom.models.nmt.families.subwords import Subwords, open_subwords
from paraloom.models.nmt.families.table import M2M100, MARIAN, MBART25, MBART50, NLLB, T5
from paraloom.models.nmt.families.vocabulary import read_object
from paraloom.models.structured import read_json

WEIGHTS = "model.bin"
_TOKENIZERS = (*MARIAN.tokenizers, "sentencepiece.bpe.model", *T5.tokenizers)
_POSITIONS = 512  # the folder does not tell; Marian has the fewest


class ConvertedModel(NmtModel):
    """`model.bin`, CTranslate2's config.json and vocabulary, and the original's tokeniser.

    The folder names no family: tags in the vocabulary tell it, and `decoder_start_token`.
    """

    family = "CTranslate2"

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path = path
        shared = path / "shared_vocabulary.json"
        vocabulary = shared if shared.is_file() else path / "source_vocabulary.json"
        if not vocabulary.is_file():
            raise UserError(f"{shared}: missing from the model folder")
        tokens = read_json(vocabulary, list[str], "a list of tokens")
        self.layout = self._layout(tokens, languages)

    def _layout(self, tokens: list[str], languages: Languages) -> TokenLayout:
        config = read_object(self.path / "config.json")
        start = config.get("decoder_start_token")
        if "__en__" in tokens:
            return M2M100.layout(tokens, languages)
        if "eng_Latn" in tokens:
            return NLLB.layout(tokens, languages)
        if "en_XX" in tokens:
            return (MBART50 if start else MBART25).layout(tokens, languages)
        is_madlad = bool(tags_by_language(tokens, T5.tags))
        if "<extra_id_0>" in tokens and not is_madlad:
            raise UserError(
                f"{self.path}: a converted T5 does not say its prompt; give the original folder"
            )
        layout = (T5 if is_madlad else MARIAN).layout(tokens, languages, start)
        suffix = () if config.get("add_source_eos") else ("</s>",)
        return replace(layout, source_suffix=suffix, barred=())

    @property
    def digest(self) -> str:
        """See `NmtModel`."""
        return digest(self.path)

    def subwords(self) -> Subwords:
        """See `NmtModel`."""
        return open_subwords(self.path, _TOKENIZERS)

    def converted(self) -> Conversion:
        """The folder itself."""
        return Conversion(self.path, _POSITIONS, _POSITIONS)

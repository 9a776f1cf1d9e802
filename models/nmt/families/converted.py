"""Folders that are in CTranslate2's format already, with the files of a tokeniser."""

from pathlib import Path

from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.nmt.convert import Conversion
from paraloom.models.nmt.families.base import Languages, Layout, NmtModel
from paraloom.models.nmt.families.languages import find_tag
from paraloom.models.nmt.families.m2m100 import m2m100_layout, nllb_layout
from paraloom.models.nmt.families.marian import marian_tag
from paraloom.models.nmt.families.mbart import mbart25_layout, mbart50_layout
from paraloom.models.nmt.families.pretrained import read_object
from paraloom.models.nmt.families.subwords import SentencePieces, Subwords, TokenizerJson
from paraloom.models.nmt.families.t5 import t5_tags
from paraloom.models.structured import read_json

WEIGHTS = "model.bin"
_TOKENIZERS = ("sentencepiece.bpe.model", "spiece.model", "sentencepiece.model", "tokenizer.json")
_POSITIONS = 512  # the folder does not tell; Marian has the fewest


class ConvertedModel(NmtModel):
    """`model.bin`, CTranslate2's config.json and vocabulary, and the original's tokeniser.

    The folder names no family: tags in the vocabulary tell it, and `decoder_start_token`.
    """

    family = "CTranslate2"

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path = path
        self._config = read_object(path / "config.json")
        self._source_tokens = self._vocabulary("source")
        self._target_tokens = self._vocabulary("target")
        self._check_tokenizer()
        self.layout = self._layout(languages)

    @staticmethod
    def fits(path: Path) -> bool:
        """Whether a folder is in CTranslate2's format."""
        return (path / WEIGHTS).is_file()

    @property
    def digest(self) -> str:
        """See `NmtModel`."""
        return digest(self.path)

    def _vocabulary(self, side: str) -> list[str]:
        for name in ("shared", side):
            path = self.path / f"{name}_vocabulary.json"
            if path.is_file():
                return read_json(path, list[str], "a list of tokens")
            path = path.with_suffix(".txt")  # CTranslate2 before 3.0
            if path.is_file():
                try:
                    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
                except ValueError as error:
                    raise UserError(f"{path}: not UTF-8") from error
        raise UserError(f"{self.path}/shared_vocabulary.json: missing from the model folder")

    def _layout(self, languages: Languages) -> Layout:
        tokens = set(self._target_tokens)
        start = self._config.get("decoder_start_token")
        if "__en__" in tokens:
            return m2m100_layout(self._target_tokens, languages)
        if "eng_Latn" in tokens:
            return nllb_layout(self._target_tokens, languages)
        if "en_XX" in tokens:
            layout = mbart50_layout if start else mbart25_layout
            return layout(self._target_tokens, languages)
        eos = () if self._config.get("add_source_eos") else ("</s>",)
        if tags := t5_tags(self._target_tokens):
            tag = find_tag(languages.target_key, languages.target, tags)
            return Layout(source_prefix=(tag,), source_suffix=eos, decoder_start=start)
        if "<extra_id_0>" in tokens:
            raise UserError(
                f"{self.path}: a converted T5 does not say its prompt; give the original folder"
            )
        prefix = marian_tag(self._source_tokens, languages)
        return Layout(source_prefix=prefix, source_suffix=eos, decoder_start=start)

    def _check_tokenizer(self) -> None:
        pair = [(self.path / name).is_file() for name in ("source.spm", "target.spm")]
        if any(pair) and not all(pair):
            name = "target.spm" if pair[0] else "source.spm"
            raise UserError(f"{self.path / name}: missing from the model folder")
        if not any(pair) and not any((self.path / name).is_file() for name in _TOKENIZERS):
            raise UserError(
                f"{self.path}: the tokeniser is missing from the model folder; copy source.spm and "
                f"target.spm, or {', '.join(_TOKENIZERS[:-1])} or {_TOKENIZERS[-1]} into it"
            )

    def subwords(self) -> Subwords:
        """See `NmtModel`."""
        if (self.path / "source.spm").is_file():
            return SentencePieces(self.path / "source.spm", self.path / "target.spm")
        name = next(name for name in _TOKENIZERS if (self.path / name).is_file())
        if name == "tokenizer.json":
            return TokenizerJson(self.path / name)
        return SentencePieces(self.path / name)

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`; never called, since `converted` needs no conversion."""
        raise NotImplementedError

    def converted(self) -> Conversion:
        """The folder itself."""
        return Conversion(self.path, _POSITIONS, _POSITIONS)

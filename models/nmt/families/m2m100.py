"""M2M100 and NLLB: many languages to many, with one SentencePiece model and a tag for each."""

from typing import Any

from paraloom.models.errors import UserError
from paraloom.models.nmt.families.base import Languages, Layout
from paraloom.models.nmt.families.languages import find_tag, tags_by_language
from paraloom.models.nmt.families.pretrained import (
    FairseqVocabulary,
    PretrainedModel,
    read_object,
    read_vocabulary,
)


class M2M100Model(PretrainedModel):
    """`__cs__ X </s>`; a translation starts with `__en__`."""

    family = "M2M100"
    architecture = "M2M100ForConditionalGeneration"
    loader = "M2M100Loader"

    def check_tokenizer(self) -> None:
        """See `PretrainedModel`."""
        super().check_tokenizer()
        if not (self.path / "tokenizer.json").is_file() and not self._vocab.is_file():
            raise UserError(f"{self._vocab}: missing from the model folder")

    def read_vocabulary(self) -> list[str]:
        """See `PretrainedModel`. vocab.json has neither languages nor the tokens after them."""
        if tokens := self.tokenizer_json():
            return tokens
        from transformers.models.m2m_100 import tokenization_m2m_100

        codes = tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES
        settings = self.path / "tokenizer_config.json"
        given = read_object(settings).get("language_codes") if settings.is_file() else None
        name = str(given or "m2m100")
        if name not in codes:
            raise UserError(f"{settings}: language_codes {name!r} is unknown")
        return [*read_vocabulary(self._vocab), *(f"__{code}__" for code in codes[name])]

    def make_layout(self) -> Layout:
        """See `PretrainedModel`."""
        return m2m100_layout(self.tokens, self.languages)

    @property
    def _vocab(self) -> Any:
        return self.path / "vocab.json"


class NllbModel(FairseqVocabulary):
    """`ces_Latn X </s>`; a translation starts with `eng_Latn`.

    With `legacy_behaviour` the source's tag comes last, as the first release had it.
    """

    family = "NLLB"
    architecture = "M2M100ForConditionalGeneration"
    loader = "M2M100Loader"
    tokenization = "nllb.tokenization_nllb"

    def make_layout(self) -> Layout:
        """See `PretrainedModel`."""
        settings = self.path / "tokenizer_config.json"
        legacy = settings.is_file() and read_object(settings).get("legacy_behaviour") is True
        return nllb_layout(self.tokens, self.languages, legacy=legacy)


def m2m100_layout(tokens: list[str], languages: Languages) -> Layout:
    """The layout of M2M100, with the tags in its vocabulary."""
    tags = tags_by_language(tokens, r"__([a-z]{2,3})__")
    return Layout(
        source_prefix=(find_tag(languages.source_key, languages.source, tags),),
        source_suffix=("</s>",),
        target_prefix=(find_tag(languages.target_key, languages.target, tags),),
    )


def nllb_layout(tokens: list[str], languages: Languages, *, legacy: bool = False) -> Layout:
    """The layout of NLLB, with the tags in its vocabulary."""
    tags = tags_by_language(tokens, r"([a-z]{3}_[A-Z][a-z]{3})")
    source = find_tag(languages.source_key, languages.source, tags)
    return Layout(
        source_prefix=() if legacy else (source,),
        source_suffix=("</s>", source) if legacy else ("</s>",),
        target_prefix=(find_tag(languages.target_key, languages.target, tags),),
    )

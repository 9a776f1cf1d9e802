"""mBART: many languages, with one SentencePiece model and a tag for each."""

from typing import Any

from paraloom.models.nmt.families.base import Languages, Layout
from paraloom.models.nmt.families.languages import find_tag, tags_by_language
from paraloom.models.nmt.families.pretrained import FairseqVocabulary


class _MBartModel(FairseqVocabulary):
    architecture = "MBartForConditionalGeneration"
    loader = "MBartLoader"

    def make_spec(self, network: Any) -> Any:
        """See `PretrainedModel`. Transformers' own files leave these keys out."""
        network.config.normalize_before = network.config.normalize_embedding = True
        return super().make_spec(network)


class MBart25Model(_MBartModel):
    """`X </s> cs_CZ`; the decoder starts with `en_XX`."""

    family = "mBART-25"
    tokenization = "mbart.tokenization_mbart"

    def make_layout(self) -> Layout:
        """See `PretrainedModel`."""
        return mbart25_layout(self.tokens, self.languages)


class MBart50Model(_MBartModel):
    """`cs_CZ X </s>`; a translation starts with `en_XX`."""

    family = "mBART-50"
    tokenization = "mbart50.tokenization_mbart50"

    def make_layout(self) -> Layout:
        """See `PretrainedModel`."""
        return mbart50_layout(self.tokens, self.languages)


def mbart25_layout(tokens: list[str], languages: Languages) -> Layout:
    """The layout of mBART-25, with the tags in its vocabulary."""
    source, target = _tags(tokens, languages)
    return Layout(
        source_suffix=("</s>", source),
        decoder_start=None,
        target_prefix=(target,),
    )


def mbart50_layout(tokens: list[str], languages: Languages) -> Layout:
    """The layout of mBART-50, with the tags in its vocabulary."""
    source, target = _tags(tokens, languages)
    return Layout(
        source_prefix=(source,),
        source_suffix=("</s>",),
        target_prefix=(target,),
    )


def _tags(tokens: list[str], languages: Languages) -> tuple[str, str]:
    """The tags of both languages. A tag's region is that of the training data: `en_XX`."""
    tags = tags_by_language(tokens, r"([a-z]{2,3})_[A-Z]{2}")
    return (
        find_tag(languages.source_key, languages.source, tags),
        find_tag(languages.target_key, languages.target, tags),
    )

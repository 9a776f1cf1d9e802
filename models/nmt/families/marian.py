"""Marian: OPUS-MT and its kin, with one SentencePiece model for each language.

Both languages have one vocabulary or, with `separate_vocabs`, one each.
"""

from functools import cached_property
from typing import Any

from paraloom.models.errors import UserError
from paraloom.models.nmt.families.base import Languages, Layout
from paraloom.models.nmt.families.languages import find_tag, tags_by_language
from paraloom.models.nmt.families.pretrained import (
    PretrainedModel,
    read_object,
    read_vocabulary,
)
from paraloom.models.nmt.families.subwords import SentencePieces, Subwords

_FILES = ("source.spm", "target.spm", "vocab.json")
_TARGET, _TARGET_SIZE = "target_vocab.json", "decoder_vocab_size"
_NEVER = -1e4  # a logit of no probability, in float16 too


class MarianModel(PretrainedModel):
    """`[>>xx<<] X </s>`; models with several target languages want the tag of one.

    The decoder starts with `<pad>`, which is never generated.
    """

    family = "Marian"
    architecture = "MarianMTModel"
    loader = "BartLoader"

    def check_tokenizer(self) -> None:
        """See `PretrainedModel`."""
        for name in (*_FILES, *((_TARGET,) if self._has_two else ())):
            if not (self.path / name).is_file():
                raise UserError(f"{self.path / name}: missing from the model folder")

    def read_vocabulary(self) -> list[str]:
        """See `PretrainedModel`."""
        return read_vocabulary(self.path / "vocab.json")

    @cached_property
    def _has_two(self) -> bool:
        """Whether there are two vocabularies."""
        settings = self.path / "tokenizer_config.json"
        return settings.is_file() and read_object(settings).get("separate_vocabs") is True

    @cached_property
    def target_tokens(self) -> list[str]:
        """See `PretrainedModel`."""
        if not self._has_two:
            return self.tokens
        key = "vocab_size" if self.config.get("decoder_vocab_size") is None else _TARGET_SIZE
        return self.filled_up(read_vocabulary(self.path / _TARGET), key)

    def make_layout(self) -> Layout:
        """See `PretrainedModel`."""
        return Layout(
            source_prefix=marian_tag(self.tokens, self.languages),
            source_suffix=("</s>",),
            decoder_start=self.token("decoder_start_token_id"),
            barred=("<pad>",),
        )

    def subwords(self) -> Subwords:
        """See `NmtModel`."""
        return SentencePieces(self.path / "source.spm", self.path / "target.spm")

    def make_spec(self, network: Any) -> Any:
        """See `PretrainedModel`.

        CTranslate2's own converter drops `<pad>`, and starts with a zero vector. That is right
        until a model is trained further in Transformers, so here it stays and gets no probability.
        """
        network.config.normalize_before = network.config.normalize_embedding = False
        spec = super().make_spec(network)
        bias = network.final_logits_bias[0].clone()
        bias[self.target_tokens.index("<pad>")] = _NEVER
        spec.decoder.projection.bias = bias
        return spec


def marian_tag(tokens: list[str], languages: Languages) -> tuple[str, ...]:
    """The tag of the target language; none if the model has only one."""
    tags = tags_by_language(tokens, r">>(.+)<<")
    return (find_tag(languages.target_key, languages.target, tags),) if tags else ()

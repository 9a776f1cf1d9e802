"""Marian: OPUS-MT and its kin, with one SentencePiece model for each language."""

import re
from typing import Any

from models.errors import UserError
from models.nmt.families.base import Languages, Layout
from models.nmt.families.languages import find_tag
from models.nmt.families.pretrained import PretrainedModel, read_json
from models.nmt.families.subwords import SentencePieces, Subwords

_FILES = ("source.spm", "target.spm", "vocab.json")
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
        for name in _FILES:
            if not (self.path / name).is_file():
                raise UserError(f"{self.path / name}: missing from the model folder")
        if (self.path / "target_vocab.json").is_file():
            raise UserError(f"{self.path}/target_vocab.json: two vocabularies are not supported")

    def read_vocabulary(self) -> list[str]:
        """See `PretrainedModel`."""
        by_token = read_json(self.path / "vocab.json")
        if sorted(by_token.values()) != list(range(len(by_token))):
            raise UserError(f"{self.path}/vocab.json: must give each token an id of its own")
        return sorted(by_token, key=by_token.__getitem__)

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
        bias[self.tokens.index("<pad>")] = _NEVER
        spec.decoder.projection.bias = bias
        return spec


def marian_tag(tokens: list[str], languages: Languages) -> tuple[str, ...]:
    """The tag of the target language; none if the model has only one."""
    found = (re.fullmatch(r">>(.+)<<", token) for token in tokens)
    tags = {match[1]: match[0] for match in found if match}
    return (find_tag(languages.target_key, languages.target, tags),) if tags else ()

"""T5 with a prompt for each pair of languages, and MADLAD with a tag for the target."""

import re
from typing import Any

from paraloom.models.nmt.families.base import Layout
from paraloom.models.nmt.families.languages import find_tag, tags_by_language
from paraloom.models.nmt.families.pretrained import PretrainedModel


class T5Model(PretrainedModel):
    """T5: `translate English to German: X </s>`; MADLAD: `<2en> X </s>`.

    The prompts are those of `task_specific_params` in config.json; without any, there is no prompt.
    """

    family = "T5"
    architecture = "T5ForConditionalGeneration"
    loader = "T5Loader"
    sentencepiece = ("spiece.model", "sentencepiece.model")

    def read_vocabulary(self) -> list[str]:
        """See `PretrainedModel`."""
        found = self.tokenizer_json()
        if found:
            return found
        pieces = self.pieces()
        extra = [token for token in pieces if token.startswith("<extra_id_")]
        missing = 0 if extra else max(min(self.number("vocab_size") - len(pieces), 100), 0)
        return [*pieces, *(f"<extra_id_{number}>" for number in range(missing - 1, -1, -1))]

    def make_layout(self) -> Layout:
        """See `PretrainedModel`."""
        tags = t5_tags(self.tokens)
        tag = (find_tag(self.languages.target_key, self.languages.target, tags),) if tags else ()
        return Layout(
            source_prefix=tag,
            source_suffix=("</s>",),
            decoder_start=self.token("decoder_start_token_id"),
            prompt="" if tags else self._prompt(),
        )

    def _prompt(self) -> str:
        tasks = self.config.get("task_specific_params")
        tasks = tasks if isinstance(tasks, dict) else {}
        prompts: dict[str, dict[str, str]] = {}
        for name, task in tasks.items():
            match = re.fullmatch(r"translation_(\w+?)_to_(\w+)", name)
            if match and isinstance(task, dict) and isinstance(task.get("prefix"), str):
                prompts.setdefault(match[1], {})[match[2]] = task["prefix"]
        if not prompts:
            return ""
        sources = {code: code for code in prompts}
        source = find_tag(self.languages.source_key, self.languages.source, sources)
        return find_tag(self.languages.target_key, self.languages.target, prompts[source])

    def make_spec(self, network: Any) -> Any:
        """See `PretrainedModel`.

        transformers 5 says of every T5 that its embeddings are tied; the converter would then scale
        the logits of T5 1.1 and MADLAD, which do not.
        """
        config = network.config
        config.tie_word_embeddings = getattr(config, "scale_decoder_outputs", True)
        if network.lm_head.weight.shape[0] != len(self.tokens):
            raise ValueError("the output layer has another size than the vocabulary")
        return super().make_spec(network)


def t5_tags(tokens: list[str]) -> dict[str, str]:
    """MADLAD's tags by language; empty for other models."""
    return tags_by_language(tokens, r"<2([a-z]{2,3}(?:_\w+)?)>")

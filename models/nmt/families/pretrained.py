"""Models in Hugging Face's format: config.json, weights, and the files of a tokeniser."""

from __future__ import annotations

import hashlib
import logging
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraloom.models import hub
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import digest
from paraloom.models.memory import bounded_by_files
from paraloom.models.nmt.families.base import Languages, NmtModel, TokenLayout
from paraloom.models.nmt.families.languages import find_tag
from paraloom.models.nmt.families.subwords import Subwords, open_subwords
from paraloom.models.nmt.families.table import MARIAN, T5, find_family
from paraloom.models.nmt.families.vocabulary import read_object, read_tokens, read_vocabulary
from paraloom.models.nmt.weights import check_finite, loading
from paraloom.models.structured import check_sizes

if TYPE_CHECKING:
    from paraloom.models.nmt.engines.transformers import TorchModel

CONVERSION = 1
"""Bump when `convert` writes other files for the same model."""
TOLERANCE = 1e-3
"""Largest difference of a log probability per subword between torch and a converted model."""
_READ = {".json", ".bin", ".safetensors", ".model", ".spm"}  # what a conversion reads
_UNLIMITED = 16_000  # positions of a model with relative positions
_MOST_UNUSED = 1 << 16  # entries of a vocabulary without a token
# Transformers builds the network by these numbers before it looks at the weights.
_LARGEST = {
    r".*layers": 1_000,
    r"d_model|hidden_size|n_positions|max_position_embeddings": 1 << 14,
    r"d_kv|d_ff|.*_dim|.*heads|.*_buckets": 1 << 16,
}
_NEVER = -1e4  # a logit of no probability, in float16 too


class PretrainedModel(NmtModel):
    """A model of Transformers, of a family that `table` has.

    Attributes:
        tokens: the encoder's vocabulary by id, as long as the embeddings.
        target_tokens: the decoder's; Marian's, with `separate_vocabs`, may be another.
    """

    reference = "transformers"

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path = path
        self._settings = path / "config.json"
        self._config = config = read_object(self._settings)
        check_sizes(self._settings, config, _LARGEST)
        hub.check_settings(self._settings, config)
        for index in path.glob("*.index.json"):
            hub.check_index(index)
        file = path / "tokenizer_config.json"
        tokenizer = read_object(file) if file.is_file() else {}
        self._family = find_family(path, config, tokenizer)
        self.family = self._family.name
        read = read_tokens(path, self._family, tokenizer, self._number("vocab_size"))
        self.tokens = self.target_tokens = self._filled_up(read, "vocab_size")
        if self._family is MARIAN and tokenizer.get("separate_vocabs") is True:
            one = config.get("decoder_vocab_size") is None
            size = "vocab_size" if one else "decoder_vocab_size"
            self.target_tokens = self._filled_up(read_vocabulary(path / "target_vocab.json"), size)
        self.layout = self._layout(languages)
        self._check_tokens()

    def _layout(self, languages: Languages) -> TokenLayout:
        start = None if self._family.forced else self._token("decoder_start_token_id")
        layout = self._family.layout(self.tokens, languages, start)
        if self._family is not T5 or layout.source_prefix:
            return layout
        return replace(layout, prompt=_prompt(self._config, languages))

    def _check_tokens(self) -> None:
        """Check that the vocabularies have the tokens that the model is given, or must not give."""
        layout = self.layout
        start = [layout.decoder_start] if layout.decoder_start else []
        source = [*layout.source_prefix, *layout.source_suffix]
        target = [*start, *layout.target_prefix, *layout.barred]
        for tokens, used in ((self.tokens, source), (self.target_tokens, target)):
            missing = {"<unk>", "</s>", *used}.difference(tokens)
            if missing:
                raise UserError(f"{self.path}: the tokeniser has no {min(missing)}")

    def _number(self, key: str) -> int:
        """A whole number in config.json."""
        value = self._config.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(f"{self._settings}: {key} must be a whole number")
        return value

    def _filled_up(self, tokens: list[str], key: str) -> list[str]:
        """A vocabulary as long as its embeddings, which a key of config.json tells."""
        size = self._number(key)
        if size > len(tokens) + _MOST_UNUSED:
            raise UserError(
                f"{self._settings}: {key} is {size:,}, but the tokeniser has {len(tokens):,} tokens"
            )
        return tokens[:size] + [f"<unused_{number}>" for number in range(size - len(tokens))]

    def _token(self, key: str) -> str:
        """The token of the target that a key of config.json names by id."""
        number = self._number(key)
        if not 0 <= number < len(self.target_tokens):
            raise UserError(f"{self._settings}: {key} is not in the vocabulary")
        return self.target_tokens[number]

    @property
    def positions(self) -> int:
        """Most tokens of a source, and of a target, tags and ends of sentence included."""
        value = self._config.get("max_position_embeddings")
        return value if isinstance(value, int) and value > 0 else _UNLIMITED

    @cached_property
    def digest(self) -> str:
        """See `NmtModel`."""
        total = hashlib.sha256(f"{CONVERSION}\0{self.family}\n".encode())
        for path in sorted(self.path.iterdir()):
            if path.is_file() and path.suffix in _READ:
                total.update(f"{path.name}\0{digest(path)}\n".encode())
        return total.hexdigest()

    def subwords(self) -> Subwords:
        """See `NmtModel`."""
        return open_subwords(self.path, self._family.tokenizers)

    def torch_model(self) -> TorchModel:
        """Load the weights in torch, in float32."""
        import torch
        import transformers

        from paraloom.models.nmt.engines.transformers import TorchModel

        kind = getattr(transformers, self._family.architecture)
        with _quiet(), in_one_line(str(self._settings)):
            config = kind.config_class.from_dict(self._config)
        weights = loading(self.path, self.path / "pytorch_model.bin")
        with _quiet(), weights, bounded_by_files(self.path):
            network, report = kind.from_pretrained(
                str(self.path),
                config=config,
                dtype=torch.float32,
                local_files_only=True,
                trust_remote_code=False,
                weights_only=True,
                output_loading_info=True,
            )
        missing = sorted(report["missing_keys"])
        if missing or report.get("mismatched_keys"):
            raise UserError(
                f"{self.path}: the weights do not fit config.json "
                f"({missing[0] if missing else 'their sizes differ'})"
            )
        check_finite(network, self.path)
        return TorchModel(network, self.tokens, self.target_tokens, self.layout)

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`. The result is compared with torch before it is used."""
        import torch

        model = self.torch_model()
        with torch.no_grad():
            spec = self._spec(model.network)
        spec.config.bos_token = self.layout.decoder_start or "<s>"
        spec.config.eos_token = "</s>"
        spec.config.unk_token = "<unk>"
        spec.config.decoder_start_token = self.layout.decoder_start
        spec.register_source_vocabulary(self.tokens)
        spec.register_target_vocabulary(self.target_tokens)
        spec.validate()
        spec.optimize(quantization=None)
        spec.save(str(out))
        self._compare(model, out)
        return self.positions, self.positions

    def _spec(self, network: Any) -> Any:
        """The network as CTranslate2's converters describe it."""
        from ctranslate2.converters import transformers as converters

        for key, value in self._family.settings.items():
            setattr(network.config, key, value)
        if self._family is T5:
            # transformers 5 says of every T5 that its embeddings are tied; the converter would then
            # scale the logits of T5 1.1 and MADLAD, which do not.
            scaled = getattr(network.config, "scale_decoder_outputs", True)
            network.config.tie_word_embeddings = scaled
            if network.lm_head.weight.shape[0] != len(self.tokens):
                raise ValueError("the output layer has another size than the vocabulary")
        spec = getattr(converters, self._family.loader)().get_model_spec(network)
        if self._family is MARIAN:
            # CTranslate2's own converter drops `<pad>`, and starts with a zero vector. That is
            # right until a model is trained further in Transformers, so here it stays and gets no
            # probability.
            bias = network.final_logits_bias[0].clone()
            bias[self.target_tokens.index("<pad>")] = _NEVER
            spec.decoder.projection.bias = bias
        return spec

    def _compare(self, model: TorchModel, out: Path) -> None:
        """Compare log probabilities of random sentences; conversions can go wrong silently."""
        import ctranslate2

        lengths = (3, 5, 8, 13, 21, 34)
        sources = _random_sentences(self.tokens, lengths)
        targets = _random_sentences(self.target_tokens, lengths)[::-1]
        expected = model.log_probs(sources, targets)
        prefix = list(self.layout.target_prefix)
        converted = ctranslate2.Translator(str(out), device="cpu", compute_type="float32")
        found = converted.score_batch(
            [self.layout.source(source) for source in sources],
            [prefix + target for target in targets],
            max_input_length=0,
        )
        apart = [
            abs(sum(result.log_probs[-len(truth) :]) - sum(truth)) / len(truth)
            for result, truth in zip(found, expected, strict=True)
        ]
        if not all(difference <= TOLERANCE for difference in apart):  # NaN too
            raise UserError(
                f"{self.path}: converted to CTranslate2 it gives other probabilities than in torch "
                f"(by {max(apart):.3g} per subword); choose engine transformers"
            )


def _prompt(config: dict[str, Any], languages: Languages) -> str:
    """T5's prompt for the languages, of `task_specific_params`; empty if there are none."""
    tasks = config.get("task_specific_params")
    prompts: dict[str, dict[str, str]] = {}
    for name, task in tasks.items() if isinstance(tasks, dict) else ():
        match = re.fullmatch(r"translation_(\w+?)_to_(\w+)", name)
        if match and isinstance(task, dict) and isinstance(task.get("prefix"), str):
            prompts.setdefault(match[1], {})[match[2]] = task["prefix"]
    if not prompts:
        return ""
    source = find_tag(languages.source_key, languages.source, {code: code for code in prompts})
    return find_tag(languages.target_key, languages.target, prompts[source])


def _random_sentences(tokens: Sequence[str], lengths: Sequence[int]) -> list[list[str]]:
    rng = random.Random(0)
    words = [token for token in tokens if token[:1] not in "<>_" and len(token) > 1] or tokens
    return [rng.choices(words, k=length) for length in lengths]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Transformers' warnings and progress bars."""
    from transformers import utils

    theirs: Any = utils.logging
    level, bars = theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    theirs.set_verbosity(logging.CRITICAL)
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        theirs.set_verbosity(level)
        if bars:
            theirs.enable_progress_bar()

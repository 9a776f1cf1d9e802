"""Models in Hugging Face's format: config.json, weights and tokeniser files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paraloom.models import hub
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.memory import bounded_by_files
from paraloom.models.nmt.families.base import Languages, NmtModel, TokenLayout
from paraloom.models.nmt.families.languages import tags_by_language
from paraloom.models.nmt.families.subwords import filled_up
from paraloom.models.nmt.families.table import (
    ALL_T5,
    MADLAD,
    MARIAN,
    MT5,
    T5,
    find_family,
    prompt,
    read_tokens,
    read_vocabulary,
)
from paraloom.models.structured import check_sizes, read_json

CONVERSION = 1  # increase it when `convert` writes different files for the same model
TOLERANCE = 1e-3  # largest accepted difference from torch in log p per subword
_READ = {".json", ".bin", ".safetensors", ".model", ".spm"}  # file types that conversion reads
_WEIGHTS = (".safetensors", ".bin")
_UNLIMITED = 16_000  # number of positions for models with relative positions
# Larger settings are refused. Transformers would build a huge network before it reads the weights.
_LARGEST = {
    r".*layers": 1_000,
    r"d_model|hidden_size|n_positions|max_position_embeddings": 1 << 14,
    r"d_kv|d_ff|.*_dim|.*heads|.*_buckets": 1 << 16,
}
_NEVER = -1e4  # a logit that gives probability 0, within float16's range


class PretrainedModel(NmtModel):
    """A model in the format of the library Transformers, of a family in `table`."""

    family = "Hugging Face"
    files: tuple[tuple[str, ...], ...] = (
        ("config.json",),
        ("*.safetensors", "pytorch_model*.bin"),
        ("source.spm", "sentencepiece.bpe.model", "spiece.model", "tokenizer.json"),
    )

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path = path
        settings = path / "config.json"
        self._config = config = read_json(settings, dict[str, Any], "a JSON object")
        check_sizes(settings, config, _LARGEST)
        hub.check_settings(settings, config)
        for index in path.glob("*.index.json"):
            hub.check_index(index)
        file = path / "tokenizer_config.json"
        tokenizer = read_json(file, dict[str, Any], "a JSON object") if file.is_file() else {}
        self._family = find_family(path, config, tokenizer)
        self.files = (*self.files[:-1], self._family.tokenizers)
        self.read = [f for f in sorted(path.iterdir()) if f.suffix in _READ and f.is_file()]
        with in_one_line(f"{settings}: does not fit the tokeniser"):
            size = config["vocab_size"]
            self.tokens = filled_up(read_tokens(path, self._family, tokenizer, size), size)
            self.target_tokens = self.tokens
            if self._family is MADLAD and not tags_by_language(self.tokens, MADLAD.tags):
                self._family = T5
            if self._family is MARIAN and tokenizer.get("separate_vocabs") is True:
                size = config.get("decoder_vocab_size") or size
                target = read_vocabulary(path / "target_vocab.json")
                self.target_tokens = filled_up(target, size)
            self.family = self._family.name
            self.version = f"{CONVERSION}\0{self.family}\n"
            self.layout = self._layout(languages)
        if self._family is MARIAN and not self.layout.source_prefix:
            named = (str(tokenizer.get(f"{side}_lang") or "") for side in ("source", "target"))
            self.languages = next(named), next(named)
        if not any(file.suffix in _WEIGHTS for file in path.iterdir()):
            raise UserError(f"{path}: its weights are missing (model.safetensors)")

    def _layout(self, languages: Languages) -> TokenLayout:
        start = None
        if not self._family.forced:
            start = self.target_tokens[self._config["decoder_start_token_id"]]
        layout = self._family.layout(self.tokens, languages, start)
        if self._family in (T5, MT5):
            (pieces,) = self.subwords().encode([prompt(self._config, languages)])
            return replace(layout, source_prefix=tuple(pieces))
        return layout

    def network(self) -> Any:
        """Load the weights in torch, as float32."""
        import torch
        import transformers

        logging: Any = transformers.utils.logging
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        kind = getattr(transformers, self._family.architecture)
        refused = "the weights cannot be read: they are damaged, or contain code or objects"
        with in_one_line(f"{self.path}: {refused}"), bounded_by_files(self.path):
            network, report = kind.from_pretrained(
                str(self.path),
                config=kind.config_class.from_dict(self._config),
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
        return network.eval()

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`. Compare the conversion with torch."""
        import torch

        network = self.network()
        with torch.inference_mode():
            spec = self._spec(network)
            spec.config.bos_token = self.layout.decoder_start or "<s>"
            spec.config.eos_token = "</s>"
            spec.config.unk_token = "<unk>"
            spec.config.decoder_start_token = self.layout.decoder_start
            spec.register_source_vocabulary(self.tokens)
            spec.register_target_vocabulary(self.target_tokens)
            spec.validate()
            spec.optimize(quantization=None)
            spec.save(str(out))
            self._compare(network, out)
        positions = self._config.get("max_position_embeddings") or _UNLIMITED
        return positions, positions

    def _spec(self, network: Any) -> Any:
        from ctranslate2.converters import transformers as converters

        for key, value in self._family.settings.items():
            setattr(network.config, key, value)
        if self._family in ALL_T5:
            # Transformers 5 reports tied embeddings for every T5 model, and the converter scales
            # logits if embeddings are tied. Logits of T5 1.1, mT5 and MADLAD must not be scaled.
            scaled = getattr(network.config, "scale_decoder_outputs", self._family is not MT5)
            network.config.tie_word_embeddings = scaled
            if network.lm_head.weight.shape[0] != len(self.tokens):
                raise ValueError("the output layer has another size than the vocabulary")
        spec = getattr(converters, self._family.loader)().get_model_spec(network)
        if self._family is MARIAN:
            # CTranslate2's Marian loader starts the decoder with a zero vector instead of `<pad>`.
            # This is wrong for models fine-tuned in Transformers, so MARIAN names BART's loader. As
            # in Transformers, `<pad>` starts the decoder, but is never an output.
            bias = network.final_logits_bias[0].clone()
            bias[self.target_tokens.index("<pad>")] = _NEVER
            spec.decoder.projection.bias = bias
        return spec

    def _compare(self, network: Any, out: Path) -> None:
        """Raise a UserError if torch and the conversion compute different log probabilities."""
        import ctranslate2

        rng = random.Random(0)
        converted = ctranslate2.Translator(str(out), device="cpu", compute_type="float32")
        for length in (3, 5, 8, 13, 21, 34):
            source, target = (
                rng.choices([token for token in tokens if token[:1] not in "<>_"], k=length)
                for tokens in (self.tokens, self.target_tokens)
            )
            (found,) = converted.score_batch(
                [self.layout.source(source)],
                [[*self.layout.target_prefix, *target]],
                max_input_length=0,
            )
            truth = self._log_probs(network, source, target)
            apart = abs(sum(found.log_probs[-len(truth) :]) - sum(truth)) / len(truth)
            if not apart <= TOLERANCE:  # NaN, too
                raise UserError(
                    f"{self.path}: cannot be used: after conversion to CTranslate2, log p differs "
                    f"from torch's by {apart:.3g} per subword"
                )

    def _log_probs(self, network: Any, source: Sequence[str], target: Sequence[str]) -> list[float]:
        import torch

        layout, sides = self.layout, (self.tokens, self.target_tokens)
        source_ids, ids = ({token: number for number, token in enumerate(of)} for of in sides)
        unknown = source_ids["<unk>"]
        start = [layout.decoder_start] if layout.decoder_start else []
        given = [ids[token] for token in (*start, *layout.target_prefix, *target)]
        wanted = torch.tensor([ids[token] for token in (*target, "</s>")])
        logits = network(
            input_ids=torch.tensor([[source_ids.get(of, unknown) for of in layout.source(source)]]),
            decoder_input_ids=torch.tensor([given]),
        ).logits[0]
        logits[:, [ids[token] for token in layout.barred]] = -torch.inf
        found = logits.log_softmax(-1)[-len(wanted) :].gather(1, wanted[:, None])[:, 0]
        return [float(value) for value in found]

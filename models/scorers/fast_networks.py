"""Faster models of sentence-transformers: CTranslate2 computes BERT-like networks on a CPU."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ctranslate2
import numpy as np
import torch
from ctranslate2.converters import transformers as converters
from transformers.modeling_outputs import BaseModelOutputWithPooling

from paraloom.models.cpu import allow_avx512
from paraloom.models.errors import UserError, in_one_line, one_line

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

SAME = 1e-5  # largest accepted difference from torch's values
_LOADERS = {
    **{name: name for name in ("BertConfig", "DistilBertConfig", "RobertaConfig")},
    **dict.fromkeys(("CamembertConfig", "XLMRobertaConfig"), "RobertaConfig"),
}
"""Name of CTranslate2's loader for each class of configurations."""

SENTENCES = (
    "A dog.",
    "A dog runs on the beach, and two children in red jackets run after it.",
    "Dva muži sedí na lavičce (1 250 m n. m.) …",
    "犬が浜辺を走っている。",
    "What did she say? Nobody knows; it was 5 o'clock in the morning. " * 12,
)
"""Sentences on which results of CTranslate2 and torch are compared."""


class FastNetwork(torch.nn.Module):
    """Computes the transformer layers of a network with CTranslate2. Each thread computes
    whole batches, so values do not depend on `parallel`, the number of threads."""

    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, network: Any, compute_type: str) -> None:
        super().__init__()
        self.config, self.pooler = network.config, getattr(network, "pooler", None)
        self.parallel = torch.get_num_threads()
        if not hasattr(self.config, "position_embedding_type"):  # Transformers 5 lacks it
            self.config.position_embedding_type = "absolute"
        loader = converters._MODEL_LOADERS[_LOADERS[type(network.config).__name__]]
        spec = loader.get_model_spec(network)
        spec.register_vocabulary([str(token) for token in range(network.config.vocab_size)])
        spec.config.unk_token = "0"
        spec.config.layer_norm_epsilon = getattr(network.config, "layer_norm_eps", 1e-12)
        spec.validate()
        spec.optimize()
        allow_avx512()
        with tempfile.TemporaryDirectory() as folder:  # CTranslate2 loads encoders only from files
            spec.save(folder)
            self._encoder = ctranslate2.Encoder(
                folder, compute_type=compute_type, inter_threads=self.parallel, intra_threads=1
            )
        torch.set_num_threads(self.parallel)  # CTranslate2 has set the number to 1

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        **_: Any,
    ) -> BaseModelOutputWithPooling:
        """Compute the output for int64 ids [n, tokens], padded on the right."""
        ids, lengths = (
            ctranslate2.StorageView.from_array(of.to(torch.int32).numpy())
            for of in (input_ids, attention_mask.sum(1))
        )
        second = token_type_ids is not None and bool(token_type_ids.any())
        kinds = token_type_ids.tolist() if second and token_type_ids is not None else None
        found = self._encoder.forward_batch(ids, lengths, kinds).last_hidden_state
        hidden: Any = torch.from_numpy(np.array(found))
        pooled = self.pooler(hidden) if self.pooler else None
        return BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=pooled)


def accelerate(
    model: SentenceTransformer | CrossEncoder, values: Callable[[], np.ndarray], compute_type: str
) -> None:
    """Let CTranslate2 compute a model's network on a CPU, in int8 if `compute_type` is int8.

    `values` computes the model's results for `SENTENCES`. The model is left unchanged if
    CTranslate2 fails, or if float32 results of CTranslate2 and torch differ by more than `SAME`.

    Raises:
        UserError: `compute_type` is int8, and CTranslate2 cannot compute this network.
    """
    whole = getattr(model[0], "model", None)
    if model.device.type != "cpu" or whole is None:
        return
    base = getattr(whole, "base_model", whole)

    def use(network: Any) -> None:
        if base is whole:
            model[0].model = network
        else:
            setattr(whole, whole.base_model_prefix, network)

    try:
        with in_one_line("the model fails"):  # a tokenizer's Rust panic is not an Exception
            expected = values()
        use(FastNetwork(base, "float32"))
        difference = np.abs(values() - expected).max()
        if not difference <= SAME:
            raise ValueError(f"values differ by {difference:.1g}")
        if compute_type == "int8":
            use(FastNetwork(base, "int8"))
    except Exception as error:
        use(base)
        reason = f"{type(base).__name__}: CTranslate2 cannot compute this network"
        if compute_type == "int8":
            raise UserError(
                f"{reason}, so score.compute_type cannot be int8; set score.compute_type to auto"
            ) from error
        logging.getLogger(__name__).info("%s (%s); torch computes it", reason, one_line(error))


def parallel(model: Any) -> int:
    """Return the number of batches that CTranslate2 computes in parallel, or 0 if torch computes
    the model."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    return next((of.parallel for of in modules if isinstance(of, FastNetwork)), 0)

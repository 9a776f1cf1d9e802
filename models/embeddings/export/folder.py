"""Weights, tokeniser and modules of an encoder in sentence-transformers' folder format."""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from paraloom.models.embeddings.encoders.average import Average
from paraloom.models.embeddings.vocabulary import Tags
from paraloom.models.errors import in_one_line

WEIGHTS = "model.safetensors"
_OURS = "paraloom.models.embeddings.sentence_transformer.MosesEncoder"
_THEIRS = "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding"
_OUR_NAME, _THEIR_NAME = "input.table.weight", "embeddings"


def is_static_embedding(encoder: nn.Module, *, tags: Tags) -> bool:
    """Whether the library's module StaticEmbedding computes the same as an encoder."""
    return type(encoder) is Average and encoder.input.kind == "words" and not tags


def write(folder: Path, weights: Mapping[str, Tensor], tokenizer: Tokenizer | None) -> None:
    """Write one module into an existing folder: the library's if a tokeniser is given, otherwise
    Paraloom's. `weights` have Paraloom's names."""
    if tokenizer is not None:
        tokenizer.save(str(folder / "tokenizer.json"))
        weights = {_THEIR_NAME: weights[_OUR_NAME]}
    save_file(dict(weights), folder / WEIGHTS)
    kind = _OURS if tokenizer is None else _THEIRS
    modules = [{"idx": 0, "name": "0", "path": "", "type": kind}]
    config = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine", "prompts": {}}
    for name, of in (("modules", modules), ("config_sentence_transformers", config)):
        (folder / f"{name}.json").write_text(json.dumps(of, indent=1) + "\n")


def read_weights(folder: Path, *, native: bool) -> dict[str, Tensor]:
    """Read weights under Paraloom's names; `native`: the folder has the library's module."""
    found = read_tensors(folder / WEIGHTS)
    if not native:
        return found
    names = {_THEIR_NAME: _OUR_NAME, "emb_layer.weight": _OUR_NAME}
    if (folder / "1_LSTM").exists():  # format 1 stored LSTMs as three library modules
        found |= read_tensors(folder / "1_LSTM" / WEIGHTS)
        for number, suffix in enumerate(("", "_reverse")):
            for gate in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
                names[f"encoder.{gate}{suffix}"] = f"directions.{number}.weights.{gate}"
    return {names.get(name, name): tensor for name, tensor in found.items()}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file of weights."""
    with in_one_line(f"{path}: cannot be read as safetensors"):
        return load_file(path)

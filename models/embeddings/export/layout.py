"""The modules of sentence-transformers that compute what an encoder computes, and their files."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import nn

from paraloom.models.embeddings.encoders.average import Average
from paraloom.models.embeddings.encoders.lstm import LSTM
from paraloom.models.embeddings.encoders.recurrent import Recurrent
from paraloom.models.embeddings.export.errors import InexpressibleError
from paraloom.models.embeddings.vocabulary import Tags

OUR_MODULE = "paraloom.models.embeddings.sentence_transformer.MosesEncoder"
_THEIRS = "sentence_transformers.sentence_transformer.modules"
_WEIGHTS = "model.safetensors"
_MATRIX = "input.table.weight"
_MISSING = {
    "Sum": "sums of vectors",
    "Mixed": "joined encoders",
    "Context": "encoders with decoders",
    "GRU": "GRUs",
    "NormalisedGRU": "GRUs",
    "GRAN": "GRANs",
}


class Layout(NamedTuple):
    """The files of an encoder, for sentence-transformers and for `load_encoder`."""

    modules: Mapping[str, str]  # the class of each module by its folder, in order
    weights: Mapping[str, Mapping[str, str]]  # files: the names of weights there, and ours
    settings: Mapping[str, Mapping[str, Any]]  # other files


def our_layout(encoder: nn.Module) -> Layout:
    """One module of ours, in one file of weights; for any encoder."""
    names = {name: name for name in encoder.state_dict()}
    return Layout({"": OUR_MODULE}, {_WEIGHTS: names}, {})


def native_layout(encoder: nn.Module, *, tags: Tags) -> Layout:
    """Modules of sentence-transformers for this encoder."""
    if isinstance(encoder, Average):
        if tags:
            raise InexpressibleError("averages with tags")
        modules = {"": f"{_THEIRS}.static_embedding.StaticEmbedding"}
        return Layout(modules, {_WEIGHTS: {"embeddings": _MATRIX}}, {})
    if isinstance(encoder, Recurrent):
        return _recurrent(encoder)
    raise _missing(encoder)


def _recurrent(encoder: Recurrent) -> Layout:
    directions = list(encoder.directions)
    lstms = [network for network in directions if isinstance(network, LSTM)]
    both = len(directions) == 2
    if len(lstms) < len(directions):
        raise _missing(directions[0])
    if any(lstm.peepholes is not None for lstm in lstms):
        raise InexpressibleError("LSTMs with peepholes")
    if both and encoder.combination != "concat":
        raise InexpressibleError(f"directions combined by {encoder.combination}")
    if both and encoder.pooling == "last":
        raise InexpressibleError("the last states of two directions")
    lstm, pooling = "1_LSTM", "2_Pooling"  # the first module is in the folder itself
    gates = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    names = {
        f"encoder.{gate}{suffix}": f"directions.{number}.weights.{gate}"
        for number, suffix in enumerate(("", "_reverse")[: len(directions)])
        for gate in gates
    }
    tokenizer = f"{_THEIRS}.tokenizer.word.TransformersTokenizerWrapper"
    mode = {"mean": "mean", "max": "max", "last": "lasttoken"}[encoder.pooling]
    return Layout(
        {
            "": f"{_THEIRS}.word_embeddings.WordEmbeddings",
            lstm: f"{_THEIRS}.lstm.LSTM",
            pooling: f"{_THEIRS}.pooling.Pooling",
        },
        {_WEIGHTS: {"emb_layer.weight": _MATRIX}, f"{lstm}/{_WEIGHTS}": names},
        {
            "wordembedding_config.json": {
                "tokenizer_class": tokenizer,
                "update_embeddings": True,
                "max_seq_length": 1_000_000,
            },
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"},
            f"{lstm}/lstm_config.json": {
                "embedding_dimension": encoder.input.dim,
                "hidden_dim": lstms[0].dim,
                "num_layers": 1,
                "dropout": 0,
                "bidirectional": both,
            },
            f"{pooling}/config.json": {"embedding_dimension": encoder.dim, "pooling_mode": mode},
        },
    )


def _missing(module: nn.Module) -> InexpressibleError:
    name = type(module).__name__
    return InexpressibleError(_MISSING.get(name, name))

"""A trained encoder: text in, vectors out, and the folder it lives in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from models.embeddings.applications.evaluation import Model, cosines, dots
from models.embeddings.encoders import build_encoder, kinds, tables
from models.embeddings.encoders.context import Context
from models.embeddings.heads import Head, open_head
from models.embeddings.options import EmbeddingOptions
from models.embeddings.sentence_transformer import write_sentence_transformer_files
from models.embeddings.vocabulary import Kind, Vocabulary, ids_by_kind
from models.errors import UserError
from models.files import atomic_folder

_HEAD = "head.safetensors"
FORMAT = 1  # of the folder; a later one that cannot be read by this code has another number


class SentenceEncoder:
    """An encoder with its vocabularies, and the head that was trained with it if there is one.

    >>> encoder = load_encoder("runs/sample/embeddings")        # doctest: +SKIP
    >>> encoder.similarity(["A dog runs."], ["A dog is running."])  # doctest: +SKIP
    array([0.93], dtype=float32)
    """

    def __init__(
        self,
        encoder: nn.Module,
        vocabularies: Mapping[Kind, Vocabulary],
        options: EmbeddingOptions,
        head: Head | None = None,
    ) -> None:
        self.encoder = encoder
        self.vocabularies = dict(vocabularies)
        self.options = options
        self.head = head

    @property
    def dim(self) -> int:
        """Length of a sentence's vector."""
        return int(self.encoder.dim)  # type: ignore[arg-type]

    def embed(
        self, sentences: Sequence[str] | pa.StringArray, batch_size: int = 4096
    ) -> np.ndarray:
        """Vectors of sentences, float32 [n, dim]; zeros where a sentence has no token."""
        text = sentences if isinstance(sentences, pa.Array) else pa.array(sentences, pa.string())
        vectors = np.empty((len(text), self.dim), np.float32)
        training = self.encoder.training
        self.encoder.eval()
        with torch.inference_mode():
            for start in range(0, len(text), batch_size):
                ids = ids_by_kind(self.vocabularies, text[start : start + batch_size])
                vectors[start : start + batch_size] = self.encoder(ids).float().cpu().numpy()
        self.encoder.train(training)
        return vectors

    def similarity(
        self, a: Sequence[str] | pa.StringArray, b: Sequence[str] | pa.StringArray
    ) -> np.ndarray:
        """How alike sentences a[i] and b[i] are, float64 [n]; see `compare`.

        The cosine is 0 where one has no token.
        """
        return self.compare(self.embed(a), self.embed(b))

    @property
    def compare(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """What makes a score of two sentences' vectors, [n, dim] each.

        The head's label; the dot product, where the encoder was trained on dot products; else the
        cosine.
        """
        if self.head is not None:
            return self.head.predict
        return dots if self.options.task in ("phrases", "context") else cosines

    def named(self, name: str) -> Model:
        """The model for `evaluate_models`."""
        scale = None if self.head is None else (self.head.lowest, self.head.highest)
        return Model(name, self.embed, self.compare, scale)

    def save(
        self,
        folder: Path | str,
        *,
        metrics: Mapping[str, Any] | None = None,
        log: Path | None = None,
        also: Callable[[Path], None] | None = None,
    ) -> None:
        """Write the model folder, all of it or nothing: weights, config, vocabularies.

        `metrics` become its metrics.json, the file `log` its metrics.jsonl; `also` adds files of a
        task's own.
        """
        with atomic_folder(folder) as temporary:
            self.write(temporary)
            if also is not None:
                also(temporary)
            if metrics is not None:
                (temporary / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
            if log is not None and log.exists():
                shutil.copyfile(log, temporary / "metrics.jsonl")

    def write(self, folder: Path) -> None:
        """Write the model's files into a folder that is there."""
        save_file(weights(self.encoder), folder / "model.safetensors")
        for kind, vocabulary in self.vocabularies.items():
            vocabulary.save(folder / f"{kind}.txt")
        config = {
            "format": FORMAT,
            "options": self.options.chosen(),
            "vocabularies": {kind: len(words) for kind, words in self.vocabularies.items()},
            "dim": self.dim,
        }
        if isinstance(self.encoder, Context):
            config["outputs"] = self.encoder.outputs
        if self.head is not None:
            config["head"] = self.head.settings()
            save_file(weights(self.head), folder / _HEAD)
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        write_sentence_transformer_files(folder)


def weights(encoder: nn.Module) -> dict[str, torch.Tensor]:
    """All weights as they are now, on the CPU, by name."""
    state = {name: tensor.detach() for name, tensor in encoder.state_dict().items()}
    for name, table in tables(encoder).items():
        state[f"{name}.weight"] = table.current()
    return {name: tensor.cpu().contiguous() for name, tensor in state.items()}


def load_encoder(folder: Path | str, *, device: str = "cpu") -> SentenceEncoder:
    """The model that `train_embeddings` left in `folder`.

    Raises:
        UserError: a file is missing, damaged, or does not fit the others; names it.
    """
    folder = Path(folder)
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text())
        if config["format"] != FORMAT:
            raise UserError(f"{path}: format {config['format']}, this version reads {FORMAT}")
        options = EmbeddingOptions.of(config["options"])
        sizes = config["vocabularies"]
        names = kinds(options.model)
        head = open_head(config["head"]) if "head" in config else None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not the configuration of an encoder ({error})") from error
    vocabularies = {kind: Vocabulary.load(folder / f"{kind}.txt") for kind in names}
    for kind, vocabulary in vocabularies.items():
        if len(vocabulary) != sizes.get(kind):
            raise UserError(
                f"{folder / f'{kind}.txt'}: {len(vocabulary)} entries, "
                f"but {path} was written with {sizes.get(kind)}"
            )
    vectors = {kind: torch.zeros(len(vocabularies[kind]), options.dim) for kind in names}
    encoder = build_encoder(options, vectors, outputs=config.get("outputs"))
    load_weights(encoder, folder / "model.safetensors")
    if head is not None:
        load_weights(head, folder / _HEAD)
        head.to(device).eval()
    return SentenceEncoder(encoder.to(device).eval(), vocabularies, options, head)


def load_weights(encoder: nn.Module, path: Path) -> None:
    """Fill an encoder or a head from a file of weights.

    Raises:
        UserError: the file is missing, damaged, or holds the weights of another one.
    """
    try:
        state = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: cannot be read as safetensors ({error})") from error
    expected = {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in state.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise UserError(
                f"{path}: weight {name!r} is {found.get(name, 'not there')}, "
                f"the model expects {expected.get(name, 'none')}"
            )
    encoder.load_state_dict(state)

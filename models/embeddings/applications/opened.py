"""A common interface to Paraloom's encoders and sentence-transformers models."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from paraloom.models import hub
from paraloom.models.embeddings.comparison import ComparedModel, Vectors
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.sentence_models import load_sentence_model
from paraloom.models.structured import parse_json

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_OUR_BATCH = 4096  # as in `SentenceEncoder.embed`
_THEIR_BATCHES = (32, 1024, 8192)  # the library's default, and sizes for static embeddings
_SECONDS = 1.0  # approximate duration of each measurement of `cost`
_FEWEST = 64  # minimum number of sentences per measurement


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedModel:
    """A model that computes sentence vectors, and its files."""

    evaluated: ComparedModel
    encode: Callable[[Sequence[str], int], Vectors]
    """A function from n sentences and a batch size to vectors, [n, dim]."""
    batch_sizes: tuple[int, ...]
    """The default batch size, and further sizes that `cost` tries."""
    files: list[Path]  # all files that are needed for loading
    encoder: SentenceEncoder | None = None  # set if the model is an encoder of Paraloom
    sentence_model: SentenceTransformer | None = None  # set for sentence-transformers models

    @property
    def name(self) -> str:
        """Name of the model as the user wrote it."""
        return self.evaluated.name


def is_ours(folder: Path) -> bool:
    """Return whether `SentenceEncoder.save` wrote the folder."""
    try:
        return "vocabularies" in parse_json((folder / "config.json").read_bytes(), dict[str, Any])
    except (OSError, ValueError):
        return False


def open_model(name: str, option: str = "--model") -> OpenedModel:
    """Load a Paraloom encoder or a sentence-transformers model, in a folder or on the Hub."""
    folder = hub.fetch(name, option, "modules.json")
    if is_ours(folder):
        return _ours(name, folder)
    if not (folder / "modules.json").is_file():
        raise UserError(
            f"{option}: {name} is neither an encoder of Paraloom (config.json with vocabularies) "
            "nor a model of sentence-transformers (modules.json)"
        )
    return _theirs(name, folder)


def _ours(name: str, folder: Path) -> OpenedModel:
    encoder = load_encoder(folder)
    texts = [folder / f"{kind}.txt" for kind in encoder.vocabularies]
    return OpenedModel(
        evaluated=encoder.named(name),
        encode=encoder.embed,
        batch_sizes=(_OUR_BATCH,),
        files=[folder / "config.json", *texts, *sorted(folder.rglob("*.safetensors"))],
        encoder=encoder,
    )


def _theirs(name: str, folder: Path) -> OpenedModel:
    model = load_sentence_model(folder)

    def encode(sentences: Sequence[str], batch_size: int) -> Vectors:
        with in_one_line(f"{name}: the model fails"):  # its modules may be incompatible
            found = model.encode(list(sentences), batch_size=batch_size, show_progress_bar=False)
        vectors: Vectors = np.asarray(found, np.float32)
        return vectors

    def embed(text: pa.StringArray) -> Vectors:
        encoded = text.dictionary_encode()  # to embed each distinct sentence only once
        distinct = encode(encoded.dictionary.to_pylist(), _THEIR_BATCHES[0])
        vectors: Vectors = distinct[encoded.indices.to_numpy()]
        return vectors

    names = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
    return OpenedModel(
        evaluated=ComparedModel(name, embed),
        encode=encode,
        batch_sizes=_THEIR_BATCHES,
        files=[folder / file for file in hub.needed(names) if not file.endswith("README.md")],
        sentence_model=model,
    )


class Cost(NamedTuple):
    """Speed and size of a model on this machine."""

    sentences_per_second: float
    batch_size: int  # batch size with this speed
    bytes_on_disk: int  # size of all files that are needed for loading


def cost(model: OpenedModel, sentences: Sequence[str]) -> Cost:
    """Measure a model's size and, after a warm-up, its speed with the fastest batch size."""
    model.encode(sentences[:_FEWEST], model.batch_sizes[0])
    found = []
    for size in model.batch_sizes:
        rate, count = 0.0, max(_FEWEST, min(size, len(sentences)))
        for _ in range(3):  # a fast model gets more sentences each time
            given = sentences[:count]
            started = time.perf_counter()
            model.encode(given, size)
            rate = max(rate, len(given) / (time.perf_counter() - started))
            count = max(count, int(rate * _SECONDS))
        found.append((rate, size))
        if rate * _SECONDS < size:  # a larger batch would take longer than `_SECONDS`
            break
    rate, size = max(found)
    return Cost(round(rate, 1), size, sum(file.stat().st_size for file in model.files))

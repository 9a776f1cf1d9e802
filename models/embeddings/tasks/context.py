"""The sentences before and behind each, from contiguous text (Zhelezniak et al. 2018).

`model: word-sum` with a `bow` decoder is FastSent, `model: gru` with `cell: normalised` and `gru`
decoders is skip-thought; the two other pairs are the paper's as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from models.embeddings.datasets.contiguous_text import Text, read_text
from models.embeddings.encoders.context import Context, Neighbours
from models.embeddings.model import SentenceEncoder
from models.embeddings.options import EmbeddingOptions
from models.embeddings.training.supervised import new_model
from models.embeddings.training.trainer import Trainer
from models.embeddings.vocabulary import Vocabulary
from models.errors import UserError
from models.text.vectors import WordVectors, read_vectors

_POOL = 200_000  # sentences shuffled together


def train(
    options: EmbeddingOptions, folder: Path, *, shards: Sequence[str], seed: int
) -> dict[str, Any]:
    """Train on contiguous text.

    Returns:
        sentences (in the text), vocabulary (words), expanded (words known by `expand` alone), and
        what the trainer counts; `pairs` are sentences with one before and one behind.
    """
    section = options.context
    assert section is not None
    options = replace(options, tags=True, mega_batch=1)
    texts = (block.sentences for block in read_text(section.text, section.format))
    model = new_model(options, texts, seed)
    words = model.vocabularies["words"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}.text.", dir=folder.parent) as work:
        blocks = read_text(section.text, section.format)
        text = Text.write(Path(work) / "text", blocks, words, max_words=section.max_words)
        trainer = ContextTrainer(model.encoder, _Source(text, section.text, seed), options, seed)
        trainer.fit()
        sentences = len(text.offsets) - 1
    trainer.settle()
    metrics = {**trainer.metrics(), "sentences": sentences, "vocabulary": len(words)}
    if section.expand:
        model, metrics["expanded"] = expanded(model, read_vectors(section.expand))
    model.save(folder, metrics=metrics)
    return metrics


class ContextTrainer(Trainer):
    """Adam on the loss of both neighbours."""

    def train_mega_batch(self, pairs: Any) -> None:
        """One step on a mini-batch."""
        assert isinstance(self.encoder, Context)
        self.disturb()
        with self.precision():
            self.descend(self.encoder.loss(pairs))


class _Sentences:
    """Some sentences of a text that have neighbours; empty and identical ones do not matter."""

    identical = empty = 0

    def __init__(self, text: Text, rows: np.ndarray) -> None:
        self.text, self.rows = text, rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: np.ndarray) -> Neighbours:
        rows = self.rows[places]
        return Neighbours(*(self.text.take(rows + shift) for shift in (0, -1, 1)))


class _Source:
    """A text as the trainer reads it: pools of sentences, in an order of the epoch's own."""

    def __init__(self, text: Text, paths: Sequence[str], seed: int) -> None:
        self.text, self.seed = text, seed
        self.rows, self.name = len(text.middles), str(paths[0])

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Any]:
        starts = np.arange(0, self.rows, _POOL)
        for start in np.random.default_rng([self.seed, epoch]).permutation(starts)[first:]:
            yield _Sentences(self.text, np.asarray(self.text.middles[start : start + _POOL]))


def expanded(model: SentenceEncoder, larger: WordVectors) -> tuple[SentenceEncoder, int]:
    """A model that knows the words of other vectors, too (Kiros et al. 2015, 2.2), and how many.

    A linear map takes their vectors to the model's; it is the one with the smallest squared error
    on the words that both have. The decoders predict what they did.

    Raises:
        UserError: fewer words are known to both than the other vectors have dimensions.
    """
    assert isinstance(model.encoder, Context)
    vocabulary, table = model.vocabularies["words"], model.encoder.encoder.input.table
    own = vocabulary.words[3:]  # behind the unknown word and the tags
    rows = larger.rows(own)
    shared = np.flatnonzero(rows >= 0)
    if len(shared) < larger.dim:
        raise UserError(
            f"embeddings.context.expand: {len(shared)} of the text's words have vectors there, "
            f"but a map from {larger.dim} dimensions needs as many"
        )
    weight = table.current()
    linear = np.linalg.lstsq(
        larger.matrix[rows[shared]].astype(np.float64),
        weight[3:].cpu().double().numpy()[shared],
        rcond=None,
    )[0]
    known = set(own)
    new = [word for word in dict.fromkeys(larger.words.to_pylist()) if word not in known]
    vectors = larger.matrix[larger.rows(new)] @ linear.astype(np.float32)
    table.weight = torch.cat([weight, torch.from_numpy(vectors).to(weight)])
    vocabularies = {"words": Vocabulary([*own, *new], tags=True)}
    return SentenceEncoder(model.encoder, vocabularies, model.options), len(new)  # type: ignore[arg-type]

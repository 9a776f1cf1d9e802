"""Training by prediction of the neighbours of each sentence (Zhelezniak et al. 2018).

`model: word-sum` with `decoder: bow` is FastSent. `model: gru` with `cell: normalised` and
`decoder: gru` is skip-thought.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.ragged_columns import take
from paraloom.models.embeddings.tasks import RunInputs
from paraloom.models.embeddings.training.initial_model import new_model
from paraloom.models.embeddings.training.trainer import Pool, Trainer
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.text.vectors import WordVectors, load_vectors
from paraloom.papers.datasets.contiguous_text import TextIds, read_text
from paraloom.papers.encoders.context import INITIAL_RANGE, Context, SentencesInContext
from paraloom.papers.options import SystemOptions

_POOL = 200_000  # number of sentences to shuffle in memory


def train(
    options: SystemOptions, folder: Path, *, run: RunInputs, seed: int, language: str
) -> dict[str, Any]:
    """Train on contiguous text, and return the metrics of the training."""
    section = options.context
    assert section is not None
    options = options.replace(tags=True, mega_batch=1)  # saved with the model
    texts = (block.sentences for block in read_text(section.text, section.format, language))
    model = untrained(options, texts, seed, language)
    words = model.vocabularies["words"]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}.text.", dir=folder.parent) as work:
        blocks = read_text(section.text, section.format, language)
        text = TextIds.write(Path(work) / "text", blocks, words, max_words=section.max_words)
        trainer = ContextTrainer(model.encoder, _Source(text, section.text, seed), options, seed)
        trainer.fit()
        sentences = len(text.sentences.offsets) - 1
    metrics = {**trainer.metrics(), "sentences": sentences, "vocabulary": len(words)}
    if section.expand:
        model, metrics["expanded"] = expanded(model, load_vectors(Path(section.expand)))
    model.save(folder, metrics=metrics)
    return metrics


def untrained(
    options: SystemOptions, texts: Iterable[pa.StringArray], seed: int, language: str = ENGLISH
) -> SentenceEncoder:
    """Return a new model. Without initial vectors, word vectors are random and uniform."""
    model = new_model(options, texts, seed, language=language)
    assert isinstance(model.encoder, Context)
    if not options.vector_file:
        table = model.encoder.encoder.input.table
        generator = torch.Generator().manual_seed(seed)
        random = torch.rand(len(table.weight), options.dim, generator=generator)
        table.weight = ((2 * random - 1) * INITIAL_RANGE).to(table.weight)
    return model


class ContextTrainer(Trainer[SentencesInContext]):
    """Trains an encoder with decoders."""

    def train_on(self, batch: SentencesInContext) -> None:
        """Make one step on a mini-batch."""
        assert isinstance(self.encoder, Context)
        self.seed_noise()
        self.optimizer_step(self.encoder.loss(batch))


@dataclass
class _Sentences(Pool[SentencesInContext]):
    """Sentences with neighbours on both sides."""

    text: TextIds
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: NDArray[np.int64]) -> SentencesInContext:
        """Return the sentences at `rows` with their neighbours."""
        found = (take(self.text.sentences, self.rows[rows] + shift) for shift in (0, -1, 1))
        return SentencesInContext(*found)


class _Source:
    def __init__(self, text: TextIds, paths: Sequence[str], seed: int) -> None:
        self.text, self.seed = text, seed
        self.rows, self.name = len(text.middles), str(paths[0])

    def epoch(self, epoch: int, first: int = 0) -> Iterator[_Sentences]:
        starts = np.arange(0, self.rows, _POOL)
        for start in np.random.default_rng([self.seed, epoch]).permutation(starts)[first:]:
            yield _Sentences(self.text, self.text.middles[start : start + _POOL])


def expanded(model: SentenceEncoder, larger: WordVectors) -> tuple[SentenceEncoder, int]:
    """Add the words of `larger` to the vocabulary of a model (Kiros et al. 2015, 2.2).

    A linear map is fitted on the common words. Returns the model and the number of new words.
    """
    assert isinstance(model.encoder, Context)
    vocabulary, matrix = model.vocabularies["words"], model.encoder.encoder.input.table
    own = vocabulary.words[vocabulary.specials :]
    rows = larger.rows(own)
    shared = np.flatnonzero(rows >= 0)
    if len(shared) < larger.dim:
        raise UserError(
            f"embeddings.context.expand: {len(shared)} of the text's words have vectors there, "
            f"but a map from {larger.dim} dimensions needs {larger.dim} words"
        )
    weight = matrix.current()
    linear = np.linalg.lstsq(
        larger.matrix[rows[shared]].astype(np.float64),
        weight[vocabulary.specials :].cpu().double().numpy()[shared],
        rcond=None,
    )[0]
    known = set(own)
    new = [word for word in dict.fromkeys(larger.words.to_pylist()) if word not in known]
    vectors = larger.matrix[larger.rows(new)] @ linear.astype(np.float32)
    matrix.weight = torch.cat([weight, torch.from_numpy(vectors).to(weight)])
    words = Vocabulary([*own, *new], tags=True, language=model.language)
    return SentenceEncoder(model.encoder, {"words": words}, model.options), len(new)

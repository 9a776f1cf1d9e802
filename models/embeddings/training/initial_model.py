"""The untrained encoder at the start of a training."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import torch
from torch import Tensor

from paraloom.models.embeddings.encoders import INITIAL_SCALE, build_encoder, kinds, random_vectors
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.ragged_columns import Kind
from paraloom.models.embeddings.vocabulary import Vocabulary, build_vocabularies
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.text.vectors import UNKNOWN, WordVectors, load_vectors


def new_model(
    options: EmbeddingOptions,
    texts: Iterable[pa.StringArray],
    seed: int,
    *,
    language: str = ENGLISH,
    initial: WordVectors | None = None,
    folder: Path | None = None,
) -> SentenceEncoder:
    """Build an untrained encoder with the words of `texts` and of the initial vectors.

    Args:
        initial: initial word vectors. By default, they are read from the file in the options.
        folder: where vocabularies are saved. If it contains all vocabularies, they are loaded.
    """
    if initial is None and options.vector_file:
        initial = load_vectors(Path(options.vector_file))
    paths = (
        {} if folder is None else {kind: folder / f"{kind}.txt" for kind in kinds(options.model)}
    )
    if paths and all(path.exists() for path in paths.values()):
        vocabularies = {kind: Vocabulary.load(path, language) for kind, path in paths.items()}
    else:
        vocabularies = _vocabularies(options, texts, initial, language)
        for kind, path in paths.items():
            vocabularies[kind].save(path)
    vectors = {
        kind: _initial_vectors(vocabulary, options, initial if kind == "words" else None, seed)
        for kind, vocabulary in vocabularies.items()
    }
    with seeded(seed):
        encoder = build_encoder(options, vectors).to(device_of(options))
    return SentenceEncoder(encoder, vocabularies, options)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's random generator on the CPU for a block, and then restore its state."""
    with torch.random.fork_rng(devices=[]):  # None would mean every GPU
        torch.default_generator.manual_seed(seed)
        yield


def device_of(options: EmbeddingOptions) -> torch.device:
    """Return the device to train on."""
    available = torch.cuda.is_available()
    if options.device == "cuda" and not available:
        raise UserError("embeddings.device is cuda, but torch finds no GPU: set it to auto or cpu")
    return torch.device("cuda" if available and options.device != "cpu" else "cpu")


def _vocabularies(
    options: EmbeddingOptions,
    texts: Iterable[pa.StringArray],
    initial: WordVectors | None,
    language: str,
) -> dict[Kind, Vocabulary]:
    built = build_vocabularies(
        texts,
        kinds(options.model),
        max_size=options.max_vocabulary,
        tags=options.tags,
        language=language,
    )
    if initial is not None and (known := built.get("words")) is not None:
        words = dict.fromkeys(known.words[known.specials :])
        # Some files have a vector for <unk>, which is no word of a text.
        unknown = UNKNOWN, known.words[0]
        found = initial.words.to_pylist()
        words.update(dict.fromkeys(word for word in found if word not in unknown))
        built["words"] = Vocabulary(
            list(words)[: options.max_vocabulary], tags=known.tags, language=language
        )
    return built


def _initial_vectors(
    vocabulary: Vocabulary, options: EmbeddingOptions, initial: WordVectors | None, seed: int
) -> Tensor:
    """Return initial vectors, [size, dim]. Words that `initial` lacks get random vectors."""
    vectors = random_vectors(len(vocabulary), options.dim, seed)
    if initial is not None:
        if initial.dim != options.dim:
            raise UserError(
                f"{options.initial_vectors}: the vectors have {initial.dim} dimensions, "
                f"but embeddings.dim is {options.dim}"
            )
        # Scale random vectors to the standard deviation of `initial`.
        vectors *= float(initial.matrix.std()) / INITIAL_SCALE
        rows = torch.from_numpy(initial.rows([UNKNOWN, *vocabulary.words[1:]]))
        vectors[rows >= 0] = torch.from_numpy(initial.matrix[rows[rows >= 0].numpy()])
    return vectors

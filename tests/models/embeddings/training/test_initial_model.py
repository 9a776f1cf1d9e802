"""The model before the first step: its words, vectors, weights and device."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from paraloom.models.embeddings.encoders import embedding_matrices, random_vectors
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.training.initial_model import new_model
from paraloom.models.text.vectors import UNKNOWN, WordVectors

TEXTS = [pa.array(["b a", "a c a"]), pa.array(["c d"])]
MATRIX = np.random.default_rng(0).normal(0, 3, (4, 5)).astype(np.float32)
GIVEN = WordVectors(["e", "c", UNKNOWN, "f"], MATRIX)


def words_of(options: EmbeddingOptions, initial: WordVectors | None = None) -> list[str]:
    found = new_model(options, TEXTS, 1, initial=initial).vocabularies["words"]
    return found.words[found.specials :]


def test_the_words_are_those_of_the_texts_then_those_of_the_vectors() -> None:
    options = EmbeddingOptions(model="word-avg", dim=5)
    assert words_of(options) == ["a", "c", "b", "d"]  # a three times, c twice
    assert words_of(options, GIVEN) == ["a", "c", "b", "d", "e", "f"]
    assert words_of(options.replace(tags=True), GIVEN) == ["a", "c", "b", "d", "e", "f"]
    assert words_of(options.replace(max_vocabulary=3)) == ["a", "c", "b"]
    assert words_of(options.replace(max_vocabulary=5), GIVEN) == ["a", "c", "b", "d", "e"]


def test_words_without_a_vector_get_random_ones_as_long_as_the_others() -> None:
    options = EmbeddingOptions(model="word-avg+trigram-avg", dim=5)
    model = new_model(options, TEXTS, 7, initial=GIVEN)
    words, trigrams = (matrix.weight for matrix in embedding_matrices(model.encoder).values())
    assert torch.equal(trigrams, random_vectors(len(trigrams), 5, 7))  # not of words, so as ever
    random = random_vectors(7, 5, 7) * float(MATRIX.std()) / 0.1
    expected = {"<unk>": MATRIX[2], "c": MATRIX[1], "e": MATRIX[0], "f": MATRIX[3]}
    for row, word in enumerate(["<unk>", "a", "c", "b", "d", "e", "f"]):
        assert words[row].numpy() == pytest.approx(expected.get(word, random[row].numpy())), word


def test_weights_depend_on_the_seed_alone() -> None:
    options = EmbeddingOptions(model="lstm", dim=4)
    found = []
    for before, seed in ((5, 1), (6, 1), (5, 2)):
        with torch.random.fork_rng():
            torch.manual_seed(before)
            state = torch.random.get_rng_state()
            encoder = new_model(options, TEXTS, seed).encoder
            assert torch.equal(torch.random.get_rng_state(), state)
        found.append(torch.cat([weight.flatten() for weight in encoder.parameters()]))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_vocabularies_of_a_folder_are_taken_from_there(tmp_path: Path) -> None:
    options = EmbeddingOptions(model="word-avg+trigram-avg", dim=4, tags=True)

    def unread() -> Iterator[pa.StringArray]:
        raise AssertionError
        yield

    first = new_model(options, TEXTS, 1, language="fr", folder=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"words.txt", "trigrams.txt"}
    again = new_model(options, unread(), 1, language="fr", folder=tmp_path)
    for kind, vocabulary in first.vocabularies.items():
        assert again.vocabularies[kind].words == vocabulary.words
        assert again.vocabularies[kind].language == vocabulary.language == "fr"
    (tmp_path / "trigrams.txt").unlink()  # killed between the two
    with pytest.raises(AssertionError):
        new_model(options, unread(), 1, folder=tmp_path)

"""The cosine of a trained encoder, as a scorer: its plain definition, its folder, its blocks."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from paraloom.models.embeddings.model import load_encoder
from paraloom.models.scorers import PairScorer
from paraloom.models.text.tokens import moses_tokens
from tests.small_encoder import encoder_of_texts

NAME = "encoder_similarity"


@pytest.fixture(scope="module")
def sides(pairs: list[tuple[str, str]]) -> list[pa.StringArray]:
    return [pa.array([pair[side] for pair in pairs[:500]], pa.string()) for side in (0, 1)]


def score(sides: list[pa.StringArray], **tables: Any) -> NDArray[np.float32]:
    return PairScorer([NAME], **tables).score(*sides)[NAME]


def test_many_pairs_score_as_plainly_defined(sides: list[pa.StringArray], tmp_path: Path) -> None:
    made = encoder_of_texts(sides[0])
    words = {word: i for i, word in enumerate(made.vocabularies["words"].words)}
    table = made.encoder.state_dict()["input.table.weight"].double().numpy()
    expected = []
    for pair in zip(*(moses_tokens(side).to_pylist() for side in sides), strict=True):
        r, t = (table[[words.get(token, 0) for token in side]].mean(axis=0) for side in pair)
        expected.append(r @ t / np.linalg.norm(r) / np.linalg.norm(t))
    found = score(sides, encoder=made)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.dtype == np.float32
    assert 0.1 < found.std() < 0.9
    made.save(tmp_path / "embeddings")
    assert np.array_equal(score(sides, encoder=str(tmp_path / "embeddings")), found)


def test_a_recurrent_encoder_depends_on_the_block_in_its_last_bits_at_most(
    sides: list[pa.StringArray],
) -> None:
    sides = [side[:150] for side in sides]
    made = encoder_of_texts(sides[0], "lstm-avg", max_vocabulary=300)
    whole = score(sides, encoder=made)
    assert np.array_equal(whole, score(sides, encoder=made))
    for size in (1, 77):
        blocks = range(0, len(sides[0]), size)
        parts = [score([side[at : at + size] for side in sides], encoder=made) for at in blocks]
        np.testing.assert_allclose(whole, np.concatenate(parts), atol=1e-6)


def test_an_encoder_remembers_its_language(tmp_path: Path) -> None:
    texts = ["L'homme qu'il voit court.", "C'est l'été aujourd'hui."]
    model = encoder_of_texts(texts, language="fr")
    model.save(tmp_path / "fr")
    loaded = load_encoder(tmp_path / "fr")
    assert loaded.language == model.language == "fr"
    assert np.array_equal(loaded.embed(texts), model.embed(texts))
    config = (tmp_path / "fr/config.json").read_text()
    (tmp_path / "fr/config.json").write_text(config.replace('"fr"', '"en"'))
    assert not np.array_equal(load_encoder(tmp_path / "fr").embed(texts), model.embed(texts))

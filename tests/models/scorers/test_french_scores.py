"""Scores of French pairs, as plainly defined on Moses' French tokens."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from mosestokenizer import MosesTokenizer
from rapidfuzz.distance import Levenshtein

from benchmarks import plain_scoring as plain
from paraloom.models.embeddings.encoders import build_encoder, random_vectors
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.scorers import PairScorer
from paraloom.models.text.idf import count_words, idf_table

REFERENCES = pa.array(
    ["L'homme qu'il voit court.", "C'est l'été aujourd'hui.", "M. Dupont dort.", ""]
)
TRANSLATIONS = pa.array(
    ["L'homme que l'on voit court.", "Aujourd'hui, c'est l'été.", "Mr. Dupont dort.", "Rien."]
)
MOSES = MosesTokenizer("fr")


def tokens(text: str) -> list[str]:
    return [token.lower() for token in MOSES.tokenize(text)]


def test_scores_are_those_of_french_tokens() -> None:
    pairs = [
        (tokens(r), tokens(t))
        for r, t in zip(REFERENCES.to_pylist(), TRANSLATIONS.to_pylist(), strict=True)
    ]
    idf = idf_table(count_words(REFERENCES, "fr"))
    names = ["trigram_overlap", "unigram_f1", "edit_distance", "length_ratio", "mean_idf"]
    found = PairScorer(names, language="fr", idf=idf).score(REFERENCES, TRANSLATIONS)
    english = PairScorer(names, idf=idf).score(REFERENCES, TRANSLATIONS)
    for row, (r, t) in enumerate(pairs):
        shared = (Counter(r) & Counter(t)).total()
        values = idf.at(idf.rows([*r, *t]))
        expected = {
            "reference_tokens": len(r),
            "translation_tokens": len(t),
            "trigram_overlap": plain.trigram_overlap(r, t),
            "unigram_f1": 2 * shared / (len(r) + len(t)),
            "edit_distance": Levenshtein.normalized_distance(r, t),
            "length_ratio": min(len(r), len(t)) / max(len(r), len(t)),
            "mean_idf": values.mean(),
        }
        for name, value in expected.items():
            assert found[name][row] == pytest.approx(value, abs=1e-6), (name, r, t)
    assert any(not np.array_equal(found[name], english[name]) for name in names)


def test_characters_are_the_tokens_of_japanese() -> None:
    sides = pa.array(["猫が走る。"]), pa.array(["犬が走る。"])
    found = PairScorer(["trigram_overlap", "unigram_f1"], language="ja").score(*sides)
    assert found["reference_tokens"].tolist() == [5]
    assert found["trigram_overlap"].tolist() == pytest.approx([2 / 3])
    assert found["unigram_f1"].tolist() == pytest.approx([0.8])


def test_an_encoder_remembers_its_language(tmp_path: Path) -> None:
    options = EmbeddingOptions(model="word-avg", dim=8)
    words = Vocabulary.build([REFERENCES], language="fr")
    assert set(words.words[1:]) == {
        token for text in REFERENCES.to_pylist() for token in tokens(text)
    }
    encoder = build_encoder(options, {"words": random_vectors(len(words), 8, seed=1)})
    model = SentenceEncoder(encoder, {"words": words}, options)
    model.save(tmp_path / "fr")
    loaded = load_encoder(tmp_path / "fr")
    assert loaded.language == model.language == "fr"
    assert np.array_equal(loaded.embed(REFERENCES), model.embed(REFERENCES))

    config = (tmp_path / "fr/config.json").read_text()
    (tmp_path / "fr/config.json").write_text(config.replace('"fr"', '"en"'))
    assert not np.array_equal(
        load_encoder(tmp_path / "fr").embed(REFERENCES), model.embed(REFERENCES)
    )

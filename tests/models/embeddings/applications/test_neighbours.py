import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.embeddings.applications import embed
from paraloom.models.embeddings.applications.embed import nearest, neighbour_lines
from paraloom.models.embeddings.comparison import Embed
from paraloom.models.errors import UserError
from paraloom.papers.heads.manhattan import Manhattan
from tests.sample import english_sentences


@pytest.mark.parametrize("block", [7, 1014])
def test_blocks_give_what_all_pairs_give(bag_of_words: Embed, block: int) -> None:
    lines = english_sentences(300)
    lines += lines[:20]
    queries = [*lines[5:8], "A dog that is not in the collection ."]
    blocks = (pa.array(lines[i : i + block]) for i in range(0, len(lines), block))
    found = nearest(bag_of_words, pa.array(queries), blocks, count=4)

    distinct = list(dict.fromkeys(lines))
    vectors, asked = bag_of_words(pa.array(distinct)), bag_of_words(pa.array(queries))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    for query, row, neighbours in zip(queries, asked @ vectors.T, found, strict=True):
        others = [(c, s) for c, s in zip(row, distinct, strict=True) if s != query]
        expected = sorted((c for c, _ in others), reverse=True)[:4]
        assert [n.similarity for n in neighbours] == pytest.approx(expected, abs=1e-5)
        assert query not in [n.sentence for n in neighbours]
        assert len({n.sentence for n in neighbours}) == 4
        of = {s: c for c, s in others}
        assert [of[n.sentence] for n in neighbours] == pytest.approx(expected, abs=1e-5)


def test_a_small_collection_gives_what_it_has(bag_of_words: Embed) -> None:
    collection = [pa.array(["a b", "a b"]), pa.array(["a c", "a b", ""])]
    (found,) = nearest(bag_of_words, pa.array(["a b"]), collection, count=5)
    assert [n.sentence for n in found] == ["a c", ""]
    assert found[0].similarity == pytest.approx(0.5)
    assert found[1].similarity == 0
    assert nearest(bag_of_words, pa.array([], pa.string()), collection) == []


def test_neighbours_of_malstm_are_ranked_by_its_similarity() -> None:
    """g = exp(−‖a − b‖₁), in float64; cosines would give another order."""
    random = np.random.default_rng(0)
    texts = [f"s{i}" for i in range(40)]
    vectors = dict(zip(texts, random.normal(size=(40, 6)), strict=True))

    def embed(text: pa.StringArray) -> np.ndarray:
        return np.array([vectors[each] for each in text.to_pylist()]).reshape(-1, 6)

    head = Manhattan(lowest=1, highest=5)
    blocks = [pa.array(texts[i : i + 7]) for i in range(0, 40, 7)]
    (found,) = nearest(embed, pa.array(["s0"]), blocks, count=39, rank=head.rank)
    g = {s: np.exp(-np.abs(vectors["s0"] - v).sum()) for s, v in vectors.items() if s != "s0"}
    expected = sorted(g, key=lambda s: -g[s])
    assert [n.sentence for n in found] == expected
    assert [n.similarity for n in found] == pytest.approx([g[s] for s in expected], rel=1e-12)
    (by_cosine,) = nearest(embed, pa.array(["s0"]), blocks, count=39)
    assert [n.sentence for n in by_cosine] != expected


def test_lines_in_lines_out(bag_of_words: Embed, tmp_path: Path) -> None:
    collection = tmp_path / "sentences.gz"
    with gzip.open(collection, "wb") as stream:
        stream.write(b"a c\r\nx y\na b\na b c")
    out = io.BytesIO()
    neighbour_lines(bag_of_words, io.BytesIO(b"a b\nx\n"), collection, out, count=2)
    assert out.getvalue().decode().splitlines() == [
        "a b\t0.816497\ta b c",
        "a b\t0.500000\ta c",
        "x\t0.707107\tx y",
        "x\t0.000000\ta c",
    ]


def test_a_collection_that_cannot_be_read(
    bag_of_words: Embed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(name: str) -> None:
        neighbour_lines(bag_of_words, io.BytesIO(b"a\n"), tmp_path / name, io.BytesIO())

    with pytest.raises(UserError, match="nowhere: cannot be read"):
        ask("nowhere")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a b\n" * 1000)[:-20])
    with pytest.raises(UserError, match=r"cut\.gz: damaged gzip file"):
        ask("cut.gz")
    (tmp_path / "latin").write_bytes(b"a\nb\n\xe9\n")
    with pytest.raises(UserError, match="latin, line 3: not UTF-8"):
        ask("latin")
    monkeypatch.setattr(embed, "_LONGEST", 1000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"a\n" + b"a" * 1_000_000))
    with pytest.raises(UserError, match=r"bomb\.gz, line 2: longer than 1,000 bytes"):
        ask("bomb.gz")
